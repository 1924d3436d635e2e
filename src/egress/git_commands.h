// What a push asks for: the part of a git-receive-pack request before its pack (gitprotocol-pack(5),
// "Reference Update Request And Packfile Transfer"), of protocol versions 0 and 1, signed or not. Read more
// strictly than git does: what two servers could read in two ways is refused.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/pkt_line.h"

namespace firestop::egress {

struct GitUpdate {
  enum class Kind { kCreate, kUpdate, kDelete };
  Kind kind{};
  std::string ref;  // printable, no space; else not checked
  std::string old_id, new_id;
};

struct GitPush {
  std::vector<GitUpdate> updates;
  std::vector<std::string> options;  // of the certificate, too
  bool reports = false;              // the client reads report-status
  bool side_band = false;            // side-band-64k
  bool has_options = false;          // push options follow the commands
  bool sha256 = false;
  bool is_signed = false;
};

class GitCommandReader {
 public:
  static constexpr size_t kMostUpdates = 1000;
  static constexpr size_t kMostOptions = 100;
  static constexpr size_t kMostBytes = 1u << 20;  // of commands, certificate and options together

  // "git.push": not as the protocol has it, or beyond a bound. Nothing may be fed after it, or once done().
  Result<void> feed(std::string_view bytes);
  bool done() const { return state_ == State::kDone; }
  // A flush and nothing else, so far: how git finds out whether it has to authenticate.
  bool nothing() const { return state_ == State::kNothing && reader_.rest().empty(); }
  const GitPush& push() const { return push_; }

 private:
  enum class State {
    kStart,     // shallow lines, then a command or a certificate
    kCommands,  // more commands
    kCertificateVersion,
    kCertificateHead,
    kCertificateCommands,
    kCertificateSignature,
    kCertificateEnd,  // a flush follows
    kOptions,
    kNothing,
    kDone,
  };

  Result<void> line(const codec::PktLine& line);
  Result<void> flush();
  Result<void> first(std::string_view text);
  Result<void> capabilities(std::string_view words);
  Result<void> capability(std::string_view word);
  Result<void> command(std::string_view text);
  Result<void> certificate_line(std::string_view payload);
  Result<void> certificate_head(std::string_view text);
  Result<void> option(std::string_view text);
  Result<void> object_id(std::string_view id);

  codec::PktLineReader reader_;
  State state_ = State::kStart;
  GitPush push_;
  size_t bytes_ = 0;
  size_t id_digits_ = 0;  // of the first object id
  bool format_given_ = false;
};

}  // namespace firestop::egress
