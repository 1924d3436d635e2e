#include "guest/run_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "codec/json.h"

namespace firestop::guest {

Result<void> write_run_files(const channel::Start& start, const Inside& root) {
  TRY(root.write("/etc/hostname", start.hostname + "\n", 0644));
  TRY(root.write("/etc/hosts",
                 "127.0.0.1 localhost " + start.hostname + "\n::1 localhost ip6-localhost ip6-loopback\n",
                 0644));
  TRY(root.write("/etc/resolv.conf", "", 0644));

  codec::JsonArray granted;
  for (const std::string& capability : start.capabilities) granted.emplace_back(capability);
  TRY(root.make_directories("run/firestop", {}));
  TRY(root.write("/run/firestop/capabilities.json",
                 codec::write_json(codec::JsonObject{{"capabilities", granted}}) + "\n", 0644));

  // Below the cap of the run's disk, not of its memory.
  TRY(root.make_directories("tmp", {}));
  TRY_ASSIGN(const UniqueFd tmp, root.open_at("/tmp", O_RDONLY | O_DIRECTORY));
  if (::fchmod(tmp.get(), 01777) != 0) return fail_errno("guest.run_files", "cannot open /tmp to all");
  for (const char* point : {"proc", "sys", "dev"}) TRY(root.make_directories(point, {}));
  return {};
}

}  // namespace firestop::guest
