#include "cli/scripts_export.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <set>

#include "base/digest.h"
#include "base/fd.h"
#include "base/file.h"
#include "evidence/content_read.h"

namespace firestop::cli {
namespace {

using codec::Json;

Result<UniqueFd> open_folder(const std::string& directory) {
  TRY(make_directories(directory));
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno("export.folder", directory);
  return fd;
}

// Under a name of its own first, so that a name never has half of the bytes.
Result<void> write_at(int folder, const std::string& name, std::string_view bytes) {
  const std::string temporary = "." + name + "." + random_hex(6);
  const UniqueFd fd(
      ::openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return fail_errno("export.write", name);
  const auto written = write_all(fd.get(), bytes);
  if (written && ::renameat(folder, temporary.c_str(), folder, name.c_str()) == 0) return {};
  Error error = written ? fail_errno("export.write", name).value() : written.error();
  (void)::unlinkat(folder, temporary.c_str(), 0);
  return tl::unexpected(std::move(error));
}

// Whether it is there already: a file, with these bytes.
bool has(int folder, const std::string& name) {
  const UniqueFd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat about{};
  if (!fd.valid() || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  const auto bytes = read_all(fd.get(), evidence::kMostContentRead);
  return bytes && sha256_hex(*bytes) == name;
}

}  // namespace

Json script_json(const story::Story& story, const story::UnreadScript& each) {
  const story::Script& script = story.scripts[each.last];
  codec::JsonObject out{{"number", static_cast<int64_t>(each.number)},
                        {"runs", each.runs},
                        {"first_us", story.scripts[each.first].at_us},
                        {"last_us", script.at_us},
                        {"how", script.how},
                        {"path", evidence::json_of_bytes(script.path)},
                        {"interpreter", evidence::json_of_bytes(script.interpreter)},
                        {"digest", script.digest},
                        {"size", script.size},
                        {"kept", script.kept},
                        {"note", script.note},
                        {"ran_by", process_json(story, script.process)},
                        {"written_by", process_json(story, script.writer)},
                        {"exists", Json()}};
  if (script.exists) out["exists"] = *script.exists;
  if (codec::JsonObject* runner = out["ran_by"].as_object())
    (*runner)["name"] = evidence::json_of_bytes(story::name_of_runner(story, script));
  return out;
}

Result<ExportedScripts> export_scripts(const ReadRecord& record,
                                       const std::vector<story::UnreadScript>& scripts,
                                       const std::string& directory) {
  TRY_ASSIGN(const UniqueFd folder, open_folder(directory));
  ExportedScripts out;
  codec::JsonArray index;
  std::set<std::string> done;
  for (const auto& each : scripts) {
    const std::string& digest = record.story.scripts[each.last].digest;
    index.push_back(script_json(record.story, each));
    if (digest.empty()) {
      ++out.without_bytes;
      continue;
    }
    if (!done.insert(digest).second) continue;
    TRY_ASSIGN(const auto bytes, evidence::read_content(record.directory, digest));
    if (!has(folder.get(), digest)) TRY(write_at(folder.get(), digest, bytes));
    ++out.files;
  }
  TRY(write_at(folder.get(), "index.json",
               codec::write_json_pretty(codec::JsonObject{{"run", record.word}, {"scripts", index}})));
  return out;
}

}  // namespace firestop::cli
