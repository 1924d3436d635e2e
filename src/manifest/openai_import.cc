#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/path.h"
#include "manifest/canonical.h"
#include "manifest/loader.h"
#include "manifest/openai.h"
#include "manifest/openai_entries.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

// What the SDK's document leaves to the machine that it was written for, said in full.
class Completion {
 public:
  explicit Completion(Imported& imported) : imported_(imported) {}

  void complete_entries(YamlNode& entries) {
    if (!is_mapping(entries)) return;
    for (auto& member : entries.members) {
      YamlNode& entry = member.value;
      const auto* type = is_mapping(entry) ? entry.find("type") : nullptr;
      if (!type || !is_text(type->value)) continue;
      const std::string name = type->value.text;
      if (name == "git_repo") add_host(entry);
      if (name == "local_file" || name == "local_dir") bind_outside(entry, "src");
      if (name == "mount") bind_outside(entry, "source");
      if (name == "dir")
        if (auto* children = find(entry, "children")) complete_entries(children->value);
    }
  }

  // The account that a run has; the SDK says it where the agent is made.
  std::optional<YamlNode> first_of_several(YamlNode& users) {
    if (users.kind != YamlNode::Kind::kSequence || users.items.size() < 2) return std::nullopt;
    YamlNode& first = users.items.front();
    if (is_text(first)) return first;
    const auto* name = first.find("name");
    if (!name) return std::nullopt;
    return name->value;
  }

 private:
  void add_host(YamlNode& entry) {
    const auto* host = entry.find("host");
    if (host && host->value.kind != YamlNode::Kind::kNull) return;
    const Position where = host ? host->where : entry.where;
    (void)take(entry, "host");
    entry.members.push_back({"host", where, text_node("github.com", where)});
    imported_.left_out.push_back(
        {"", where, "", "a git_repo without a host is fetched from github.com, the SDK's default", ""});
  }

  void bind_outside(YamlNode& entry, std::string_view key) {
    auto* source = find(entry, key);
    if (!source || !is_text(source->value)) return;
    const std::string path = source->value.text;
    const auto leaves = [&] {
      const bool printable = std::none_of(path.begin(), path.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\';
      });
      return printable && (path.starts_with('/') || path.starts_with("~/") || path == "." ||
                           path.starts_with("./") || path == ".." || path.starts_with("../"));
    };
    if (!leaves()) return;
    const Position where = source->value.where;
    auto bind = mapping_node("bind", text_node(bind_name(path), where));
    source->key = "source";
    source->value = std::move(bind);
  }

  // A name after the last component; one path has one name.
  std::string bind_name(const std::string& path) {
    const auto known = names_.find(path);
    if (known != names_.end()) return known->second;
    std::string base;
    for (const char c : std::string(file_name(path.ends_with('/') ? path.substr(0, path.size() - 1) : path)))
      base += why_not_bind_name("x" + std::string(1, c)).empty() ? c : '-';
    while (!base.empty() && (base[0] == '-' || base[0] == '_')) base.erase(0, 1);
    base = base.empty() ? "folder" : base.substr(0, 50);
    std::string name = base;
    for (int i = 2; !taken_.insert(name).second; ++i) name = base + "-" + std::to_string(i);
    names_[path] = name;
    imported_.binds.push_back(name + "=" + path);
    return name;
  }

  Imported& imported_;
  std::map<std::string, std::string> names_;
  std::set<std::string> taken_;
};

YamlNode plain_node(std::string text) {
  auto out = text_node(std::move(text), {});
  out.style = YamlNode::Style::kPlain;
  return out;
}

std::vector<std::string> notes_of(const Imported& imported, const std::string& file) {
  std::vector<std::string> out{"Made by `firestop import openai` from " + codec::in_quotes(file_name(file)) +
                               "."};
  if (!imported.left_out.empty()) out.push_back("What that document says and this one does not:");
  for (const auto& note : imported.left_out)
    out.push_back("  line " + std::to_string(note.where.line) + ": " +
                  (note.field.empty() ? "" : note.field + ": ") + note.wrong);
  if (!imported.binds.empty()) out.push_back("What lies outside its folder gets its place when it is run:");
  for (const auto& bind : imported.binds) {
    const size_t equals = bind.find('=');
    out.push_back("  --bind " + bind.substr(0, equals + 1) + codec::in_quotes(bind.substr(equals + 1)));
  }
  return out;
}

}  // namespace

Imported import_openai(const std::string& file, std::string_view text, const std::string& name) {
  Imported out;
  auto document = codec::parse_yaml(text);
  if (document.root.kind != YamlNode::Kind::kInvalid) {
    Completion completion(out);
    YamlNode wrapper;
    wrapper.kind = YamlNode::Kind::kMapping;
    wrapper.members.push_back({"firestop", {}, plain_node("1")});
    wrapper.members.push_back({"name", {}, text_node(name, {})});
    if (is_mapping(document.root)) {
      if (auto* entries = find(document.root, "entries")) completion.complete_entries(entries->value);
      auto* users = find(document.root, "users");
      if (auto first = users ? completion.first_of_several(users->value) : std::nullopt)
        wrapper.members.push_back({"run_as", users->where, std::move(*first)});
    }
    const Position start = document.root.where;
    wrapper.members.push_back({"workspace", start, std::move(document.root)});
    document.root = std::move(wrapper);
  }
  out.loaded = load_document(file, text, std::move(document), out.left_out);
  if (!out.loaded.faults.empty()) return out;
  std::sort(out.left_out.begin(), out.left_out.end(), [](const auto& a, const auto& b) {
    return std::tie(a.where.line, a.where.column, a.field) < std::tie(b.where.line, b.where.column, b.field);
  });
  out.text = workspace_yaml(out.loaded.manifest, notes_of(out, file));
  const auto again = load_text(file, out.text);
  if (!again.faults.empty() || canonical_digest(again.manifest, nullptr).value_or("") !=
                                   canonical_digest(out.loaded.manifest, nullptr).value_or("-")) {
    const std::string why = again.faults.empty() ? "it says something else" : again.faults.front().wrong;
    out.loaded.faults.push_back(
        {file, {}, "", "cannot be written in our spelling: " + why, "please report this"});
    out.text.clear();
  }
  return out;
}

}  // namespace firestop::manifest
