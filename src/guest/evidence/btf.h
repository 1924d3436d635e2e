// The kernel's own description of its types (BTF, Documentation/bpf/btf.rst): where a BPF program is
// attached, and where the members are that it reads. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace firestop::guest {

class Btf {
 public:
  // /sys/kernel/btf/vmlinux's bytes. What is none has no types.
  explicit Btf(std::string bytes);

  // The number of a function; 0: there is none.
  uint32_t function(std::string_view name) const;
  // Where a member of a structure begins, in bytes; also of those in its members without a name. Nothing when
  // there is none, or when it does not begin at a byte.
  std::optional<int16_t> member(std::string_view structure, std::string_view name) const;

 private:
  struct Type {
    uint32_t name = 0, kind = 0, members = 0;
    bool bit_fields = false;
    size_t at = 0;  // of what follows its head
  };
  Type type(size_t at) const;
  bool named(uint32_t text, std::string_view name) const;
  std::optional<uint32_t> bits_to(uint32_t number, std::string_view name, int depth) const;

  std::string bytes_;
  std::string_view types_, strings_;
  std::vector<uint32_t> places_;  // of types, by number - 1
};

}  // namespace firestop::guest
