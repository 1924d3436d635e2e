#include "manifest/words.h"

#include "base/units.h"
#include "manifest/explain_facts.h"

namespace firestop::manifest {

std::string join_words(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : between) + one_line(word);
  return out;
}

std::string command_words(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) {
    const std::string shown = one_line(word);
    const bool plain = !shown.empty() && shown.find_first_of(" \"'$`\\&|;<>()*?[]#~!{}") == std::string::npos;
    out += (out.empty() ? "" : " ") + (plain ? shown : "'" + shown + "'");
  }
  return out;
}

std::string source_words(const Source& source) {
  return source.bind.empty() ? one_line(source.path) : "--bind " + one_line(source.bind);
}

std::string entry_words(const Entry& entry) {
  switch (entry.type) {
    case EntryType::kGitRepo: {
      std::string out = entry.repo == "." ? "this repository" : "repository " + one_line(entry.repo);
      if (!entry.host.empty()) out += " of " + one_line(entry.host);
      out += " at " + (entry.ref.empty() ? "HEAD" : one_line(entry.ref));
      if (entry.depth)
        out += ", " + std::to_string(*entry.depth) + (*entry.depth == 1 ? " commit" : " commits");
      return out;
    }
    case EntryType::kFile:
      return "text of " + format_bytes(entry.content.size());
    case EntryType::kDir:
      return entry.output ? "folder that comes back" : "empty folder";
    case EntryType::kLocalFile:
      return "copy of file " + source_words(entry.source);
    case EntryType::kLocalDir:
      return "copy of folder " + source_words(entry.source);
    case EntryType::kMount:
      return "image of " + source_words(entry.source);
  }
  return {};
}

std::string memory_cap_words(const Limits& limits) {
  return "at most " + format_bytes(limits.memory_directory) + ", " + std::to_string(limits.memory_files) +
         (limits.memory_files == 1 ? " file" : " files");
}

std::string ports_words(const std::vector<uint16_t>& ports) {
  std::string out;
  for (const uint16_t port : ports) out += (out.empty() ? "" : ",") + std::to_string(port);
  return out;
}

std::string destination_words(const EgressRule& rule) {
  return one_line(rule.host.empty() ? rule.cidr : rule.host) + ":" + ports_words(rule.ports);
}

std::string body_words(const EgressRule& rule) {
  return rule.placeholders_in_body == "all" ? "placeholders of all credentials may stand in bodies"
                                            : "its placeholder may stand in bodies";
}

std::string request_words(const EgressRule& rule) {
  std::string out;
  if (rule.git) {
    out = "git " + one_line(rule.git->repository) + ":";
    if (rule.git->fetch) out += " fetch";
    if (!rule.git->push.empty())
      out += std::string(rule.git->fetch ? "," : "") + " push " + join_words(rule.git->push, " ");
    if (rule.git->deletes) out += ", delete";
    if (!rule.git->options.empty()) out += ", push options " + join_words(rule.git->options, " ");
  } else if (rule.protocol == "http") {
    out = rule.methods.empty() ? "every method" : join_words(rule.methods, " ");
    out += rule.paths.empty() ? ", every path" : " on " + join_words(rule.paths, " ");
    if (rule.websocket) out += ", websocket";
  } else {
    out = rule.protocol == "tls" ? "TLS, content not read" : "raw TCP, content not read";
  }
  if (rule.private_addresses) out += ", private addresses";
  if (!rule.ca.empty()) out += ", an authority of its own";
  if (rule.plain_text) out += ", credential without TLS too";
  if (!rule.placeholders_in_body.empty()) out += ", " + body_words(rule);
  return out;
}

std::string image_words(const Image& image) {
  return image.oci.empty() ? one_line(image.recipe) : "oci:" + one_line(image.oci);
}

}  // namespace firestop::manifest
