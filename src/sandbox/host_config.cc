#include "sandbox/host_config.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/diagnostic.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/yaml.h"

namespace firestop::sandbox {
namespace {

using codec::ScalarType;
using codec::YamlNode;

constexpr uint64_t kMaxBytes = 64u << 10;
constexpr const char* kExpectedKeys =
    "expected require_signature, allowed_signers, connect_to or upstream_ca";

class ConfigReader {
 public:
  explicit ConfigReader(const std::string& file) : file_(file) {}

  Result<HostConfig> read(std::string_view text) {
    auto document = codec::parse_yaml(text, {.bytes = kMaxBytes, .depth = 4, .nodes = 500, .faults = 10});
    faults_ = std::move(document.faults);
    const auto& root = document.root;
    if (root.kind == YamlNode::Kind::kMapping)
      for (const auto& member : root.members) read_member(member);
    else if (root.kind != YamlNode::Kind::kNull && root.kind != YamlNode::Kind::kInvalid)
      fault(root.where, "", "the document is no mapping", kExpectedKeys);
    if (faults_.empty()) return config_;
    std::string message = "the host's configuration is wrong:";
    for (auto& each : faults_) {
      each.file = file_;
      message += "\n" + each.headline();
    }
    return fail("config.bad", std::move(message), "see docs/signing.md and docs/egress.md");
  }

 private:
  void fault(Position where, std::string field, std::string wrong, std::string expected) {
    faults_.push_back({file_, where, std::move(field), std::move(wrong), std::move(expected)});
  }

  void read_member(const codec::YamlMember& member) {
    const auto& value = member.value;
    if (value.kind == YamlNode::Kind::kInvalid) return;
    const bool scalar = value.kind == YamlNode::Kind::kScalar;
    if (member.key == "require_signature") {
      if (scalar && codec::type_of(value) == ScalarType::kBool)
        config_.require_signature = value.text.front() == 't' || value.text.front() == 'T';
      else
        fault(value.where, member.key, "is neither true nor false", "expected true or false");
    } else if (member.key == "allowed_signers") {
      read_path(member, "expected the path of an allowed_signers file", config_.allowed_signers);
    } else if (member.key == "upstream_ca") {
      read_path(member, "expected the path of a file of certificates (PEM)", config_.upstream_ca);
    } else if (member.key == "connect_to") {
      read_mappings(member);
    } else {
      fault(member.where, codec::child_path("", member.key), "is an unknown key", kExpectedKeys);
    }
  }

  static bool is_text(const YamlNode& node) {
    return node.kind == YamlNode::Kind::kScalar && codec::type_of(node) == ScalarType::kText &&
           !node.text.empty() && node.text.find('\0') == std::string::npos;
  }

  void read_path(const codec::YamlMember& member, const char* expected, std::string& to) {
    const auto& value = member.value;
    if (!is_text(value))
      fault(value.where, member.key, "is no path", expected);
    else if (value.text.front() == '~')
      fault(value.where, member.key, "begins with ~, which only a shell knows",
            "expected an absolute path, or one relative to this file");
    else
      to = value.text.front() == '/' ? value.text : join_path(parent_path(file_), value.text);
  }

  void read_mappings(const codec::YamlMember& member) {
    constexpr const char* kExpected = "expected a list of HOST:PORT=ADDRESS:PORT";
    if (member.value.kind != YamlNode::Kind::kSequence)
      return fault(member.value.where, member.key, "is no list", kExpected);
    for (size_t at = 0; at < member.value.items.size(); ++at) {
      const auto& item = member.value.items[at];
      const std::string field = codec::item_path(member.key, at);
      if (!is_text(item)) {
        fault(item.where, field, "is no text", kExpected);
        continue;
      }
      auto mapping = egress::parse_mapping(item.text);
      if (!mapping)
        fault(item.where, field, mapping.error().message, kExpected);
      else if (std::any_of(config_.connect_to.begin(), config_.connect_to.end(),
                           [&](const auto& one) { return one.from == mapping->from; }))
        fault(item.where, field, item.text + ": its host and port are there twice", "expected each once");
      else
        config_.connect_to.push_back(std::move(*mapping));
    }
  }

  const std::string& file_;
  HostConfig config_;
  std::vector<Diagnostic> faults_;
};

}  // namespace

Result<HostConfig> parse_host_config(std::string_view text, const std::string& file) {
  return ConfigReader(file).read(text);
}

Result<HostConfig> load_host_config() {
  const std::string file = join_path(config_directory(), "config.yaml");
  const auto text = read_file(file, kMaxBytes);
  if (text) return parse_host_config(*text, file);
  if (text.error().sys_errno == ENOENT) return HostConfig{};
  return fail("config.unreadable", "cannot read the host's configuration: " + text.error().message);
}

}  // namespace firestop::sandbox
