#include "guest/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/file.h"
#include "guest/mount.h"

namespace firestop::guest {
namespace {

constexpr char kOurs[] = "/proc/self/ns/net";
constexpr char kDevice[] = "eth0";

ifreq request_for(const char* device) {
  ifreq request{};
  ::strncpy(request.ifr_name, device, sizeof request.ifr_name - 1);
  return request;
}

Result<UniqueFd> control_socket() {
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail_errno("guest.network", "cannot make a socket");
  return socket;
}

// A new network namespace has one device, and that is down.
Result<void> raise(const UniqueFd& control, const char* device) {
  ifreq request = request_for(device);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(control.get(), SIOCSIFFLAGS, &request) != 0)
    return fail_errno("guest.network", std::string("cannot raise the device ") + device);
  return {};
}

void put(sockaddr& out, const char* text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, text, &address.sin_addr);
  ::memcpy(&out, &address, sizeof address);
}

// rtnetlink(7): the device moves, and only its name stays behind.
Result<void> move_device(unsigned index, int space) {
  struct {
    nlmsghdr header;
    ifinfomsg link;
    rtattr attribute;
    int space;
  } wanted{};
  wanted.header.nlmsg_len = sizeof wanted;
  wanted.header.nlmsg_type = RTM_NEWLINK;
  wanted.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  wanted.link.ifi_index = static_cast<int>(index);
  wanted.attribute.rta_len = sizeof wanted.attribute + sizeof wanted.space;
  wanted.attribute.rta_type = IFLA_NET_NS_FD;
  wanted.space = space;
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char more[256];
  } answer{};
  const UniqueFd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!netlink.valid() || ::send(netlink.get(), &wanted, sizeof wanted, 0) != sizeof wanted ||
      ::recv(netlink.get(), &answer, sizeof answer, 0) < static_cast<ssize_t>(sizeof answer.header))
    return fail_errno("guest.network", "cannot hand over the network device");
  errno = -answer.error.error;
  if (answer.header.nlmsg_type != NLMSG_ERROR || answer.error.error != 0)
    return fail_errno("guest.network", "cannot hand over the network device");
  return {};
}

// No IPv6, one neighbour that is known beforehand, and everything goes to it.
Result<void> configure(const UniqueFd& control) {
  for (const char* which : {"all", "default", kDevice})
    TRY(write_kernel_file(std::string("/proc/sys/net/ipv6/conf/") + which + "/disable_ipv6", "1"));
  ifreq address = request_for(kDevice), mask = address;
  put(address.ifr_addr, kAddress);
  put(mask.ifr_netmask, "255.255.255.252");
  if (::ioctl(control.get(), SIOCSIFADDR, &address) != 0 ||
      ::ioctl(control.get(), SIOCSIFNETMASK, &mask) != 0)
    return fail_errno("guest.network", "cannot set the network device's address");
  TRY(raise(control, kDevice));
  arpreq neighbour{};
  put(neighbour.arp_pa, kGateway);
  neighbour.arp_ha.sa_family = ARPHRD_ETHER;
  ::memcpy(neighbour.arp_ha.sa_data, kGatewayMac, sizeof kGatewayMac);
  neighbour.arp_flags = ATF_PERM | ATF_COM;
  ::memcpy(neighbour.arp_dev, kDevice, sizeof kDevice);
  rtentry route{};
  put(route.rt_dst, "0.0.0.0");
  put(route.rt_genmask, "0.0.0.0");
  put(route.rt_gateway, kGateway);
  route.rt_flags = RTF_UP | RTF_GATEWAY;
  if (::ioctl(control.get(), SIOCSARP, &neighbour) != 0 || ::ioctl(control.get(), SIOCADDRT, &route) != 0)
    return fail_errno("guest.network", "cannot set the network's route");
  return {};
}

Result<void> set_up(unsigned device, const UniqueFd& old, const UniqueFd& made) {
  TRY_ASSIGN(const UniqueFd control, control_socket());
  TRY(raise(control, "lo"));
  if (device == 0) return {};
  if (::setns(old.get(), CLONE_NEWNET) != 0) return fail_errno("guest.network", "cannot come back");
  TRY(move_device(device, made.get()));
  if (::setns(made.get(), CLONE_NEWNET) != 0) return fail_errno("guest.network", "cannot go there again");
  return configure(control);
}

}  // namespace

Result<Network> make_container_network() {
  const unsigned device = ::if_nametoindex(kDevice);
  TRY_ASSIGN(const UniqueFd old, open_file(kOurs, O_RDONLY));
  if (::unshare(CLONE_NEWNET) != 0) return fail_errno("guest.network", "cannot make a network namespace");
  Network network;
  network.device = device != 0;
  TRY_ASSIGN(network.space, open_file(kOurs, O_RDONLY));
  TRY(set_up(device, old, network.space));
  if (::setns(old.get(), CLONE_NEWNET) != 0) return fail_errno("guest.network", "cannot come back");
  return network;
}

}  // namespace firestop::guest
