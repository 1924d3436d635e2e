#include "egress/testing/own_network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "base/file.h"

namespace firestop::egress::testing {
namespace {

std::string failed(const char* what) {
  return std::string(what) + ": " + std::strerror(errno);
}

std::string unshare_all() {
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  const int root = user == 0 ? 0 : CLONE_NEWUSER;
  if (::unshare(root | CLONE_NEWNET | CLONE_NEWNS) != 0) return failed("unshare");
  const auto write = [](const char* path, const std::string& text) {
    const auto file = open_file(path, O_WRONLY);
    return file && write_all(file->get(), text);
  };
  if (root != 0 && !(write("/proc/self/setgroups", "deny") &&
                     write("/proc/self/uid_map", "0 " + std::to_string(user) + " 1") &&
                     write("/proc/self/gid_map", "0 " + std::to_string(group) + " 1")))
    return failed("the user's mapping");
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return failed("mount");
  return {};
}

std::string add_v4(int socket, const char* alias, const char* address) {
  ifreq request{};
  std::strncpy(request.ifr_name, alias, sizeof request.ifr_name - 1);
  auto& own = reinterpret_cast<sockaddr_in&>(request.ifr_addr);
  own.sin_family = AF_INET;
  ::inet_pton(AF_INET, address, &own.sin_addr);
  if (::ioctl(socket, SIOCSIFADDR, &request) != 0) return failed(address);
  ::inet_pton(AF_INET, "255.255.255.255", &own.sin_addr);
  return ::ioctl(socket, SIOCSIFNETMASK, &request) == 0 ? std::string() : failed("netmask");
}

std::string set_up() {
  if (auto why = unshare_all(); !why.empty()) return why;
  const UniqueFd v4(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)),
      v6(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq up{};
  std::strcpy(up.ifr_name, "lo");
  up.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(v4.get(), SIOCSIFFLAGS, &up) != 0) return failed("lo");
  const std::array<const char*, 4> addresses{kPublic, kOtherPublic, kPrivate, kMetadata};
  for (size_t i = 0; i < addresses.size(); ++i)
    if (auto why = add_v4(v4.get(), ("lo:" + std::to_string(i + 1)).c_str(), addresses[i]); !why.empty())
      return why;
  in6_ifreq request{};
  ::inet_pton(AF_INET6, kPublicV6, &request.ifr6_addr);
  request.ifr6_prefixlen = 128;
  request.ifr6_ifindex = static_cast<int>(::if_nametoindex("lo"));
  if (::ioctl(v6.get(), SIOCSIFADDR, &request) != 0) return failed(kPublicV6);
  return {};
}

}  // namespace

const std::string& enter_own_network() {
  static const std::string why_not = set_up();
  return why_not;
}

void replace_file(const char* path, const std::string& content) {
  char real[PATH_MAX], name[] = "/tmp/firestop-own-network-XXXXXX";
  const UniqueFd file(::mkstemp(name));
  ASSERT_TRUE(file.valid() && write_all(file.get(), content));
  ASSERT_TRUE(::realpath(path, real)) << path;
  static std::set<std::string> replaced;  // nothing is mounted over a file that has no name any more
  if (!replaced.insert(real).second) {
    ASSERT_EQ(::umount2(real, MNT_DETACH), 0) << real << ": " << std::strerror(errno);
  }
  ASSERT_EQ(::mount(name, real, nullptr, MS_BIND, nullptr), 0) << real << ": " << std::strerror(errno);
  ::unlink(name);
}

}  // namespace firestop::egress::testing
