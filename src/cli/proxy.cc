// `firestop proxy`: the egress engine alone, as a proxy that its clients know of.
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <utility>

#include "base/file.h"
#include "base/loop.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "codec/address.h"
#include "codec/http_field.h"
#include "credentials/bindings.h"
#include "credentials/placeholder.h"
#include "credentials/source_process.h"
#include "egress/crossing_json.h"
#include "egress/guard_impl.h"
#include "egress/lock_down.h"
#include "egress/proxy_door.h"
#include "egress/way_out.h"
#include "manifest/load.h"
#include "sandbox/host_config.h"
#include "sandbox/operator_egress.h"
#include "sandbox/seal.h"

namespace firestop::cli {
namespace {

constexpr size_t kMostUnsaid = 64u << 10;  // bytes
constexpr const char* kDefaultListen = "127.0.0.1:3128";

struct Listener {
  UniqueFd socket;
  std::string address;  // "127.0.0.1:3128" that it has
  bool loopback = true;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }  // SAFETY: what sockaddr_storage is for
};

SocketAddress socket_address(const codec::Address& address, uint16_t port) {
  SocketAddress out;
  if (address.is_v4()) {
    auto& to = reinterpret_cast<sockaddr_in&>(out.storage);  // SAFETY: as above
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(address.number());
    out.size = sizeof to;
  } else {
    auto& to = reinterpret_cast<sockaddr_in6&>(out.storage);  // SAFETY: as above
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(port);
    std::copy(address.bytes().begin(), address.bytes().end(), std::begin(to.sin6_addr.s6_addr));
    out.size = sizeof to;
  }
  return out;
}

Result<Listener> listen_at(const std::string& text) {
  const auto at = codec::parse_authority(text);
  const auto address = at ? codec::Address::parse(at->host) : std::nullopt;
  if (!address)
    return fail("usage.listen", "--listen " + printable(text) + " is no address",
                "write it as 127.0.0.1:3128 or [::1]:3128; without a port a free one is taken");
  Listener out;
  out.socket.reset(
      ::socket(address->is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  (void)::setsockopt(out.socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  SocketAddress to = socket_address(*address, at->port);
  if (::bind(out.socket.get(), to.get(), to.size) != 0 || ::listen(out.socket.get(), 1024) != 0) {
    return fail_errno("proxy.listen", "cannot listen at " + text,
                      "is another proxy running there? --listen names another address");
  }
  ::getsockname(out.socket.get(), to.get(), &to.size);
  // SAFETY: IPv4 and IPv6 have the port at the same place.
  out.address = address->with_port(ntohs(reinterpret_cast<const sockaddr_in&>(to.storage).sin_port));
  out.loopback = (address->is_v4() && address->number() >> 24 == 127) || address->to_string() == "::1";
  return out;
}

struct Files {
  std::string directory, authority, environment;
};

// Variables for a shell or an env file; values have no character that either could read otherwise.
std::string environment_text(const std::string& address, const std::string& authority,
                             const std::vector<credentials::Placeholder>& placeholders) {
  std::string out;
  for (const char* name : {"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"}) {
    out += std::string(name) + "=http://" + address + "\n";
  }
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE",
                           "NODE_EXTRA_CA_CERTS", "AWS_CA_BUNDLE"}) {
    out += std::string(name) + "='" + authority + "'\n";
  }
  for (const auto& placeholder : placeholders) {
    if (!placeholder.variable.empty()) out += placeholder.variable + "=" + placeholder.text + "\n";
  }
  return out;
}

Result<Files> write_files(const ParsedArgs& args, const std::string& address, const std::string& certificate,
                          const std::vector<credentials::Placeholder>& placeholders) {
  Files out;
  out.directory = args.value_or("--directory", join_path(state_directory(), "proxy"));
  if (out.directory.find_first_of("'\n") != std::string::npos)
    return fail("usage.directory", "--directory has a quote or a line break");
  TRY(make_directories(out.directory, 0700));
  out.authority = join_path(out.directory, "authority.pem");
  out.environment = join_path(out.directory, "environment");
  TRY(write_file_atomic(out.authority, certificate, 0644));
  TRY(write_file_atomic(out.environment, environment_text(address, out.authority, placeholders), 0600));
  return out;
}

std::string crossing_text(const egress::Crossing& crossing, const Terminal& terminal) {
  const Style style = crossing.verdict == "allowed"  ? Style::kGreen
                      : crossing.verdict == "denied" ? Style::kRed
                                                     : Style::kYellow;
  const bool alarm = crossing.kind == egress::Crossing::Kind::kAlarm;
  std::string out = terminal.paint(style, alarm ? "ALARM" : crossing.verdict, Stream::kOut) + "  ";
  if (!crossing.method.empty()) out += crossing.method + " ";
  out += crossing.scheme + "://" + codec::authority_text(crossing.host, crossing.port, 0) + crossing.path;
  if (crossing.status != 0) out += "  " + std::to_string(crossing.status);
  if (!crossing.rule.empty()) out += "  " + crossing.rule;
  if (!crossing.credential.empty()) out += "  credential " + crossing.credential;
  if (!crossing.in_body.empty()) out += "  placeholder of " + crossing.in_body + " in the body";
  if (!crossing.code.empty()) out += "  " + crossing.code;
  if (!crossing.detail.empty()) out += "  " + crossing.detail;
  return printable(out) + "\n";
}

class Proxy {
 public:
  explicit Proxy(Context& context) : context_(context) {}
  ~Proxy() { close(); }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  Result<int> run(const ParsedArgs& args, const manifest::Manifest& policy) {
    TRY_ASSIGN(const auto all, credentials::load_bindings());
    TRY_ASSIGN(const auto bindings, credentials::bind_credentials(policy, all));
    TRY_ASSIGN(Listener listener, listen_at(args.value_or("--listen", kDefaultListen)));
    const uint32_t connections =
        policy.limits.network.connections.value_or(egress::ProxyDoor::kConnectionsUnlessSaid);
    TRY(start_sources(bindings));
    TRY(egress::keep_to_itself(connections));
    TRY(make_way(args, policy));
    TRY_ASSIGN(const Files files,
               write_files(args, listener.address, way_->authority().certificate(), placeholders_));
    stop_on_signals();
    say_ready(listener, files);
    TRY(egress::lock_down(egress::SystemResolver::files(), egress::Writes::kOpenFiles));
    door_ = std::make_unique<egress::ProxyDoor>(loop_, std::move(listener.socket), connections,
                                                way_->carrier(), record_);
    loop_.run();
    close();
    if (failed_) return tl::unexpected(*failed_);
    return 0;
  }

 private:
  // The operator's values live in a process of their own; see credentials/source_process.h.
  Result<void> start_sources(const credentials::Bindings& bindings) {
    if (bindings.empty()) return {};
    TRY_ASSIGN(auto sources,
               credentials::start_source_process({"/proc/self/exe", "__credentials"}, bindings));
    credentials::wipe_environment(bindings);
    sources_ = std::move(sources.child);
    vault_ = credentials::make_source_vault(loop_, std::move(sources.socket));
    sources_watch_ = loop_.watch(sources_.pidfd.get(), Loop::kReadable, [this](int) {
      failed_ = Error{"credential.gone", "the process that has the credentials ended", {}, 0};
      loop_.stop();
    });
    return {};
  }

  Result<void> make_way(const ParsedArgs& args, const manifest::Manifest& policy) {
    egress::GuardParts parts;
    parts.rules = policy.egress;
    parts.credentials = policy.credentials;
    placeholders_ = credentials::make_placeholders(policy.credentials);
    parts.placeholders = placeholders_;
    parts.vault = vault_.get();
    TRY_ASSIGN(const auto config, sandbox::load_host_config());
    TRY_ASSIGN(auto said, sandbox::operator_egress(policy, config, args.values("--connect-to"),
                                                   args.value_or("--upstream-ca", "")));
    parts.connect_to = std::move(said.connect_to);
    std::vector<std::string> hosts;
    for (const auto& rule : policy.egress) {
      if (!rule.host.empty() && rule.protocol == "http") hosts.push_back(rule.host);
    }
    guard_ = egress::make_guard(std::move(parts));
    record_ = [this](const egress::Crossing& crossing) { tell(crossing); };
    TRY_ASSIGN(way_, egress::WayOut::make(loop_, *guard_,
                                          {.hosts = std::move(hosts),
                                           .upstream_ca = std::move(said.upstream_ca),
                                           .spend = spender(policy.limits.network.bytes)},
                                          record_));
    return {};
  }

  // No machine's link is there to be measured: what requests and tunnels carry is counted.
  static std::function<bool(uint64_t)> spender(std::optional<uint64_t> most) {
    if (!most) return {};
    return [left = *most](uint64_t bytes) mutable {
      if (bytes > left) {
        left = 0;
        return false;
      }
      left -= bytes;
      return true;
    };
  }

  void stop_on_signals() {
    for (const int signal : {SIGINT, SIGTERM}) {
      signals_.push_back(loop_.on_signal(signal, [this] { loop_.stop(); }));
    }
  }

  void say_ready(const Listener& listener, const Files& files) {
    if (context_.json) {
      say(codec::write_json(codec::JsonObject{{"type", "ready"},
                                              {"proxy", "http://" + listener.address},
                                              {"authority", files.authority},
                                              {"environment", files.environment}}) +
          "\n");
      return;
    }
    say("proxy        http://" + listener.address + "\nauthority    " + files.authority + "\nenvironment  " +
        files.environment + "\n");
    if (!listener.loopback)
      context_.terminal.note("others than this machine can reach it, and all that the policy allows");
  }

  void tell(const egress::Crossing& crossing) {
    if (!context_.json) return say(crossing_text(crossing, context_.terminal));
    std::string line;
    egress::append_told(line, crossing);
    say(line += '\n');
  }

  // The first of a turn of the loop is written at once, what comes beside it together: a write for each
  // request would be a twentieth of all work.
  void say(const std::string& text) {
    if (flush_ && unsaid_.size() < kMostUnsaid) {
      unsaid_ += text;
      return;
    }
    write_unsaid();
    write(text);
    flush_ = loop_.once(std::chrono::milliseconds(0), [this] {
      const auto done = std::move(flush_);
      write_unsaid();
    });
  }

  void write_unsaid() {
    if (!unsaid_.empty()) write(std::exchange(unsaid_, {}));
  }

  // What cannot be told does not go on crossing, a reader that went away included.
  void write(const std::string& text) {
    if (failed_) return;
    if (auto written = write_all(context_.terminal.settings().out, text); !written) {
      failed_ = Error{"output.failed", "what crosses cannot be told: " + written.error().message, {}, 0};
      loop_.stop();
    }
  }

  void close() {
    door_.reset();
    if (way_) way_->close();
    way_.reset();
    guard_.reset();
    write_unsaid();
    flush_.reset();
    sources_watch_.reset();
    vault_.reset();
    signals_.clear();
    if (sources_.pidfd.valid()) sources_.kill_and_wait();
    sources_ = {};
  }

  Context& context_;
  Loop loop_;
  egress::Recorder record_;
  Child sources_;
  std::unique_ptr<credentials::Vault> vault_;
  std::vector<credentials::Placeholder> placeholders_;
  std::unique_ptr<egress::Guard> guard_;
  std::unique_ptr<egress::WayOut> way_;
  std::unique_ptr<egress::ProxyDoor> door_;
  Loop::Handle sources_watch_;
  std::string unsaid_;
  Loop::Handle flush_;
  std::vector<Loop::Handle> signals_;
  std::optional<Error> failed_;
};

Result<int> proxy(const ParsedArgs& args, Context& context) {
  if (!args.has("--policy"))
    return fail("usage.policy", "no policy is given",
                "--policy firestop.yaml names the manifest whose egress section counts");
  TRY_ASSIGN(const manifest::Loaded loaded, manifest::load_file(args.value("--policy").value_or("")));
  if (!loaded.faults.empty()) {
    if (context.json) {
      print_json(context, diagnostics_json(loaded.faults));
    } else {
      print_faults(context, loaded.faults, loaded.text);
    }
    return static_cast<int>(ExitStatus::kUsage);
  }
  TRY(sandbox::check_seal(loaded.manifest, args.value_or("--allowed-signers", "")));
  return Proxy(context).run(args, loaded.manifest);
}

}  // namespace

CommandSpec proxy_command() {
  return {
      .name = "proxy",
      .summary = "let programs on this machine out by a manifest's egress rules",
      .description =
          "Runs what stands between a sandbox and the network alone, as an HTTP proxy that clients are told "
          "of: "
          "the same rules, the same credentials, the same record. Programs hold a placeholder; the value is "
          "put "
          "into requests that the rules allow, and nowhere else. It isolates nobody: a program that does not "
          "use the proxy is not held by it.\n\n"
          "It writes the certificate of its authority and a file of variables for clients, prints both "
          "names, "
          "and then a line for everything that crosses or is denied, until it is interrupted.",
      .options = {{.name = "--policy",
                   .metavar = "FILE",
                   .help = "the manifest whose egress and credentials count",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  {.name = "--listen",
                   .metavar = "ADDR:PORT",
                   .help = "where clients find it; 127.0.0.1:3128 unless given",
                   .kind = OptionKind::kValue},
                  {.name = "--directory",
                   .metavar = "DIR",
                   .help = "where the authority's certificate and the variables are written",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kDirectories},
                  {.name = "--connect-to",
                   .metavar = "HOST:PORT=ADDR:PORT",
                   .help = "dial this name there, also at a private address",
                   .kind = OptionKind::kRepeatable},
                  {.name = "--upstream-ca",
                   .metavar = "FILE",
                   .help = "certificates that origins may have besides the host's",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  {.name = "--allowed-signers",
                   .metavar = "FILE",
                   .help = "refuse a manifest that none of these signed",
                   .kind = OptionKind::kValue,
                   .completes = Completes::kFiles},
                  json_option()},
      .examples = {{"firestop proxy --policy firestop.yaml",
                    "the egress of firestop.yaml, at 127.0.0.1:3128"},
                   {"env $(cat ~/.local/state/firestop/proxy/environment) curl https://api.example.com/",
                    "a program that goes through it"}},
      .exits = {exit_note(ExitStatus::kOk, "it was interrupted"),
                exit_note(ExitStatus::kUsage, "the manifest or the command line is wrong"),
                exit_note(ExitStatus::kSignature,
                          "the manifest is not signed as this host, or --allowed-signers, asks for"),
                exit_note(ExitStatus::kCannotStart)},
      .handler = proxy,
  };
}

}  // namespace firestop::cli
