#include "guest/root_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/path.h"
#include "codec/json.h"
#include "guest/accounts.h"
#include "guest/boot.h"
#include "guest/inside.h"
#include "guest/network.h"
#include "guest/root.h"
#include "guest/trust.h"

namespace firestop::guest {
namespace {

// Directories that get a layer of ours. In the image they are directories or missing: a link there would be
// hidden by ours, and with it what it leads to.
constexpr const char* kDirectories[] = {"dev", "etc", "home", "proc", "run", "sys", "tmp", "workspace"};

Result<void> make_tops(const Inside& image, const Inside& upper) {
  for (const char* name : kDirectories) {
    const auto found = image.open_at(name, O_PATH | O_NOFOLLOW);
    struct stat what{};
    if (found && ::fstat(found->get(), &what) == 0 && !S_ISDIR(what.st_mode))
      return fail("guest.image", std::string("the image's /") + name + " is not a directory");
    TRY(upper.make_directories(name, {}));
  }
  return {};
}

// Files that the host wants there, of the account that the command runs as.
Result<void> write_files(const channel::Start& start, const Inside& upper) {
  Owner owner;
  for (const auto& account : start.accounts)
    if (account.name == start.run_as) owner = {account.uid, account.gid};
  for (const auto& file : start.files) {
    if (file.path.empty() || file.path[0] != '/')
      return fail("guest.start", "a file without an absolute path");
    TRY(upper.make_directories(parent_path(file.path).substr(1), owner));
    TRY(upper.write(file.path, file.bytes, static_cast<mode_t>(file.mode)));
    TRY_ASSIGN(const UniqueFd made, upper.open_at(file.path, O_RDONLY | O_NOFOLLOW));
    if (::fchown(made.get(), owner.uid, owner.gid) != 0)
      return fail_errno("guest.root_files", "cannot give away " + file.path);
  }
  return {};
}

}  // namespace

Result<void> write_root_files(const channel::Start& start) {
  TRY_ASSIGN(const Inside image, Inside::open(kImage));
  TRY_ASSIGN(const Inside upper, Inside::open(kRootUpper));
  TRY(make_tops(image, upper));
  TRY(write_accounts(start, image, upper));
  TRY(upper.write("/etc/hostname", start.hostname + "\n", 0644));
  TRY(upper.write("/etc/hosts",
                  "127.0.0.1 localhost " + start.hostname + "\n::1 localhost ip6-localhost ip6-loopback\n",
                  0644));
  TRY(upper.write("/etc/resolv.conf", start.network ? std::string("nameserver ") + kResolver + "\n" : "",
                  0644));
  TRY(write_trust(start, image, upper));
  TRY(write_files(start, upper));

  codec::JsonArray granted;
  codec::JsonObject told;
  for (const std::string& capability : start.capabilities) granted.emplace_back(capability);
  told["capabilities"] = std::move(granted);
  for (const auto& mount : start.mounts)
    if (mount.path == channel::kSkillsPath)
      told["skills"] = codec::JsonObject{{"directory", "/workspace/" + mount.path}};
  for (const auto& memory : start.memory)
    told["memory"] = codec::JsonObject{{"directory", "/workspace/" + memory.path},
                                       {"max_bytes", memory.max_bytes},
                                       {"max_files", memory.max_files}};
  TRY(upper.make_directories("run/firestop", {}));
  TRY(upper.write("/run/firestop/capabilities.json", codec::write_json(told) + "\n", 0644));

  // On the run's disk, so that it is below that cap and not below the memory's.
  TRY_ASSIGN(const UniqueFd tmp, upper.open_at("tmp", O_RDONLY | O_DIRECTORY));
  if (::fchmod(tmp.get(), 01777) != 0) return fail_errno("guest.root_files", "cannot open /tmp to all");
  return {};
}

}  // namespace firestop::guest
