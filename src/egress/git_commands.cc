#include "egress/git_commands.h"

#include <algorithm>

namespace firestop::egress {
namespace {

constexpr size_t kSha1Digits = 40;
constexpr size_t kSha256Digits = 64;
constexpr std::string_view kHex = "0123456789abcdefABCDEF";

Unexpected refuse(const std::string& why) {
  return fail("git.push", "the push is malformed: " + why);
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

bool is_zero(std::string_view id) {
  return id.find_first_not_of('0') == std::string_view::npos;
}

}  // namespace

Result<void> GitCommandReader::feed(std::string_view bytes) {
  // What comes behind the end is not read, and does not count.
  for (size_t at = 0; at < bytes.size() && !done();) {
    const std::string_view piece = bytes.substr(at, codec::kMostPktPayload);
    at += piece.size();
    reader_.feed(piece);
    while (!done()) {
      TRY_ASSIGN(const auto next, reader_.next());
      if (!next) break;
      bytes_ += codec::kPktHeader + next->payload.size();
      if (bytes_ > kMostBytes) return refuse("more than 1 MiB before its pack");
      TRY(next->kind == codec::PktLine::Kind::kFlush ? flush() : line(*next));
    }
  }
  return {};
}

Result<void> GitCommandReader::flush() {
  switch (state_) {
    case State::kStart:  // nothing is asked for: how git finds out whether it has to authenticate
      if (id_digits_ > 0) return refuse("shallow lines without a command");
      state_ = State::kNothing;
      return {};
    case State::kCommands:
    case State::kCertificateEnd:
      if (push_.sha256 != (id_digits_ == kSha256Digits)) return refuse("object ids of another format");
      state_ = push_.has_options ? State::kOptions : State::kDone;
      return {};
    case State::kOptions:
      state_ = State::kDone;
      return {};
    case State::kNothing:
      return refuse("something behind a push of nothing");
    default:
      return refuse("a certificate without its end");
  }
}

Result<void> GitCommandReader::line(const codec::PktLine& line) {
  if (line.kind != codec::PktLine::Kind::kData) return refuse("a mark that has no place in it");
  switch (state_) {
    case State::kStart:
      return first(line.text());
    case State::kCommands:
      return command(line.text());
    case State::kOptions:
      return option(line.text());
    case State::kCertificateEnd:
      return refuse("a command behind the certificate");
    case State::kNothing:
      return refuse("something behind a push of nothing");
    default:
      return certificate_line(line.payload);
  }
}

Result<void> GitCommandReader::first(std::string_view text) {
  constexpr std::string_view kShallow = "shallow ";
  if (text.starts_with(kShallow)) return object_id(text.substr(kShallow.size()));
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) TRY(capabilities(text.substr(nul + 1)));
  const std::string_view command = text.substr(0, nul);
  if (command == "push-cert") {
    push_.is_signed = true;
    state_ = State::kCertificateVersion;
    return {};
  }
  state_ = State::kCommands;
  return this->command(command);
}

Result<void> GitCommandReader::capabilities(std::string_view words) {
  if (has_control(words)) return refuse("a control character among the capabilities");
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (end > 0) TRY(capability(words.substr(0, end)));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return {};
}

Result<void> GitCommandReader::capability(std::string_view word) {
  constexpr std::string_view kFormat = "object-format=";
  if (word == "report-status" || word == "report-status-v2") push_.reports = true;
  if (word == "side-band-64k") push_.side_band = true;
  if (word == "push-options") push_.has_options = true;
  if (!word.starts_with(kFormat)) return {};
  const std::string_view format = word.substr(kFormat.size());
  if (format_given_) return refuse("two object formats");
  if (format != "sha1" && format != "sha256") return refuse("an object format that is not known");
  format_given_ = true;
  push_.sha256 = format == "sha256";
  return {};
}

Result<void> GitCommandReader::object_id(std::string_view id) {
  if (id_digits_ == 0) id_digits_ = id.size();
  if (id.size() != id_digits_ || (id.size() != kSha1Digits && id.size() != kSha256Digits) ||
      id.find_first_not_of(kHex) != std::string_view::npos)
    return refuse("an object id that is not one, or not like the others");
  return {};
}

// "OLD-ID NEW-ID REF"; an id of zeros is no object.
Result<void> GitCommandReader::command(std::string_view text) {
  const size_t space = text.find(' ');
  const size_t second = space == std::string_view::npos ? space : text.find(' ', space + 1);
  if (second == std::string_view::npos) return refuse("a command without three parts");
  if (push_.updates.size() == kMostUpdates)
    return refuse("more than " + std::to_string(kMostUpdates) + " refs at once");
  GitUpdate update;
  update.old_id = text.substr(0, space);
  update.new_id = text.substr(space + 1, second - space - 1);
  update.ref = text.substr(second + 1);
  TRY(object_id(update.old_id));
  TRY(object_id(update.new_id));
  if (update.ref.empty() || has_control(update.ref) || update.ref.find(' ') != std::string::npos)
    return refuse("a ref that is empty, or with a space or a control character");
  update.kind = is_zero(update.new_id)   ? GitUpdate::Kind::kDelete
                : is_zero(update.old_id) ? GitUpdate::Kind::kCreate
                                         : GitUpdate::Kind::kUpdate;
  push_.updates.push_back(std::move(update));
  return {};
}

// A line a packet, with its LF: the head, an empty line, the commands, the signature, "push-cert-end".
Result<void> GitCommandReader::certificate_line(std::string_view payload) {
  if (!payload.ends_with('\n')) return refuse("a line of the certificate without its end");
  const std::string_view text = payload.substr(0, payload.size() - 1);
  if (has_control(text)) return refuse("a control character in the certificate");
  const bool begins_signature = text.starts_with("-----BEGIN ");
  switch (state_) {
    case State::kCertificateVersion:
      if (text != "certificate version 0.1") return refuse("a certificate of another version");
      state_ = State::kCertificateHead;
      return {};
    case State::kCertificateHead:
      return certificate_head(text);
    case State::kCertificateCommands:
      if (!begins_signature) return command(text);
      if (push_.updates.empty()) return refuse("a certificate without commands");
      state_ = State::kCertificateSignature;
      return {};
    default:
      // Git looks for the last beginning of a signature, others for the first.
      if (begins_signature) return refuse("a certificate with two signatures");
      if (text == "push-cert-end") state_ = State::kCertificateEnd;
      return {};
  }
}

Result<void> GitCommandReader::certificate_head(std::string_view text) {
  constexpr std::string_view kOption = "push-option ";
  if (text.empty()) {
    state_ = State::kCertificateCommands;
    return {};
  }
  if (text.starts_with(kOption)) return option(text.substr(kOption.size()));
  if (text.starts_with("pusher ") || text.starts_with("pushee ") || text.starts_with("nonce ")) return {};
  return refuse("a certificate with a line that is not known");
}

Result<void> GitCommandReader::option(std::string_view text) {
  if (has_control(text)) return refuse("a control character in a push option");
  if (std::find(push_.options.begin(), push_.options.end(), text) != push_.options.end()) return {};
  if (push_.options.size() == kMostOptions)
    return refuse("more than " + std::to_string(kMostOptions) + " push options");
  push_.options.emplace_back(text);
  return {};
}

}  // namespace firestop::egress
