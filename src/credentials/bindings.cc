#include "credentials/bindings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/diagnostic.h"
#include "base/file.h"
#include "base/path.h"
#include "base/units.h"
#include "codec/yaml.h"
#include "manifest/cover.h"
#include "manifest/reader.h"
#include "manifest/rules.h"

namespace firestop::credentials {
namespace {

using codec::in_quotes;
using manifest::Fields;
using manifest::Place;
using manifest::Reader;

constexpr uint64_t kMostBytes = 256u << 10;
constexpr size_t kMostBindings = 200;
constexpr std::chrono::milliseconds kShortest = std::chrono::seconds(1), kLongest = std::chrono::hours(24);
constexpr std::string_view kBindingKeys[] = {"hosts", "env", "file", "command", "cache", "oauth"};
constexpr std::string_view kSourceKeys[] = {"env", "file", "command", "cache"};
constexpr std::string_view kOAuthKeys[] = {"token_url", "client_id", "client_secret", "refresh_token",
                                           "scope",     "ca",        "rotates"};

class BindingsReader {
 public:
  explicit BindingsReader(const std::string& file) : file_(file), reader_(file) {}

  Result<Bindings> read(std::string_view text) {
    auto document = codec::parse_yaml(text, {.bytes = kMostBytes, .depth = 8, .nodes = 5000});
    for (auto& fault : document.faults)
      reader_.fault(fault.where, std::move(fault.field), std::move(fault.wrong), std::move(fault.expected));
    Bindings out;
    const Place root{&document.root, ""};
    using Kind = codec::YamlNode::Kind;
    if (document.root.kind != Kind::kInvalid && document.root.kind != Kind::kNull)
      for (const auto& member : reader_.members(root, "a mapping of names to sources", kMostBindings))
        read_binding(member, out);
    const auto faults = reader_.take_faults();
    if (faults.empty()) return out;
    return fail("credentials.bad", "the host's credentials are bound wrongly:\n" + render(faults, text),
                "see docs/credentials.md");
  }

 private:
  void read_binding(const manifest::Member& member, Bindings& out) {
    if (const auto why = manifest::why_not_bind_name(member.key); !why.empty())
      reader_.fault(member.key_where, member.field, in_quotes(member.key) + " " + why,
                    "expected a name such as model");
    const Fields fields(reader_, member, kBindingKeys, "a binding");
    if (!fields.valid()) return;
    Binding binding;
    if (const auto place = fields.require("hosts", "the hosts that the value may go to"))
      read_hosts(*place, binding);
    if (const auto place = fields.get("oauth")) {
      for (const char* key : {"env", "file", "command", "cache"})
        if (fields.has(key))
          reader_.fault(fields.key_position(key), codec::child_path(member.field, key), "stands beside oauth",
                        "expected one source");
      read_oauth(*place, binding.oauth.emplace());
    } else {
      read_source(member, fields, binding.source);
    }
    out.emplace(member.key, std::move(binding));
  }

  void read_hosts(const Place& place, Binding& binding) {
    const auto items = reader_.items(place, "a list of hosts, such as [api.example.com]");
    if (place.node->kind == codec::YamlNode::Kind::kSequence && items.empty())
      reader_.fault(place, "is empty, so that the value may go nowhere", "expected at least one host");
    for (const auto& item : items) {
      const auto host = reader_.text(item, "a host such as api.example.com");
      if (!host) continue;
      if (const auto why = manifest::why_not_host(*host); !why.empty())
        reader_.fault(item, in_quotes(*host) + " " + why, "expected a host such as api.example.com");
      binding.hosts.push_back(manifest::canonical_host(*host));
    }
  }

  std::string read_path(const Place& place) {
    const auto path = reader_.text(place, "the path of a file");
    if (!path) return {};
    if (path->front() == '~') {
      reader_.fault(place, "begins with ~, which only a shell knows",
                    "expected an absolute path, or one relative to this file");
      return {};
    }
    return path->front() == '/' ? *path : join_path(parent_path(file_), *path);
  }

  void read_source(const Place& owner, const Fields& fields, Source& out) {
    size_t count = 0;
    if (const auto place = fields.get("env")) {
      ++count;
      out.kind = Source::Kind::kEnv;
      if (const auto name = reader_.text(*place, "the name of a variable")) {
        if (name->find('=') != std::string::npos)
          reader_.fault(*place, in_quotes(*name) + " is no name of a variable",
                        "expected a name such as API_KEY");
        out.place = *name;
      }
    }
    if (const auto place = fields.get("file")) {
      ++count;
      out.kind = Source::Kind::kFile;
      out.place = read_path(*place);
    }
    if (const auto place = fields.get("command")) {
      ++count;
      out.kind = Source::Kind::kCommand;
      if (auto words = reader_.texts(*place, "a list of words, such as [pass, show, forge]",
                                     manifest::Empty::kAccept)) {
        if (words->empty() || words->front().empty())
          reader_.fault(*place, "has no program", "expected a list of words, such as [pass, show, forge]");
        out.command = std::move(*words);
      }
    }
    if (const auto place = fields.get("cache")) {
      out.cache = reader_.duration(*place, kShortest, kLongest).value_or(kShortest);
      if (!fields.has("command"))
        reader_.fault(fields.key_position("cache"), place->field, "means nothing without command",
                      "expected it beside command only");
    }
    if (count != 1)
      reader_.fault(owner, count == 0 ? "has no source" : "has several sources",
                    "expected one of env, file and command, or oauth");
  }

  void read_inner_source(const Place& place, Source& out) {
    const Fields fields(reader_, place, kSourceKeys, "a source");
    if (fields.valid()) read_source(place, fields, out);
  }

  void read_oauth(const Place& place, OAuth& out) {
    const Fields fields(reader_, place, kOAuthKeys, "oauth");
    if (!fields.valid()) return;
    if (const auto url = fields.require("token_url", "the address that gives access tokens")) {
      out.token_url = reader_.text(*url, "an https:// address").value_or("");
      const bool local =
          out.token_url.starts_with("http://127.0.0.1:") || out.token_url.starts_with("http://[::1]:");
      const bool bad = std::any_of(out.token_url.begin(), out.token_url.end(),
                                   [](char c) { return c <= ' ' || c >= 0x7F || c == '#' || c == '@'; });
      if (!out.token_url.empty() && ((!out.token_url.starts_with("https://") && !local) || bad))
        reader_.fault(*url, in_quotes(out.token_url) + " is no https:// address",
                      "expected one without user and fragment");
    }
    if (const auto id = fields.require("client_id", "the client's id"))
      out.client_id = reader_.text(*id, "the client's id").value_or("");
    if (const auto token = fields.require("refresh_token", "a source, such as {file: PATH}"))
      read_inner_source(*token, out.refresh_token);
    if (const auto secret = fields.get("client_secret"))
      read_inner_source(*secret, out.client_secret.emplace());
    if (const auto scope = fields.get("scope")) out.scope = reader_.text(*scope, "scopes").value_or("");
    if (const auto ca = fields.get("ca")) out.ca = read_path(*ca);
    const auto rotates = fields.get("rotates");
    if (!rotates) return;
    out.rotates = reader_.boolean(*rotates).value_or(false);
    if (out.rotates && out.refresh_token.kind != Source::Kind::kFile)
      reader_.fault(fields.key_position("rotates"), rotates->field,
                    "has no file to write new refresh tokens to",
                    "expected it beside refresh_token: {file: PATH} only");
  }

  const std::string& file_;
  Reader reader_;
};

}  // namespace

std::string bindings_path() {
  return join_path(config_directory(), "credentials.yaml");
}

Result<Bindings> parse_bindings(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return Bindings{};
  return BindingsReader(file).read(text);
}

Result<Bindings> load_bindings() {
  return load_bindings(bindings_path());
}

Result<Bindings> load_bindings(const std::string& file) {
  const auto fd = open_file(file, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) {
    if (fd.error().sys_errno == ENOENT) return Bindings{};
    return fail("credentials.unreadable", "cannot read the host's credentials: " + fd.error().message);
  }
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return fail_errno("credentials.unreadable", file);
  if (!S_ISREG(st.st_mode)) return fail("credentials.unreadable", file + " is no regular file");
  if (st.st_uid != ::geteuid())
    return fail("credentials.exposed",
                file + " belongs to another user, who could point names at other values",
                "it must be yours: chown it");
  if ((st.st_mode & 077) != 0)
    return fail("credentials.exposed", file + " may be read or written by others", "chmod 600 " + file);
  auto text = read_all(fd->get(), kMostBytes);
  if (!text) return wrap(text.error(), file);
  return parse_bindings(*text, file);
}

Result<Bindings> bind_credentials(const manifest::Manifest& manifest, const Bindings& bindings) {
  Bindings out;
  std::string unbound, astray;
  for (const auto& credential : manifest.credentials) {
    const auto found = bindings.find(credential.name);
    if (found == bindings.end()) {
      unbound += "\n  " + credential.name + ": is in " + manifest.file + ", and not in " + bindings_path();
      continue;
    }
    if ((credential.inject == "oauth") != found->second.oauth.has_value())
      unbound += "\n  " + credential.name + ": the manifest says inject: " + credential.inject +
                 ", its binding " + (found->second.oauth ? "is oauth" : "is not oauth");
    for (const auto& rule : manifest.egress) {
      if (rule.credential != credential.name) continue;
      const auto covers = [&](const std::string& host) { return manifest::host_covers(host, rule.host); };
      if (std::none_of(found->second.hosts.begin(), found->second.hosts.end(), covers))
        astray += "\n  " + credential.name + ": a rule would send it to " + rule.host +
                  ", which is not among the hosts of its binding";
    }
    out.emplace(*found);
  }
  if (!unbound.empty())
    return fail("credentials.unbound",
                "nothing was started, since these credentials cannot be had:" + unbound,
                "bind them as docs/credentials.md shows");
  if (!astray.empty())
    return fail("credentials.host",
                "nothing was started, since credentials would go elsewhere than they may:" + astray,
                "if that is right, add the host in " + bindings_path());
  return out;
}

}  // namespace firestop::credentials
