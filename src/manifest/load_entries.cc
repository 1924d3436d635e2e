#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/path.h"
#include "base/units.h"
#include "codec/base64.h"
#include "manifest/loader.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

using codec::in_quotes;
using codec::ScalarType;

constexpr size_t kMostEntries = 1000;
constexpr size_t kMostImages =
    15;  // git_repo and mount: each is a disk of its own, and a machine has so many
constexpr std::string_view kTypes[] = {"git_repo", "file", "dir", "local_file", "local_dir", "mount"};

// The path with its "." and ".." and empty components worked out, as a careless reader would.
std::string normal_form(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part == ".." && !parts.empty())
      parts.pop_back();
    else if (!part.empty() && part != "." && part != "..")
      parts.push_back(part);
    at = end + 1;
  }
  std::string out;
  for (const auto part : parts) out += (out.empty() ? "" : "/") + std::string(part);
  return out;
}

class EntryLoader {
 public:
  EntryLoader(Loading& loading, const Member& member)
      : loading_(loading), reader_(loading.reader), member_(member) {
    entry_.path = member.key;
    entry_.where = member.key_where;
  }

  std::optional<Entry> load() {
    if (const auto why = why_not_relative_path(entry_.path); !why.empty()) {
      fault_path(std::string(why));
    } else if (const auto first = entry_.path.substr(0, entry_.path.find('/'));
               first == ".firestop" || first == ".skills" || first == ".memory") {
      fault_path("the path begins with " + first + ", which Firestop keeps for itself");
    }
    const auto type = find_type();
    if (!type) return std::nullopt;
    entry_.type = *type;
    const Fields fields(reader_, member_, keys_of(*type),
                        "an entry of type " + std::string(to_string(*type)));
    switch (*type) {
      case EntryType::kGitRepo:
        load_git_repo(fields);
        break;
      case EntryType::kFile:
        load_file_content(fields);
        break;
      case EntryType::kDir:
        load_dir(fields);
        break;
      case EntryType::kLocalFile:
      case EntryType::kLocalDir:
        entry_.source = load_local_source(loading_, fields);
        break;
      case EntryType::kMount:
        load_mount(fields);
        break;
    }
    load_ownership(fields);
    return std::move(entry_);
  }

 private:
  void fault_path(std::string why) {
    reader_.fault(member_.key_where, member_.field, std::move(why),
                  "expected a path relative to the workspace, such as data/input");
  }

  std::optional<EntryType> find_type() {
    if (member_.node->kind != codec::YamlNode::Kind::kMapping) {
      reader_.members(member_, "a mapping with type: " + listed(kTypes));
      return std::nullopt;
    }
    const auto* type = member_.node->find("type");
    if (!type) {
      reader_.fault(member_.key_where, codec::child_path(member_.field, "type"), "is missing",
                    "expected " + listed(kTypes));
      return std::nullopt;
    }
    const auto index = reader_.word({&type->value, codec::child_path(member_.field, "type")}, kTypes);
    if (!index) return std::nullopt;
    return static_cast<EntryType>(*index);
  }

  void load_git_repo(const Fields& fields) {
    const auto repo = fields.require(
        "repo", "\".\" for the repository that the manifest lies in, or a path below its folder");
    if (const auto host = fields.get("host")) {
      if (const auto name = reader_.text(*host, "a host name")) {
        if (const auto why = why_not_host(*name); !why.empty())
          reader_.fault(*host, in_quotes(*name) + " " + why, "expected a host name such as git.example.com");
        else if (name->find('*') != std::string::npos)
          reader_.fault(*host, in_quotes(*name) + " is a pattern", "expected one host");
        entry_.host = canonical_host(*name);
      }
      if (repo) {
        if (const auto path = reader_.text(*repo, "the repository's path on the host, such as acme/widget")) {
          if (const auto why = why_not_relative_path(*path); !why.empty())
            reader_.fault(*repo, in_quotes(*path) + ": " + std::string(why),
                          "expected the repository's path on the host, such as acme/widget");
          entry_.repo = *path;
        }
      }
    } else if (repo) {
      if (repo->node->kind == codec::YamlNode::Kind::kScalar && repo->node->text == ".")
        entry_.repo = ".";
      else if (auto path = load_source_path(loading_, *repo, ", or \".\"; a repository elsewhere needs host"))
        entry_.repo = std::move(*path);
    }
    if (const auto place = fields.get("ref")) {
      if (const auto ref = reader_.text(*place, "a branch, tag or commit")) {
        if (const auto why = why_not_ref(*ref); !why.empty())
          reader_.fault(*place, in_quotes(*ref) + " " + why, "expected a branch, tag or commit");
        entry_.ref = *ref;
      }
    }
    if (const auto place = fields.get("depth"))
      if (const auto depth = reader_.integer(*place, 1, INT32_MAX))
        entry_.depth = static_cast<uint32_t>(*depth);
  }

  void load_file_content(const Fields& fields) {
    const auto place = fields.require("content", "the file's text");
    if (!place) return;
    if (place->node->kind == codec::YamlNode::Kind::kMapping) {
      load_bytes(*place);
      return;
    }
    if (auto content = reader_.text(*place, "the file's text", Empty::kAccept))
      entry_.content = std::move(*content);
  }

  // content: {base64: TEXT}, for bytes that are no text
  void load_bytes(const Place& place) {
    const Fields fields(reader_, place, kContentKeys, "content");
    const auto member = fields.require("base64", "the file's bytes");
    const auto text = member ? reader_.text(*member, "base64", Empty::kAccept) : std::nullopt;
    if (!text) return;
    if (auto bytes = codec::decode_base64(*text))
      entry_.content = std::move(*bytes);
    else
      reader_.fault(*member, "is no base64", "expected RFC 4648 base64 with padding and without white space");
  }

  void load_dir(const Fields& fields) {
    if (const auto place = fields.get("output")) entry_.output = reader_.boolean(*place).value_or(false);
    const uint64_t result = loading_.manifest.limits.result;
    entry_.max_bytes = entry_.output ? result : 0;
    const auto place = fields.get("max");
    if (!place) return;
    if (!entry_.output) {
      reader_.fault(fields.key_position("max"), place->field, "is a cap on what does not come back",
                    "expected output: true beside it");
      return;
    }
    const auto most = reader_.bytes(*place, 1, 1ull << 44);
    if (!most) return;
    if (*most > result)
      reader_.fault(*place, "is more than limits.result (" + format_bytes(result) + ")",
                    "expected at most that, or a larger limits.result");
    entry_.max_bytes = *most;
  }

  void load_mount(const Fields& fields) {
    if (const auto source = fields.require("source", "{bind: NAME} or {path: PATH}"))
      entry_.source = load_source(loading_, *source);
    const auto place = fields.get("read_only");
    if (!place) return;
    if (const auto read_only = reader_.boolean(*place); read_only && !*read_only)
      reader_.fault(*place,
                    "is false, but no folder of the host is ever shared into a sandbox: a mount is a copy "
                    "that nothing comes back from",
                    "expected true; for what comes back use a dir with output: true, or a git_repo");
  }

  void load_ownership(const Fields& fields) {
    if (const auto place = fields.get("permissions")) load_permissions(*place);
    if (const auto place = fields.get("owner")) {
      if (auto name = reader_.text(*place, "a declared user")) {
        loading_.accounts.emplace_back(*place, *name);
        entry_.owner = std::move(*name);
      }
    }
    if (const auto place = fields.get("group")) {
      if (auto name = reader_.text(*place, "a declared group")) {
        loading_.groups.emplace_back(*place, *name);
        entry_.group = std::move(*name);
      }
    }
  }

  // 0644 is octal in YAML 1.1 and decimal in YAML 1.2, so it is accepted in quotes or as 0o644 only.
  void load_permissions(const Place& place) {
    constexpr std::string_view kExpected =
        "expected octal permissions in quotes, such as \"0644\" or \"0755\"";
    const auto& node = *place.node;
    const bool scalar = node.kind == codec::YamlNode::Kind::kScalar;
    const auto type = scalar ? codec::type_of(node) : ScalarType::kText;
    std::string_view digits = scalar ? std::string_view(node.text) : "";
    const bool prefixed = digits.starts_with("0o");
    if (prefixed) digits.remove_prefix(2);
    const bool octal = digits.size() >= 3 && digits.size() <= 4 &&
                       digits.find_first_not_of("01234567") == std::string_view::npos;
    if (scalar && octal && digits[0] == '0' && type == ScalarType::kInteger && !prefixed) {
      reader_.fault(place, "the number " + node.text + " is octal to some readers and decimal to others",
                    "write \"" + node.text + "\" in quotes");
    } else if (!octal || (type == ScalarType::kInteger && !prefixed)) {
      if (node.kind != codec::YamlNode::Kind::kInvalid)
        reader_.fault(place, "is " + describe(node), std::string(kExpected));
    } else {
      uint32_t bits = 0;
      for (const char c : digits) bits = bits * 8 + static_cast<uint32_t>(c - '0');
      if (bits & 07000u)
        reader_.fault(place, node.text + " sets the setuid, setgid or sticky bit",
                      "expected the nine permission bits only");
      else if (bits == 0)
        reader_.fault(place, node.text + " lets nobody in", std::string(kExpected));
      entry_.permissions = bits;
    }
  }

  Loading& loading_;
  Reader& reader_;
  const Member& member_;
  Entry entry_;
};

// Why `entry` cannot lie below `above`, or empty.
std::string why_not_below(const Entry& above, const Entry& entry) {
  const std::string name = in_quotes(above.path);
  switch (above.type) {
    case EntryType::kFile:
    case EntryType::kLocalFile:
      return "lies below " + name + ", which is a file";
    case EntryType::kMount:
      return "lies below " + name + ", which is a read-only mount";
    case EntryType::kLocalDir:
      return "lies below " + name + ", whose content is that of its source";
    case EntryType::kGitRepo:
      if (entry.type == EntryType::kMount) return {};
      return "lies below " + name +
             ", whose content is that of its commit; only a mount may lie in a repository";
    case EntryType::kDir:
      if (!above.output) return {};
      if (entry.type == EntryType::kMount)
        return "lies below " + name + ", which comes back, and a mount never does";
      if (entry.type == EntryType::kGitRepo || entry.output)
        return "lies below " + name + ", which comes back, and would come back twice";
      return {};
  }
  return {};
}

}  // namespace

void load_entries(Loading& loading, const Place& place) {
  Reader& reader = loading.reader;
  const auto members = reader.members(place, "a mapping of paths to entries", kMostEntries);

  std::map<std::string, const Member*> by_path;
  std::map<std::string, Entry> entries;
  const auto& capabilities = loading.manifest.capabilities;
  const size_t others = capabilities.count(Capability::kSkills) + capabilities.count(Capability::kMemory);
  size_t images = 0;
  for (const auto& member : members) {
    if (auto entry = EntryLoader(loading, member).load()) {
      images += entry->type == EntryType::kGitRepo || entry->type == EntryType::kMount;
      entries.emplace(entry->path, std::move(*entry));
    }
    const auto [first, fresh] = by_path.emplace(normal_form(member.key), &member);
    if (!fresh)
      reader.fault(member.key_where, member.field, "is the same path as " + in_quotes(first->second->key),
                   "expected one entry for a path; the first is at line " +
                       std::to_string(first->second->key_where.line));
  }
  if (images > kMostImages - others)
    reader.fault(place, "has " + std::to_string(images) + " entries of type git_repo or mount",
                 "expected at most " + std::to_string(kMostImages - others) +
                     ", since each is a disk of the machine" +
                     (others > 0 ? ", as are skills and the memory directory" : ""));

  for (const auto& [path, entry] : entries) {
    for (size_t slash = path.rfind('/'); slash != std::string::npos && slash > 0;
         slash = path.rfind('/', slash - 1)) {
      const auto above = entries.find(path.substr(0, slash));
      if (above == entries.end()) continue;
      const auto why = why_not_below(above->second, entry);
      if (why.empty()) continue;
      reader.fault(entry.where, codec::child_path(place.field, path), why, "expected another path");
      break;
    }
  }
  for (auto& [path, entry] : entries) loading.manifest.entries.push_back(std::move(entry));
}

}  // namespace firestop::manifest
