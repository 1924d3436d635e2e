#include "manifest/explain.h"

#include <algorithm>

#include "base/units.h"
#include "manifest/explain_facts.h"
#include "manifest/words.h"

namespace firestop::manifest {
namespace {

constexpr size_t kWidth = 80;

size_t columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// A row of a section: what, how, and a remark at the right.
struct Row {
  std::string label, text, remark;
};
struct Section {
  std::string title;
  std::vector<Row> rows;
};

// All sections share one column for what and one for how.
class Page {
 public:
  explicit Page(Colour colour) : colour_(colour) {}

  void line(const std::string& text) { out_ += text + "\n"; }
  std::string bold(const std::string& text) const { return paint("1", text); }
  std::string dim(const std::string& text) const { return paint("2", text); }

  void print(const std::vector<Section>& sections) {
    size_t value = 0;
    for (const auto& section : sections)
      for (const auto& row : section.rows) {
        label_ = std::max(label_, std::min<size_t>(columns(row.label), 24));
        if (!row.remark.empty()) value = std::max(value, columns(row.text));
      }
    for (const auto& section : sections) {
      out_ += "\n" + bold(section.title) + "\n";
      for (const auto& row : section.rows) add(row, value);
    }
  }
  std::string take() { return std::move(out_); }

 private:
  std::string paint(const char* code, const std::string& text) const {
    return colour_ == Colour::kOn ? std::string("\x1b[") + code + "m" + text + "\x1b[0m" : text;
  }

  void add(const Row& row, size_t value) {
    const size_t indent = 2 + label_ + 2, length = columns(row.label);
    out_ += "  " + row.label;
    if (row.text.empty()) {
      out_ += "\n";
      return;
    }
    out_ += length > label_ ? "\n" + std::string(indent, ' ') : std::string(label_ - length + 2, ' ');
    if (row.remark.empty())
      wrap(row.text, indent);
    else
      out_ += row.text + std::string(value - columns(row.text) + 2, ' ') + dim(row.remark) + "\n";
  }

  // Words filled into what is left of the line; a word that is longer stands alone.
  void wrap(const std::string& text, size_t indent) {
    size_t column = indent;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(' ', at), text.size());
      const std::string word = text.substr(at, end - at);
      if (column > indent && column + 1 + columns(word) > kWidth) {
        out_ += "\n" + std::string(indent, ' ');
        column = indent;
      } else if (column > indent) {
        out_ += ' ';
        ++column;
      }
      out_ += word;
      column += columns(word);
      at = end + 1;
    }
    out_ += "\n";
  }

  Colour colour_;
  size_t label_ = 12;
  std::string out_;
};

std::string join(const std::vector<std::string>& words, const char* between = ", ") {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : between) + one_line(word);
  return out;
}

// As a shell would need it, so that one word does not look like two.
std::string shell_words(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) {
    const std::string shown = one_line(word);
    const bool plain = !shown.empty() && shown.find_first_of(" \"'$`\\&|;<>()*?[]#~!{}") == std::string::npos;
    out += (out.empty() ? "" : " ") + (plain ? shown : "'" + shown + "'");
  }
  return out;
}

std::string describe_source(const Source& source) {
  return source.bind.empty() ? one_line(source.path) : "--bind " + source.bind + "=PATH";
}

std::string describe_mode(const Entry& entry) {
  std::string out;
  if (entry.permissions != 0) {
    char octal[32];
    std::snprintf(octal, sizeof octal, ", mode %04o", entry.permissions);
    out += octal;
  }
  if (!entry.owner.empty()) out += ", owner " + entry.owner;
  if (!entry.group.empty()) out += ", group " + entry.group;
  return out;
}

std::string describe_entry(const Entry& entry) {
  switch (entry.type) {
    case EntryType::kGitRepo: {
      std::string out = entry.repo == "." ? "this repository" : "repository " + one_line(entry.repo);
      if (!entry.host.empty()) out += " of " + entry.host;
      out += " at " + (entry.ref.empty() ? "HEAD" : one_line(entry.ref));
      return out + (entry.depth ? ", " + std::to_string(*entry.depth) +
                                      (*entry.depth == 1 ? " commit" : " commits") + " of history"
                                : ", whole history");
    }
    case EntryType::kFile:
      return "text of " + format_bytes(entry.content.size()) + describe_mode(entry);
    case EntryType::kDir:
      return "empty folder" + describe_mode(entry);
    case EntryType::kLocalFile:
      return "copy of file " + describe_source(entry.source) + describe_mode(entry);
    case EntryType::kLocalDir:
      return "copy of folder " + describe_source(entry.source) + describe_mode(entry);
    case EntryType::kMount:
      return "read-only image of " + describe_source(entry.source) + describe_mode(entry);
  }
  return {};
}

std::string describe_ports(const EgressRule& rule) {
  std::string out;
  for (const uint16_t port : rule.ports) out += (out.empty() ? ":" : ",") + std::to_string(port);
  return out;
}

std::string describe_rule(const EgressRule& rule) {
  std::string out = rule.protocol;
  if (rule.git) {
    out = "git " + one_line(rule.git->repository) + ":";
    if (rule.git->fetch) out += " fetch";
    if (!rule.git->push.empty())
      out += std::string(rule.git->fetch ? "," : "") + " push " + join(rule.git->push, " ");
    if (rule.git->deletes) out += ", delete";
    if (!rule.git->options.empty()) out += ", push options " + join(rule.git->options, " ");
  } else if (rule.protocol == "http") {
    out += rule.methods.empty() ? ", every method" : ", " + join(rule.methods, " ");
    out += rule.paths.empty() ? ", every path" : " " + join(rule.paths, " ");
  }
  if (rule.websocket) out += ", websocket";
  if (rule.private_addresses) out += ", private addresses too";
  if (!rule.ca.empty()) out += ", an authority of its own";
  if (!rule.credential.empty()) out += ", with credential " + rule.credential;
  if (rule.plain_text) out += " without TLS too";
  if (!rule.placeholders_in_body.empty()) out += ", " + body_words(rule);
  if (!rule.preset.empty()) out += ", by preset " + rule.preset;
  return out;
}

std::vector<Row> rows_in(const Manifest& manifest, bool mounts) {
  std::vector<Row> rows;
  for (const auto& entry : manifest.entries)
    if ((entry.type == EntryType::kMount) == mounts)
      rows.push_back({one_line(entry.path), describe_entry(entry), ""});
  if (!mounts && manifest.capabilities.contains(Capability::kMemory))
    rows.push_back({kMemoryPath, "what the last run named " + manifest.name + " kept", ""});
  if (mounts)
    for (const auto& skill : manifest.skills)
      rows.push_back({std::string(kSkillsPath) + "/" + skill.name,
                      "skill, read-only image of " + describe_source(skill.source), ""});
  return rows;
}

std::vector<Row> rows_out(const Manifest& manifest) {
  std::vector<Row> rows;
  for (const auto& entry : manifest.entries) {
    if (entry.type == EntryType::kGitRepo && entry.host.empty() && manifest.kind == Kind::kRun)
      rows.push_back({one_line(entry.path),
                      "new commits and changes, as branch agent/NAME of " +
                          (entry.repo == "." ? "this repository" : one_line(entry.repo)),
                      ""});
    if (entry.output)
      rows.push_back({one_line(entry.path),
                      "folder of at most " + format_bytes(entry.max_bytes) + ", to firestop-out/NAME/", ""});
  }
  if (manifest.capabilities.contains(Capability::kMemory))
    rows.push_back(
        {kMemoryPath,
         "folder of " + memory_cap_words(manifest.limits) + ", kept for the next run named " + manifest.name,
         ""});
  rows.push_back({"stdout, stderr", "at most " + format_bytes(manifest.limits.output), ""});
  rows.push_back({"exit status", "the command's own", ""});
  return rows;
}

std::vector<Row> rows_account(const Manifest& manifest) {
  std::vector<Row> rows;
  const auto user = std::find_if(manifest.users.begin(), manifest.users.end(),
                                 [&](const User& u) { return u.name == manifest.run_as; });
  std::string account = manifest.run_as + " (uid " + std::to_string(manifest.uid_of(manifest.run_as)) + ")";
  if (user != manifest.users.end() && !user->groups.empty()) account += ", groups " + join(user->groups);
  rows.push_back({"account", account, ""});
  rows.push_back(
      {"command",
       manifest.command.empty() ? "none declared; firestop run -- COMMAND" : shell_words(manifest.command),
       ""});
  rows.push_back(
      {"image",
       manifest.image.oci.empty() ? one_line(manifest.image.recipe) : "oci:" + one_line(manifest.image.oci),
       ""});
  std::vector<std::string> names = variables_set_by_firestop(manifest);
  for (const auto& [name, value] : manifest.environment) names.push_back(name);
  for (const auto& credential : manifest.credentials) names.push_back(credential.env);
  std::sort(names.begin(), names.end());
  rows.push_back({"environment", join(names), ""});
  return rows;
}

}  // namespace

std::string explain_text(const Manifest& manifest, Colour colour) {
  Page page(colour);
  page.line(page.bold(one_line(manifest.name)) +
            page.dim("  " + one_line(manifest.file) + ", ends after " + format_duration(manifest.rating)));
  if (!manifest.description.empty()) page.line(one_line(manifest.description, 400));

  std::vector<Row> network, credentials, capabilities, caps, denied;
  for (const auto& rule : manifest.egress)
    network.push_back(
        {(rule.host.empty() ? rule.cidr : rule.host) + describe_ports(rule), describe_rule(rule), ""});
  if (network.empty()) network.push_back({"none", "the machine has no network device", ""});
  for (const auto& credential : manifest.credentials)
    credentials.push_back(
        {credential.name,
         credential.inject + ", placeholder in $" + credential.env +
             (credential.key_id.empty() ? "" : ", $" + credential.key_id) +
             (credential.session_token.empty() ? "" : ", $" + credential.session_token) +
             (credential.on_alarm == "deny" ? "" : ", " + credential.on_alarm + " on alarm"),
         ""});
  for (const auto capability : manifest.capabilities)
    capabilities.push_back({to_string(capability), meaning_of(capability), ""});
  for (const auto& cap : caps_of(manifest))
    caps.push_back({cap.label, cap.text, cap.declared ? "declared" : "default"});
  for (const auto& [what, meaning] : denied_by(manifest)) denied.push_back({what, meaning, ""});

  std::vector<Section> sections{{"Files in (copies)", rows_in(manifest, false)},
                                {"Mounts (read-only, in nothing that comes back)", rows_in(manifest, true)},
                                {"Out", rows_out(manifest)},
                                {"Network", std::move(network)},
                                {"Credentials", std::move(credentials)},
                                {"Inside", rows_account(manifest)},
                                {"Capabilities", std::move(capabilities)},
                                {"Caps", std::move(caps)},
                                {"Not granted", std::move(denied)}};
  for (auto& section : sections)
    if (section.rows.empty()) section.rows.push_back({"none", "", ""});
  page.print(sections);
  return page.take();
}

}  // namespace firestop::manifest
