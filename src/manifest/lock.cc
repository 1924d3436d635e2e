#include "manifest/lock.h"

#include <initializer_list>

#include "base/path.h"
#include "codec/yaml.h"
#include "manifest/beside.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

using codec::in_quotes;
using codec::Json;
using codec::JsonObject;

constexpr uint64_t kMaxBytes = 1u << 20;
constexpr size_t kMaxRepositories = 1000;
constexpr size_t kMaxPresets = 100;
constexpr std::string_view kDigestPrefix = "sha256:";
constexpr const char* kHint = "write it anew with: firestop lock";

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Reads one lock file; every fault says where it lies.
class LockReader {
 public:
  explicit LockReader(const std::string& file) : file_(file) {}

  Result<Lock> read(std::string_view text) const {
    if (text.size() > kMaxBytes) return bad("", "is larger than 1 MiB");
    auto json = codec::parse_json(text);
    if (!json) return bad("", "is not strict JSON: " + json.error().message);
    const auto* root = json->as_object();
    if (!root) return bad("", "is no object");
    TRY(check_version(*root));
    if (root->contains("presets"))
      TRY(check_keys("", *root, {"firestop_lock", "image", "repositories", "presets"}));
    else
      TRY(check_keys("", *root, {"firestop_lock", "image", "repositories"}));
    Lock lock;
    TRY(read_image(root->at("image"), lock));
    const auto* repositories = root->at("repositories").as_object();
    if (!repositories) return bad("repositories", "is no object");
    if (repositories->size() > kMaxRepositories) return bad("repositories", "has too many members");
    for (const auto& [path, value] : *repositories) {
      TRY_ASSIGN(lock.repositories[path], read_repository(path, value));
    }
    if (const auto found = root->find("presets"); found != root->end())
      TRY(read_presets(found->second, lock));
    return lock;
  }

 private:
  Unexpected bad(const std::string& field, const std::string& why) const {
    return fail("lock.bad", file_ + ": " + (field.empty() ? "" : field + " ") + why, kHint);
  }

  // Before the keys, since another version may have others.
  Result<void> check_version(const JsonObject& root) const {
    const auto found = root.find("firestop_lock");
    if (found == root.end()) return bad("", "has no firestop_lock, so it is no lock of Firestop");
    const auto* version = found->second.as_int();
    if (!version || *version < 1) return bad("firestop_lock", "is no version");
    if (*version > 1)
      return fail("lock.newer_version",
                  file_ + ": version " + std::to_string(*version) + " was written by a newer firestop",
                  "use that firestop, or lock again with this one");
    return {};
  }

  Result<void> check_keys(const std::string& field, const JsonObject& object,
                          std::initializer_list<std::string_view> keys) const {
    for (const auto key : keys)
      if (!object.contains(key)) return bad(codec::child_path(field, key), "is missing");
    if (object.size() == keys.size()) return {};
    for (const auto& [key, value] : object) {
      bool known = false;
      for (const auto each : keys) known = known || each == key;
      if (!known) return bad(codec::child_path(field, key), "is an unknown key");
    }
    return {};
  }

  Result<std::string> text(const std::string& field, const Json& json) const {
    if (const auto* value = json.as_string()) return *value;
    return bad(field, "is no text");
  }

  Result<void> read_presets(const Json& json, Lock& lock) const {
    const auto* object = json.as_object();
    if (!object || object->empty() || object->size() > kMaxPresets)
      return bad("presets", "is no object of presets");
    for (const auto& [name, value] : *object) {
      const std::string field = codec::child_path("presets", name);
      if (const auto why = why_not_run_name(name); !why.empty()) return bad(field, why);
      TRY_ASSIGN(const std::string digest, text(field, value));
      if (!digest.starts_with(kDigestPrefix) || !is_hex(digest.substr(kDigestPrefix.size()), 64))
        return bad(field, "is not sha256: and 64 lower-case hex digits");
      lock.presets[name] = digest.substr(kDigestPrefix.size());
    }
    return {};
  }

  Result<void> read_image(const Json& json, Lock& lock) const {
    if (json.is_null()) return {};
    const auto* object = json.as_object();
    if (!object) return bad("image", "is neither an object nor null");
    TRY(check_keys("image", *object, {"recipe", "digest"}));
    TRY_ASSIGN(lock.recipe, text("image.recipe", object->at("recipe")));
    if (const auto why = why_not_image(lock.recipe); !why.empty() || lock.recipe.starts_with("oci:"))
      return bad("image.recipe", in_quotes(lock.recipe) + " is no name of a recipe");
    TRY_ASSIGN(const std::string digest, text("image.digest", object->at("digest")));
    if (!digest.starts_with(kDigestPrefix) || !is_hex(digest.substr(kDigestPrefix.size()), 64))
      return bad("image.digest", "is not sha256: and 64 lower-case hex digits");
    lock.image_digest = digest.substr(kDigestPrefix.size());
    return {};
  }

  Result<Lock::Repository> read_repository(const std::string& path, const Json& json) const {
    const std::string field = codec::child_path("repositories", path);
    if (const auto why = why_not_relative_path(path); !why.empty())
      return bad(field, ": " + std::string(why));
    const auto* object = json.as_object();
    if (!object) return bad(field, "is no object");
    TRY(check_keys(field, *object, {"ref", "commit", "object_format"}));
    Lock::Repository out;
    TRY_ASSIGN(out.ref, text(field + ".ref", object->at("ref")));
    if (!out.ref.empty())
      if (const auto why = why_not_ref(out.ref); !why.empty())
        return bad(field + ".ref", in_quotes(out.ref) + " " + why);
    TRY_ASSIGN(out.object_format, text(field + ".object_format", object->at("object_format")));
    if (out.object_format != "sha1" && out.object_format != "sha256")
      return bad(field + ".object_format", "is neither sha1 nor sha256");
    TRY_ASSIGN(out.commit, text(field + ".commit", object->at("commit")));
    if (!is_hex(out.commit, out.object_format == "sha1" ? 40 : 64))
      return bad(field + ".commit", "is no full object id of format " + out.object_format);
    return out;
  }

  const std::string& file_;
};

std::string shown_ref(const std::string& ref) {
  return ref.empty() ? "HEAD" : in_quotes(ref);
}

}  // namespace

Json Lock::to_json() const {
  JsonObject all;
  for (const auto& [path, repository] : repositories)
    all[path] = JsonObject{
        {"ref", repository.ref}, {"commit", repository.commit}, {"object_format", repository.object_format}};
  Json image;
  if (!recipe.empty())
    image = JsonObject{{"recipe", recipe}, {"digest", std::string(kDigestPrefix) + image_digest}};
  JsonObject out{{"firestop_lock", 1}, {"image", std::move(image)}, {"repositories", std::move(all)}};
  JsonObject pinned;
  for (const auto& [name, digest] : presets) pinned[name] = std::string(kDigestPrefix) + digest;
  if (!pinned.empty()) out["presets"] = std::move(pinned);
  return out;
}

std::string Lock::to_text() const {
  return codec::write_json_pretty(to_json());
}

std::string lock_path(const std::string& manifest_file) {
  const auto name = file_name(manifest_file);
  const bool usual = name == "firestop.yaml" || name == "firestop.yml" || name == "firestop.json";
  if (!usual) return manifest_file + ".lock";
  return manifest_file.substr(0, manifest_file.size() - name.size()) + "firestop.lock";
}

Result<Lock> parse_lock(std::string_view text, const std::string& file) {
  return LockReader(file).read(text);
}

Result<std::optional<Lock>> load_lock(const std::string& path) {
  const auto read = read_beside(path, kMaxBytes);
  if (!read) return fail("lock.unreadable", "cannot read the lock: " + read.error().message, kHint);
  const auto& text = *read;
  if (!text) return std::optional<Lock>();
  TRY_ASSIGN(Lock lock, parse_lock(*text, path));
  return std::optional<Lock>(std::move(lock));
}

Result<void> check_lock(const Manifest& manifest, const Lock& lock) {
  std::string differences;
  const auto differs = [&](const std::string& line) { differences += "\n  " + line; };
  size_t matched = 0;
  for (const auto& entry : manifest.entries) {
    if (entry.type != EntryType::kGitRepo) continue;
    const auto locked = lock.repositories.find(entry.path);
    if (locked == lock.repositories.end()) {
      differs(entry.path + ": is not locked");
      continue;
    }
    ++matched;
    if (locked->second.ref != entry.ref)
      differs(entry.path + ": the manifest says " + shown_ref(entry.ref) + ", the lock " +
              shown_ref(locked->second.ref));
  }
  if (matched != lock.repositories.size())
    for (const auto& [path, repository] : lock.repositories) {
      bool there = false;
      for (const auto& entry : manifest.entries)
        there = there || (entry.type == EntryType::kGitRepo && entry.path == path);
      if (!there) differs(path + ": is locked, and no git_repo of the manifest");
    }
  if (lock.recipe != manifest.image.recipe)
    differs("image: the manifest says " +
            in_quotes(manifest.image.recipe.empty() ? "oci:" + manifest.image.oci : manifest.image.recipe) +
            ", the lock " + (lock.recipe.empty() ? "none" : in_quotes(lock.recipe)));
  if (lock.presets != manifest.presets)
    for (const auto& [name, digest] : manifest.presets) {
      const auto locked = lock.presets.find(name);
      if (locked == lock.presets.end())
        differs("preset " + name + ": is not locked");
      else if (locked->second != digest)
        differs("preset " + name + ": has other rules in this firestop than in the one that locked it");
    }
  for (const auto& [name, digest] : lock.presets)
    if (!manifest.presets.contains(name)) differs("preset " + name + ": is locked, and not in the manifest");
  if (differences.empty()) return {};
  return fail("lock.stale", "the lock is not that of " + manifest.file + ":" + differences,
              "lock again with: firestop lock");
}

}  // namespace firestop::manifest
