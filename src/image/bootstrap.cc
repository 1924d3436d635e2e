#include "image/bootstrap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "base/units.h"
#include "image/sources.h"
#include "image/tar_import.h"

namespace firestop::image {

namespace {

constexpr const char* kScratchNote = "/scratch-folder";
constexpr uint64_t kScratchNeeded = 1536ull << 20;  // packages and the unpacked system: 0.7 GB for agent-base
constexpr uint64_t kCacheNeeded = 1024ull << 20;    // contents and the image: 0.75 GB for agent-base

// Whatever the recipe says: what comes from this machine, and what differs without a reason.
const std::vector<std::string>& always_removed() {
  static const std::vector<std::string> kPatterns = {
      "/etc/hostname",
      "/etc/resolv.conf",
      "/etc/machine-id",
      "/etc/.pwd.lock",
      "/etc/apt/sources.list*",
      "/etc/apt/apt.conf.d/99mmdebstrap",
      "/etc/dpkg/dpkg.cfg.d/99mmdebstrap",
      "/etc/apt/auth.conf*",
      "/var/log/*",
      "/var/cache/*",
      "/var/lib/apt/lists/*",
      "/var/lib/dpkg/*-old",
      "/tmp/*",
      "/run/*",
      "/dev/*",
  };
  return kPatterns;
}

ImportRules import_rules(const Recipe& recipe) {
  ImportRules rules;
  rules.remove = recipe.remove;
  rules.remove.insert(rules.remove.end(), always_removed().begin(), always_removed().end());
  rules.keep = recipe.keep;
  const std::string line = "deb http://deb.debian.org/debian";
  rules.add = {{"etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"},
               {"etc/hostname", "firestop\n"},
               {"etc/apt/sources.list", line + " " + recipe.suite + " main\n" + line + " " + recipe.suite +
                                            "-updates main\n" + line + "-security " + recipe.suite +
                                            "-security main\n"}};
  return rules;
}

Result<void> need_program(const std::string& name, const std::string& package) {
  if (!find_program(name).empty()) return {};
  return fail("image.missing_tool", "building an image needs the program '" + name + "'",
              "sudo apt-get install " + package);
}

uint64_t free_bytes(const std::string& folder) {
  struct statvfs info = {};
  if (statvfs(folder.c_str(), &info) != 0) return 0;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

Result<void> need_space(const std::string& folder, uint64_t needed) {
  const uint64_t has = free_bytes(folder);
  if (has >= needed) return {};
  return fail("image.disk_full",
              "building an image needs " + format_bytes(needed) + " free in '" + folder + "', which has " +
                  format_bytes(has >> 20 << 20),
              "make room, or set TMPDIR and XDG_CACHE_HOME to folders that have it");
}

// A folder that other user ids can look into, as the namespaces of mmdebstrap need; a home folder often
// is not. Noted in `work_folder`, so that it is found again after a crash.
Result<std::string> make_scratch(const std::string& work_folder) {
  std::vector<std::string> bases;
  if (const char* named = std::getenv("TMPDIR"); named != nullptr && *named == '/') bases.emplace_back(named);
  bases.insert(bases.end(), {"/tmp", "/var/tmp"});
  const auto fits = std::find_if(bases.begin(), bases.end(),
                                 [](const auto& base) { return free_bytes(base) >= kScratchNeeded; });
  if (fits == bases.end()) {
    TRY(need_space(bases.front(), kScratchNeeded));
    return fail("image.disk_full", "no folder for temporary files");
  }
  std::string folder = *fits + "/firestop-image-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return fail_errno("image.build_failed", "making '" + folder + "'");
  TRY(write_file_atomic(work_folder + kScratchNote, folder));
  if (chmod(folder.c_str(), 0755) != 0) return fail_errno("image.build_failed", "chmod '" + folder + "'");
  return folder;
}

// The proxies that the machine's apt uses, as options.
std::vector<std::string> apt_proxies() {
  std::vector<std::string> options;
  const auto dump = run_checked({.argv = {"apt-config", "dump"}});
  if (!dump) return options;
  std::istringstream in(*dump);
  for (std::string line; std::getline(in, line);) {
    const size_t space = line.find(' ');
    const std::string key = line.substr(0, space);
    const bool proxy = key.starts_with("Acquire::http") && key.find("::Proxy") != std::string::npos;
    if (proxy && space != std::string::npos) options.push_back(line);
  }
  return options;
}

// mmdebstrap's own lines for people ("I: installing essential packages..."), as steps of six.
std::string step_of(const std::string& line) {
  static constexpr std::pair<const char*, const char*> kSteps[] = {
      {"running apt-get update", "1/6 package lists"},
      {"downloading packages", "2/6 downloading packages"},
      {"extracting archives", "3/6 unpacking"},
      {"installing essential packages", "4/6 installing the base system"},
      {"installing remaining packages", "5/6 installing packages"},
      {"creating tarball", "6/6 packing the image"},
  };
  for (const auto& [start, step] : kSteps) {
    if (line.find(start) != std::string::npos) return step;
  }
  return "";
}

// Tells the steps as they come, until the other side closes; returns the last part of what was printed.
std::string follow(int fd, const Say& say) {
  std::string tail, line;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    for (const char c : std::string_view(buffer, static_cast<size_t>(n))) {
      if (c != '\n' && c != '\r') {
        if (line.size() < 1000) line += c;
        continue;
      }
      if (const std::string step = step_of(line); !step.empty()) say(step);
      tail += line + "\n";
      line.clear();
    }
    if (tail.size() > 16384) tail.erase(0, tail.size() - 16384);
  }
  return tail + line;
}

Result<std::pair<UniqueFd, UniqueFd>> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail_errno("image.build_failed", "pipe");
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

Result<std::vector<std::string>> mmdebstrap_command(const Recipe& recipe, const std::string& folder) {
  // In a user namespace also for root, so that no maintainer script has real powers; where the kernel forbids
  // that, root may do without.
  const bool namespaces = run_checked({.argv = {"unshare", "--user", "--map-root-user", "true"}}).has_value();
  std::vector<std::string> argv = {
      "mmdebstrap", geteuid() == 0 && !namespaces ? "--mode=root" : "--mode=unshare", "--variant=minbase",
      "--format=tar", "--include=" + joined(recipe.packages)};
  argv.push_back("--dpkgopt=force-unsafe-io");  // a build that the machine's crash cuts short is thrown away
  argv.push_back("--aptopt=Acquire::Retries \"3\"");
  argv.push_back("--aptopt=Acquire::Languages \"none\"");
  for (const std::string& option : apt_proxies()) argv.push_back("--aptopt=" + option);
  argv.insert(argv.end(), {recipe.suite, "-"});
  TRY_ASSIGN(const AptSources sources, find_sources(recipe.suite));
  TRY_ASSIGN(const std::vector<std::string> files, write_sources(sources, folder));
  argv.insert(argv.end(), files.begin(), files.end());
  return argv;
}

bool complains(const std::string& line) {
  static constexpr const char* kStarts[] = {
      "E:", "W:", "Err:", "dpkg:", "rm:", "find:", "tar:", "mount:", "umount:"};
  return std::any_of(std::begin(kStarts), std::end(kStarts),
                     [&](const char* start) { return line.starts_with(start); });
}

std::string last_lines(const std::string& output) {
  std::istringstream in(output);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (complains(line)) lines.push_back(line);
  }
  std::string out;
  for (size_t i = lines.size() > 4 ? lines.size() - 4 : 0; i < lines.size(); ++i) out += "\n  " + lines[i];
  return out;
}

}  // namespace

Unexpected explain_failure(const std::string& what, const std::string& output) {
  const auto says = [&output](std::initializer_list<const char*> texts) {
    return std::any_of(texts.begin(), texts.end(),
                       [&](const char* t) { return output.find(t) != std::string::npos; });
  };
  const std::string message = what + last_lines(output);
  if (says({"No space left on device"})) {
    return fail("image.disk_full", message,
                "make room, or set TMPDIR and XDG_CACHE_HOME to folders that have it");
  }
  if (says({"Temporary failure resolving", "Could not resolve", "Could not connect", "Unable to connect",
            "Failed to fetch", "Network is unreachable", "Connection timed out", "Connection failed"})) {
    return fail(
        "image.network", message,
        "the first build needs a Debian mirror: check the network, or set FIRESTOP_APT_SOURCES to a file in "
        "the format of sources.list(5) that names one within reach, or http_proxy");
  }
  if (says({"newuidmap", "newgidmap", "/etc/subuid", "/etc/subgid", "unshare", "user namespaces"})) {
    return fail("image.namespaces", message,
                "an ordinary user needs the package uidmap and lines in /etc/subuid and /etc/subgid "
                "(sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER); "
                "or build once as root with the same XDG_CACHE_HOME");
  }
  if (says({"Unable to locate package"})) {
    return fail("image.build_failed", message, "a package of the recipe does not exist in this suite");
  }
  return fail("image.build_failed", message);
}

Result<void> build_root(const Recipe& recipe, const std::string& work_folder, const std::string& image_path,
                        const Say& say) {
  TRY(need_program("mmdebstrap", "mmdebstrap uidmap"));
  TRY(need_space(work_folder, kCacheNeeded));
  TRY_ASSIGN(const std::string scratch, make_scratch(work_folder));
  Command command;
  TRY_ASSIGN(command.argv, mmdebstrap_command(recipe, scratch));
  std::vector<std::string> environment = {"TMPDIR=" + scratch, "LC_ALL=C.UTF-8",
                                          "DEBIAN_FRONTEND=noninteractive"};
  for (const char* kept : {"PATH", "HOME", "USER", "http_proxy", "https_proxy", "no_proxy"}) {
    if (const char* value = std::getenv(kept)) environment.push_back(std::string(kept) + "=" + value);
  }
  command.env = environment;
  TRY_ASSIGN(auto tar, make_pipe());
  TRY_ASSIGN(auto messages, make_pipe());
  command.descriptors = {{tar.second.get(), 1}, {messages.second.get(), 2}};
  TRY_ASSIGN(Child child, spawn(command));
  tar.second.reset();
  messages.second.reset();

  const ImportRules rules = import_rules(recipe);
  Result<uint64_t> packed = 0;
  std::string output;
  {
    const std::jthread importer([&, tar_fd = std::move(tar.first)]() mutable {
      packed = root_from_tar(tar_fd.get(), image_path, rules);
      tar_fd.reset();  // a failed import ends mmdebstrap by a broken pipe
    });
    output = follow(messages.first.get(), say);
  }
  const int status = child.wait();
  remove_leftovers(work_folder);
  // A faulty archive follows from a failed mmdebstrap; anything else (a full disk) made it fail.
  if (!packed && packed.error().code != "image.bad_archive") {
    return wrap(std::move(packed).error(), "image '" + recipe.name + "'");
  }
  if (status != 0) {
    return explain_failure(
        "mmdebstrap could not build the image '" + recipe.name + "' (" + describe_status(status) + ")",
        output);
  }
  if (!packed) return wrap(std::move(packed).error(), "image '" + recipe.name + "'");
  return {};
}

Result<std::string> fetch_kernel(const Recipe& recipe, const std::string& work_folder, const Say& say) {
  TRY(need_program("apt-get", "apt"));
  TRY(need_space(work_folder, kCacheNeeded / 4));
  for (const char* folder : {"/apt/parts", "/apt/state/lists/partial", "/apt/cache/archives/partial"}) {
    TRY(make_directories(work_folder + folder, 0755));
  }
  const std::string apt = work_folder + "/apt";
  TRY_ASSIGN(const AptSources sources, find_sources(recipe.suite));
  TRY(write_sources(sources, apt + "/parts"));
  std::string config = "Dir::State \"" + apt + "/state\";\nDir::State::status \"/dev/null\";\nDir::Cache \"" +
                       apt + "/cache\";\nDir::Etc::sourcelist \"/dev/null\";\nDir::Etc::sourceparts \"" +
                       apt +
                       "/parts\";\nAcquire::Languages \"none\";\nAcquire::Retries \"3\";\n"
                       // Other users cannot enter our folder, so apt must not step down to one of them.
                       "APT::Sandbox::User \"\";\n";
  TRY(write_file_atomic(apt + "/apt.conf", config, 0644));
  const auto apt_run = [&](std::vector<std::string> argv) -> Result<std::string> {
    std::vector<std::string> environment = {"APT_CONFIG=" + apt + "/apt.conf", "LC_ALL=C.UTF-8"};
    for (const char* kept : {"PATH", "HOME", "http_proxy", "https_proxy", "no_proxy"}) {
      if (const char* value = std::getenv(kept)) environment.push_back(std::string(kept) + "=" + value);
    }
    TRY_ASSIGN(const RunResult result, run({.argv = argv, .env = environment, .directory = apt}));
    if (!result.ok()) return explain_failure(argv[0] + " " + argv[1] + " failed", result.out + result.err);
    // apt-get update ends well without any list; then the next step would blame the package.
    if (result.err.find("Failed to fetch") != std::string::npos)
      return explain_failure("apt-get update", result.err);
    return result.out;
  };
  say("kernel: package lists");
  TRY(apt_run({"apt-get", "update", "-q"}));
  TRY_ASSIGN(const std::string depends, apt_run({"apt-cache", "depends", recipe.kernel_package}));
  // The named package only leads to the newest real one.
  std::string package = recipe.kernel_package;
  if (const size_t at = depends.find("Depends: linux-image-"); at != std::string::npos) {
    package = depends.substr(at + 9, depends.find_first_of(" \n", at + 9) - at - 9);
  }
  say("kernel: downloading " + package);
  TRY(apt_run({"apt-get", "download", "-q", package}));
  TRY_ASSIGN(const std::string listing,
             run_checked({.argv = {"find", apt, "-maxdepth", "1", "-name", "*.deb"}}));
  const std::string deb = listing.substr(0, listing.find('\n'));
  if (deb.empty()) return fail("image.build_failed", "apt-get download left no package of " + package);
  return deb;
}

void remove_leftovers(const std::string& work_folder) {
  const std::string note = work_folder + kScratchNote;
  const auto noted = read_file(note, 4096);
  (void)::unlink(note.c_str());
  if (!noted || noted->find("/firestop-image-") == std::string::npos) return;
  struct stat info = {};
  if (lstat(noted->c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) return;
  if (remove_tree(*noted)) return;
  // What a killed mmdebstrap left belongs to user ids that only its own namespace may touch.
  (void)run({.argv = {"mmdebstrap", "--unshare-helper", "rm", "-rf", *noted}});
  (void)remove_tree(*noted);
}

}  // namespace firestop::image
