#include "egress/seam.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/process.h"

namespace firestop::egress {
namespace {

constexpr char kDevice[] = "guest";
constexpr uint16_t kTcpPort = 15001, kDnsPort = 15053, kSinkPort = 15054;
constexpr int kBacklog = 1024;
constexpr int kReport = 3;  // the child's end of the socket
constexpr size_t kDescriptors = 6;

// What runs in the child up to the exec of nft: system calls only, no memory (base/process.h).
struct Inside {
  std::optional<SeamStep> broken;
  SeamStep at{};
  int tap = -1, control = -1;
  int sockets[5] = {-1, -1, -1, -1, -1};
};

// A setting of this namespace. Where the kernel has none of its kind, there is nothing to switch off.
bool set(const char* path, const char* value) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  const auto size = static_cast<ssize_t>(::strlen(value));
  return ::write(fd, value, static_cast<size_t>(size)) == size && ::close(fd) == 0;
}

// A new namespace may begin with the host's own settings.
bool make_settings() {
  return set("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1") &&
         set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1") &&
         set("/proc/sys/net/ipv4/ip_forward", "0") &&
         set("/proc/sys/net/ipv4/conf/all/accept_redirects", "0") &&
         set("/proc/sys/net/ipv4/conf/default/accept_redirects", "0") &&
         set("/proc/sys/net/ipv4/conf/all/accept_source_route", "0") &&
         set("/proc/sys/net/ipv4/conf/default/accept_source_route", "0") &&
         set("/proc/sys/net/ipv4/conf/default/rp_filter", "0") &&
         set("/proc/sys/net/ipv4/conf/all/rp_filter", "0");
}

ifreq request() {
  ifreq out{};
  ::memcpy(out.ifr_name, kDevice, sizeof kDevice);
  return out;
}

bool make_tap(Inside& inside) {
  inside.tap = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq wanted = request();
  wanted.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  return inside.tap >= 0 && ::ioctl(inside.tap, TUNSETIFF, &wanted) == 0;
}

sockaddr_in address_of(const char* text) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  ::inet_pton(AF_INET, text, &out.sin_addr);
  return out;
}

void put(sockaddr& out, const sockaddr_in& address) {
  ::memcpy(&out, &address, sizeof address);
}

bool make_address(Inside& inside) {
  inside.control = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (inside.control < 0) return false;
  ifreq mac = request();
  mac.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  ::memcpy(mac.ifr_hwaddr.sa_data, kGatewayMac.data(), kGatewayMac.size());
  ifreq address = request();
  put(address.ifr_addr, address_of(kGatewayAddress));
  ifreq mask = request();
  put(mask.ifr_netmask, address_of("255.255.255.252"));
  ifreq flags = request();
  flags.ifr_flags = IFF_UP | IFF_RUNNING;
  return ::ioctl(inside.control, SIOCSIFHWADDR, &mac) == 0 &&
         ::ioctl(inside.control, SIOCSIFADDR, &address) == 0 &&
         ::ioctl(inside.control, SIOCSIFNETMASK, &mask) == 0 &&
         ::ioctl(inside.control, SIOCSIFFLAGS, &flags) == 0;
}

// The guest's hardware address is known; what it says of others is not listened to.
bool make_neighbour(const Inside& inside) {
  arpreq entry{};
  put(entry.arp_pa, address_of(kGuestAddress));
  entry.arp_ha.sa_family = ARPHRD_ETHER;
  ::memcpy(entry.arp_ha.sa_data, kGuestMac.data(), kGuestMac.size());
  entry.arp_flags = ATF_PERM | ATF_COM;
  ::memcpy(entry.arp_dev, kDevice, sizeof kDevice);
  return ::ioctl(inside.control, SIOCSARP, &entry) == 0;
}

// Every address is one of this namespace's own: nothing could leave, and datagrams to any of them arrive.
bool make_route() {
  struct {
    nlmsghdr header;
    rtmsg route;
    rtattr device;
    uint32_t index;
  } wanted{};
  wanted.header.nlmsg_len = sizeof wanted;
  wanted.header.nlmsg_type = RTM_NEWROUTE;
  wanted.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK;
  wanted.route.rtm_family = AF_INET;
  wanted.route.rtm_table = RT_TABLE_MAIN;  // behind the link's own, so that the guest stays a neighbour
  wanted.route.rtm_protocol = RTPROT_STATIC;
  wanted.route.rtm_scope = RT_SCOPE_HOST;
  wanted.route.rtm_type = RTN_LOCAL;
  wanted.device.rta_len = sizeof wanted.device + sizeof wanted.index;
  wanted.device.rta_type = RTA_OIF;
  wanted.index = ::if_nametoindex(kDevice);
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char more[256];
  } answer{};
  const int netlink = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (netlink < 0 || ::send(netlink, &wanted, sizeof wanted, 0) != sizeof wanted) return false;
  if (::recv(netlink, &answer, sizeof answer, 0) < static_cast<ssize_t>(sizeof answer.header + sizeof(int)))
    return false;
  errno = -answer.error.error;
  return answer.header.nlmsg_type == NLMSG_ERROR && answer.error.error == 0 && ::close(netlink) == 0;
}

int make_socket(int type, uint16_t port) {
  const int fd = ::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  if (fd < 0) return -1;
  // Stands for every address: what is accepted has the one that the guest wanted.
  if ((type == SOCK_STREAM || port == kSinkPort) &&
      ::setsockopt(fd, SOL_IP, IP_TRANSPARENT, &yes, sizeof yes) != 0)
    return -1;
  if (port == kSinkPort && ::setsockopt(fd, SOL_IP, IP_RECVORIGDSTADDR, &yes, sizeof yes) != 0) return -1;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) return -1;
  return type != SOCK_STREAM || ::listen(fd, kBacklog) == 0 ? fd : -1;
}

bool make_sockets(Inside& inside) {
  inside.sockets[0] = make_socket(SOCK_STREAM, kTcpPort);
  inside.sockets[1] = make_socket(SOCK_STREAM, kDnsPort);
  inside.sockets[2] = make_socket(SOCK_DGRAM, kDnsPort);
  inside.sockets[3] = make_socket(SOCK_DGRAM, kSinkPort);
  inside.sockets[4] = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  return std::all_of(std::begin(inside.sockets), std::end(inside.sockets), [](int fd) { return fd >= 0; });
}

bool hand_over(const Inside& inside) {
  char step = 0;
  iovec data{&step, 1};
  const int all[kDescriptors] = {inside.tap,        inside.sockets[0], inside.sockets[1],
                                 inside.sockets[2], inside.sockets[3], inside.sockets[4]};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof all)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof all);
  ::memcpy(CMSG_DATA(header), all, sizeof all);
  return ::sendmsg(kReport, &message, MSG_NOSIGNAL) == 1;
}

bool do_step(Inside& inside) {
  switch (inside.at) {
    case SeamStep::kSettings:
      return make_settings();
    case SeamStep::kTap:
      return make_tap(inside);
    case SeamStep::kAddress:
      return make_address(inside);
    case SeamStep::kNeighbour:
      return make_neighbour(inside);
    case SeamStep::kRoute:
      return make_route();
    case SeamStep::kSockets:
      return make_sockets(inside);
    case SeamStep::kHandOver:
      return hand_over(inside);
    case SeamStep::kRules:
      break;
  }
  return true;
}

// Command::before_exec: afterwards the child becomes nft, which loads the rules.
int build(void* context) {
  auto& inside = *static_cast<Inside*>(context);
  for (int step = static_cast<int>(SeamStep::kSettings); step <= static_cast<int>(SeamStep::kHandOver);
       ++step) {
    inside.at = SeamStep{step};
    const bool broken = inside.broken == inside.at;
    if (broken) errno = EPERM;
    if (!broken && do_step(inside)) continue;
    const int number = errno;
    const char failed = static_cast<char>(step);
    (void)::send(kReport, &failed, 1, MSG_NOSIGNAL);
    errno = number;
    return -1;
  }
  return 0;
}

bool write_map(pid_t pid, const char* name, const std::string& text) {
  const UniqueFd fd(::open(("/proc/" + std::to_string(pid) + "/" + name).c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The child is root of its namespaces only; to the host it is who we are.
Result<void> be_root_inside(pid_t pid) {
  if (write_map(pid, "setgroups", "deny") &&
      write_map(pid, "uid_map", "0 " + std::to_string(::geteuid()) + " 1") &&
      write_map(pid, "gid_map", "0 " + std::to_string(::getegid()) + " 1"))
    return {};
  return fail_errno("egress.seam", "the sandbox's network cannot be made: its user cannot be mapped");
}

Unexpected failed_at(SeamStep step, const std::string& why) {
  const bool tap = step == SeamStep::kTap;
  return fail(
      "egress.seam",
      std::string("the sandbox's network cannot be made: ") + to_string(step) + (why.empty() ? "" : ": ") +
          why,
      tap ? "/dev/net/tun must be there and open to you: sudo modprobe tun; sudo chmod 666 /dev/net/tun"
          : "firestop doctor says what this host lacks");
}

struct Report {
  char step = -1;
  UniqueFd descriptors[kDescriptors];
  size_t count = 0;
};

Report receive(int socket) {
  Report report;
  iovec data{&report.step, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(kDescriptors * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1) report.step = -1;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (!header || header->cmsg_type != SCM_RIGHTS) return report;
  report.count = std::min((header->cmsg_len - CMSG_LEN(0)) / sizeof(int), kDescriptors);
  for (size_t i = 0; i < report.count; ++i) {
    int fd = -1;
    ::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
    report.descriptors[i].reset(fd);
  }
  return report;
}

}  // namespace

const char* to_string(SeamStep step) {
  switch (step) {
    case SeamStep::kSettings:
      return "switching off IPv6 and forwarding";
    case SeamStep::kTap:
      return "the tap (/dev/net/tun)";
    case SeamStep::kAddress:
      return "its address";
    case SeamStep::kNeighbour:
      return "the guest's hardware address";
    case SeamStep::kRoute:
      return "the route that ends here";
    case SeamStep::kSockets:
      return "the sockets";
    case SeamStep::kHandOver:
      return "handing them over";
    case SeamStep::kRules:
      return "loading the rules (nft)";
  }
  return "?";
}

std::string seam_rules(const SeamOptions& options) {
  const auto port = [](uint16_t number) { return std::to_string(number); };
  // A bucket for what TCP sends at once, and for what it could have sent while it waits.
  const std::string cap = options.rate == 0
                              ? ""
                              : "  limit rate over " + std::to_string(options.rate) + " bytes/second burst " +
                                    std::to_string(std::clamp<uint64_t>(options.rate / 4, 262144, UINT_MAX)) +
                                    " bytes drop\n";
  const std::string quota = options.bytes == 0 ? "" : "  quota name \"link_cap\" drop\n";
  return "table ip seam {\n" +
         (options.bytes == 0
              ? ""
              : " quota link_cap {\n  over " + std::to_string(options.bytes) + " bytes\n }\n") +
         " chain from_guest {\n"
         "  type filter hook prerouting priority raw; policy drop;\n" +
         cap +
         // Another source address, another protocol: not this guest's. The kernel tracks questions only.
         "  iifname != \"guest\" drop\n"
         "  ip saddr != " +
         kGuestAddress + " drop\n" + quota +
         "  udp dport 53 accept\n"
         "  meta l4proto { tcp, udp } notrack accept\n"
         " }\n"
         " chain turn {\n"
         "  type filter hook prerouting priority mangle; policy accept;\n"
         "  udp dport 53 ct state new ct count over " +
         std::to_string(kMostTracked) + " drop\n" + "  udp dport != 53 tproxy to :" + port(kSinkPort) +
         " accept\n" +
         "  tcp dport 53 tcp flags & (fin | syn | rst | ack) == syn tproxy to :" + port(kDnsPort) +
         " accept\n" + "  tcp flags & (fin | syn | rst | ack) == syn tproxy to :" + port(kTcpPort) +
         " accept\n" +
         " }\n"
         " chain questions {\n"
         "  type nat hook prerouting priority dstnat; policy accept;\n"
         "  udp dport 53 redirect to :" +
         port(kDnsPort) + "\n" +
         " }\n"
         " chain arriving {\n"
         "  type filter hook input priority filter; policy drop;\n"
         "  udp dport " +
         port(kDnsPort) + " ct original proto-dst 53 accept\n" +
         "  socket transparent 1 accept\n"
         " }\n"
         " chain passing {\n"
         "  type filter hook forward priority filter; policy drop;\n"
         " }\n"
         " chain untracked {\n"
         "  type filter hook output priority raw; policy accept;\n"
         "  meta l4proto tcp notrack\n"
         " }\n"
         " chain to_guest {\n"
         "  type filter hook output priority filter; policy drop;\n" +
         cap + quota +
         "  oifname \"guest\" meta l4proto tcp accept\n"
         "  oifname \"guest\" meta l4proto udp ct state established accept\n"
         " }\n"
         "}\n"
         "table ip6 seam {\n"
         " chain from_guest {\n"
         "  type filter hook prerouting priority raw; policy drop;\n"
         " }\n"
         " chain to_guest {\n"
         "  type filter hook output priority raw; policy drop;\n"
         " }\n"
         "}\n"
         "table arp seam {\n"
         " chain from_guest {\n"
         "  type filter hook input priority filter; policy drop;\n"
         " }\n"
         " chain to_guest {\n"
         "  type filter hook output priority filter; policy drop;\n"
         " }\n"
         "}\n";
}

Result<Seam> make_seam(const SeamOptions& options) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("egress.seam", "cannot make a socket pair");
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  Inside inside;
  inside.broken = options.broken;
  Command nft;
  nft.argv = {"nft", "-f", "-"};
  nft.env = {"LC_ALL=C"};
  nft.directory = "/";
  nft.descriptors = {{theirs.get(), kReport}};
  nft.namespaces = CLONE_NEWUSER | CLONE_NEWNET;
  nft.admit = be_root_inside;
  nft.before_exec = build;
  nft.before_exec_context = &inside;
  const bool no_rules = options.broken == SeamStep::kRules;
  auto loaded = run(std::move(nft), {.input = no_rules ? "broken\n" : seam_rules(options),
                                     .output_limit = 64u << 10,
                                     .timeout = std::chrono::seconds(60)});
  theirs.reset();
  Report report = receive(ours.get());
  if (report.step > 0)
    return failed_at(SeamStep{report.step}, loaded ? "" : ::strerror(loaded.error().sys_errno));
  if (!loaded) {
    if (loaded.error().code == "process.not_found")
      return fail("process.not_found", "a sandbox with a network needs nft, which is not in PATH",
                  "install nftables");
    if (loaded.error().code == "egress.seam") return tl::unexpected(loaded.error());
    return wrap(loaded.error(), "the sandbox's network cannot be made");
  }
  if (!loaded->ok()) return failed_at(SeamStep::kRules, loaded->err.substr(0, loaded->err.find('\n')));
  if (report.step != 0 || report.count != kDescriptors)
    return failed_at(SeamStep::kHandOver, "nothing arrived");
  auto& got = report.descriptors;
  return Seam{std::move(got[0]), std::move(got[1]), std::move(got[2]),
              std::move(got[3]), std::move(got[4]), std::move(got[5])};
}

Result<uint64_t> bytes_of(int meter) {
  struct {
    nlmsghdr header;
    ifinfomsg link;
    rtattr name;
    char device[8];
  } wanted{};
  wanted.header.nlmsg_len = sizeof wanted;
  wanted.header.nlmsg_type = RTM_GETLINK;
  wanted.header.nlmsg_flags = NLM_F_REQUEST;
  wanted.name.rta_len = sizeof wanted.name + sizeof kDevice;
  wanted.name.rta_type = IFLA_IFNAME;
  ::memcpy(wanted.device, kDevice, sizeof kDevice);
  alignas(nlmsghdr) char answer[8192];
  if (::send(meter, &wanted, sizeof wanted, 0) != sizeof wanted)
    return fail_errno("egress.seam", "cannot ask how much went over the link");
  const ssize_t size = ::recv(meter, answer, sizeof answer, 0);
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  if (size < static_cast<ssize_t>(sizeof(nlmsghdr) + sizeof(ifinfomsg)) || header->nlmsg_type != RTM_NEWLINK)
    return fail("egress.seam", "the kernel does not say how much went over the link");
  size_t at = NLMSG_ALIGN(sizeof(nlmsghdr)) + NLMSG_ALIGN(sizeof(ifinfomsg));
  while (at + sizeof(rtattr) <= static_cast<size_t>(size)) {
    rtattr attribute{};
    ::memcpy(&attribute, answer + at, sizeof attribute);
    if (attribute.rta_len < sizeof attribute || at + attribute.rta_len > static_cast<size_t>(size)) break;
    rtnl_link_stats64 stats{};
    if (attribute.rta_type == IFLA_STATS64) {
      ::memcpy(&stats, answer + at + sizeof attribute,
               std::min<size_t>(sizeof stats, attribute.rta_len - sizeof attribute));
      return stats.rx_bytes + stats.tx_bytes;
    }
    at += RTA_ALIGN(attribute.rta_len);
  }
  return fail("egress.seam", "the kernel does not say how much went over the link");
}

Result<Destination> original_destination(int connection) {
  sockaddr_in to{}, from{};
  socklen_t size = sizeof to;
  if (::getsockname(connection, reinterpret_cast<sockaddr*>(&to), &size) != 0 || to.sin_family != AF_INET)
    return fail_errno("egress.seam", "a connection does not say where it was to go");
  size = sizeof from;
  if (::getpeername(connection, reinterpret_cast<sockaddr*>(&from), &size) != 0)
    return fail_errno("egress.seam", "a connection does not say where it comes from");
  char text[INET_ADDRSTRLEN];
  if (!::inet_ntop(AF_INET, &to.sin_addr, text, sizeof text))
    return fail_errno("egress.seam", "a connection does not say where it was to go");
  return Destination{text, ntohs(to.sin_port), ntohs(from.sin_port)};
}

}  // namespace firestop::egress
