#include "manifest/init.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/path.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "manifest/rules.h"

namespace firestop::manifest {
namespace {

class Folder {
 public:
  Folder(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  bool has(const char* name) const {
    struct stat info;
    return ::fstatat(fd_.get(), name, &info, 0) == 0;
  }
  // A small regular file's text, or nothing; never blocks on what is no file.
  std::string text(const std::string& name) const {
    const auto fd = open_beneath(fd_.get(), name, O_RDONLY | O_NONBLOCK);
    struct stat info;
    if (!fd || ::fstat(fd->get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
    return read_all(fd->get(), 1u << 20).value_or(std::string());
  }
  std::string name() const { return std::string(file_name(path_)); }

 private:
  UniqueFd fd_;
  std::string path_;
};

// A name that a manifest may have, from a folder's.
std::string run_name(std::string_view folder) {
  std::string out;
  for (const char c : folder) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    const bool good = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (good)
      out += lower;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  out.resize(std::min<size_t>(out.size(), 63));
  while (!out.empty() && out.back() == '-') out.pop_back();
  return why_not_run_name(out).empty() ? out : "sandbox";
}

// The branch that is checked out, or empty: detached, no repository, a name that a manifest could not have.
std::string current_branch(const Folder& folder) {
  const std::string head = folder.text(".git/HEAD");
  constexpr std::string_view kPrefix = "ref: refs/heads/";
  if (!head.starts_with(kPrefix)) return {};
  const std::string branch = head.substr(kPrefix.size(), head.find('\n') - kPrefix.size());
  return why_not_ref(branch).empty() ? branch : std::string();
}

struct Project {
  const char* language;
  std::string test;       // a shell line that runs its tests
  const char* note = "";  // what the image lacks for it
};

Project detect(const Folder& folder) {
  if (folder.has("Cargo.toml")) return {"Rust", "cargo test", "cargo is not in agent-base"};
  if (folder.has("go.mod")) return {"Go", "go test ./...", "go is not in agent-base"};
  if (folder.has("package.json")) {
    const auto package = codec::parse_json(folder.text("package.json"));
    const auto* scripts = package ? package->find("scripts") : nullptr;
    const bool has_test = scripts && scripts->find("test");
    return {"JavaScript", has_test ? "npm test" : "node --test", "node is not in agent-base"};
  }
  if (folder.has("CMakeLists.txt"))
    return {"C or C++ with CMake",
            "cmake -B /tmp/build && cmake --build /tmp/build && ctest --test-dir /tmp/build",
            "cmake is not in agent-base"};
  if (folder.has("pyproject.toml") || folder.has("setup.py") || folder.has("setup.cfg")) {
    const bool pytest = folder.has("pytest.ini") || folder.has("conftest.py") ||
                        folder.text("pyproject.toml").find("pytest") != std::string::npos;
    if (pytest) return {"Python", "python3 -m pytest", "pytest is not in agent-base"};
    return {"Python", "python3 -m unittest"};
  }
  for (const char* name : {"GNUmakefile", "makefile", "Makefile"}) {
    if (!folder.has(name)) continue;
    const std::string makefile = "\n" + folder.text(name);
    for (const char* target : {"test", "check"})
      if (makefile.find("\n" + std::string(target) + ":") != std::string::npos)
        return {"make", std::string("make ") + target};
    return {"make", "make"};
  }
  return {"", "ls -la"};
}

// A double-quoted YAML scalar, good for any text.
std::string yaml_text(std::string_view text) {
  return codec::write_json(codec::Json(text));
}

}  // namespace

Result<std::string> init_text(const std::string& folder_path) {
  auto fd = open_file(folder_path, O_PATH | O_DIRECTORY);
  if (!fd) return fail("init.not_a_folder", fd.error().message, "name a folder that exists");
  std::error_code ignored;
  const auto real = std::filesystem::canonical(folder_path, ignored);
  const Folder folder(std::move(*fd), ignored ? folder_path : real.string());

  const bool repository = folder.has(".git");
  const std::string branch = repository ? current_branch(folder) : std::string();
  const Project project = detect(folder);

  std::string out;
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  line("# What a sandbox of this folder may touch. What is not written here, it does not have.");
  line("#   firestop check      is this file right?");
  line("#   firestop explain    what can a sandbox of it touch?");
  line("#   firestop run        run `command` in one; or: firestop run -- COMMAND");
  line("firestop: 1");
  line("name: " + yaml_text(run_name(folder.name())));
  line("");
  line("rating: 1h                 # the longest that a run may take; the host ends it then");
  line("image: agent-base          # git, python3, perl, curl, make and a C compiler");
  line("");
  line("workspace:                 # becomes /workspace, where the command starts");
  line("  entries:");
  if (repository) {
    line("    repo:                  # a fresh working copy; commits come back as a branch agent/NAME");
    line("      type: git_repo");
    line("      repo: \".\"");
    if (!branch.empty())
      line("      ref: " + yaml_text(branch));
    else
      line("      # ref: main          # a branch, tag or commit; without it, what is checked out");
  } else {
    line("    work:                  # a copy of this folder; changes to it do not come back");
    line("      type: local_dir");
    line("      source: {bind: work} # firestop run --bind work=.");
  }
  line("    out:                   # what is written here comes back to firestop-out/NAME/out");
  line("      type: dir");
  line("      output: true");
  line("      max: 64MiB");
  line("    # data:                # a folder of yours, read-only: firestop run --bind data=PATH");
  line("    #   type: mount");
  line("    #   source: {bind: data}");
  line("  environment:             # nothing of your environment is inherited");
  line("    LANG: C.UTF-8");
  line("");
  if (project.language[0] != '\0')
    line("# Looks like " + std::string(project.language) +
         (project.note[0] != '\0' ? "; " + std::string(project.note) + "." : "."));
  line("command: [sh, -c, " +
       yaml_text(std::string("cd ") + (repository ? "repo" : "work") + " && " + project.test) + "]");
  line("");
  line("capabilities:              # an empty list means none");
  line("  - shell                  # run any program, not the command alone");
  line("  - filesystem             # write in the workspace");
  line("");
  line("limits:");
  line("  cpus: 1");
  line("  memory: 1GiB");
  line("  disk: 4GiB");
  line("  processes: 512");
  line("");
  line("# No egress section: the sandbox has no network device at all.");
  return out;
}

}  // namespace firestop::manifest
