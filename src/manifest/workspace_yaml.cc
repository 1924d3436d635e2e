#include <algorithm>

#include "codec/base64.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "manifest/openai.h"

namespace firestop::manifest {
namespace {

// Those that the reader takes in escapes only: control characters, line separators, changes of direction.
bool needs_escape(uint32_t c) {
  return (c >= 0x7F && c <= 0x9F) || c == 0x61C || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

// A double-quoted scalar, good for any UTF-8 text.
std::string quoted(std::string_view text) {
  const std::string json = codec::write_json(codec::Json(text));
  std::string out;
  for (size_t i = 0; i < json.size();) {
    const auto byte = [&](size_t at) { return static_cast<uint32_t>(static_cast<unsigned char>(json[at])); };
    const uint32_t lead = byte(i);
    const size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint32_t c = lead;
    if (length == 2) c = (lead & 0x1Fu) << 6 | (byte(i + 1) & 0x3Fu);
    if (length == 3) c = (lead & 0x0Fu) << 12 | (byte(i + 1) & 0x3Fu) << 6 | (byte(i + 2) & 0x3Fu);
    if (length < 4 && needs_escape(c)) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\u";
      for (const int shift : {12, 8, 4, 0}) out += kHex[c >> shift & 0xFu];
    } else {
      out += json.substr(i, length);
    }
    i += length;
  }
  return out;
}

// Plain where every reader takes it for text.
std::string scalar(const std::string& text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool plain =
      !text.empty() && text.size() <= 128 && letter(text[0]) && letter(text.back()) &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") ==
          std::string::npos;
  constexpr std::string_view kWords[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const bool word = std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords);
  return plain && !word ? text : quoted(text);
}

class Writer {
 public:
  void line(const std::string& text) { out_ += text + "\n"; }

  void field(const char* key, const std::string& value) {
    if (!value.empty()) line("      " + std::string(key) + ": " + scalar(value));
  }

  void entry(const Entry& entry) {
    line("    " + scalar(entry.path) + ":");
    line("      type: " + std::string(to_string(entry.type)));
    field("host", entry.host);
    field("repo", entry.repo);
    field("ref", entry.ref);
    if (entry.depth) line("      depth: " + std::to_string(*entry.depth));
    if (entry.type == EntryType::kFile) {
      const bool text = codec::is_utf8(entry.content) && entry.content.find('\0') == std::string::npos;
      line("      content: " +
           (text ? quoted(entry.content) : "{base64: " + quoted(codec::encode_base64(entry.content)) + "}"));
    }
    if (!entry.source.path.empty()) line("      source: {path: " + quoted(entry.source.path) + "}");
    if (!entry.source.bind.empty()) line("      source: {bind: " + quoted(entry.source.bind) + "}");
    if (entry.type == EntryType::kMount) line("      read_only: true");
    if (entry.output) {
      line("      output: true");
      line("      max: " + std::to_string(entry.max_bytes) + "B");
    }
    if (entry.permissions != 0) {
      std::string octal = "0000";
      for (int i = 0; i < 3; ++i)
        octal[static_cast<size_t>(3 - i)] = static_cast<char>('0' + (entry.permissions >> (3 * i) & 7u));
      line("      permissions: \"" + octal + "\"");
    }
    field("owner", entry.owner);
    field("group", entry.group);
  }

  void accounts(const Manifest& manifest) {
    line("  users:");
    for (const auto& user : manifest.users) {
      std::string groups;
      for (const auto& group : user.groups) groups += (groups.empty() ? "" : ", ") + scalar(group);
      line("    - {name: " + scalar(user.name) + (groups.empty() ? "" : ", groups: [" + groups + "]") + "}");
    }
    if (!manifest.groups.empty()) line("  groups:");
    for (const auto& group : manifest.groups) line("    - {name: " + scalar(group) + "}");
  }

  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace

std::string workspace_yaml(const Manifest& manifest, const std::vector<std::string>& notes) {
  Writer writer;
  for (const auto& note : notes) writer.line("# " + note);
  writer.line("# What is not written here, a sandbox of it does not have: look with `firestop explain`.");
  writer.line("firestop: 1");
  writer.line("name: " + scalar(manifest.name));
  writer.line("");
  writer.line(manifest.entries.empty() ? "workspace:" : "workspace:\n  entries:");
  for (const auto& entry : manifest.entries) writer.entry(entry);
  if (!manifest.environment.empty()) writer.line("  environment:");
  for (const auto& [name, value] : manifest.environment)
    writer.line("    " + scalar(name) + ": " + quoted(value));
  writer.accounts(manifest);
  writer.line("run_as: " + scalar(manifest.run_as));
  writer.line("");
  writer.line(
      "# The SDK keeps these with the agent and not in its manifest. Nothing is granted until it is "
      "written:");
  writer.line("# command: [sh, -c, \"ls -la\"]");
  writer.line("# capabilities: [shell, filesystem]");
  return writer.take();
}

}  // namespace firestop::manifest
