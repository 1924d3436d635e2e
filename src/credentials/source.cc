#include "credentials/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/path.h"
#include "base/process.h"
#include "credentials/oauth.h"

namespace firestop::credentials {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFileValid = std::chrono::seconds(10);  // who changes a file wants it used soon
constexpr milliseconds kForever = std::chrono::hours(24 * 365);

Unexpected unavailable(std::string why) {
  return fail("credential.unavailable", std::move(why));
}

Result<Secret> to_secret(std::string_view bytes, const std::string& where) {
  if (bytes.ends_with('\n')) bytes.remove_suffix(1);
  if (bytes.ends_with('\r')) bytes.remove_suffix(1);
  if (bytes.size() < kLeastSecret)
    return unavailable(where + " has a value of less than " + std::to_string(kLeastSecret) + " bytes");
  if (bytes.size() > kMostSecret) return unavailable(where + " has a value that is too long");
  // The JSON of a credential_process is of several lines.
  Wiped one_line;
  if (bytes.starts_with('{')) {
    one_line.text = bytes;
    std::replace_if(
        one_line.text.begin(), one_line.text.end(),
        [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
    bytes = one_line.text;
  }
  const bool plain = std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
  if (!plain || bytes.front() == ' ' || bytes.back() == ' ')
    return unavailable(where + " has a value with other than printable ASCII characters, or several lines");
  return Secret::copy(bytes);
}

Result<Secret> read_variable(const std::string& name) {
  const char* value = ::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): one thread
  if (!value) return unavailable("the environment variable " + name + " is not set");
  return to_secret(value, "the environment variable " + name);
}

Result<Secret> read_secret_file(const std::string& path) {
  const auto fd = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd) return unavailable("cannot read the file: " + fd.error().message);
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0 || S_ISDIR(st.st_mode)) return unavailable(path + " is no file");
  auto bytes = read_all(fd->get(), kMostSecret + 2);
  if (!bytes) return unavailable(path + " cannot be read, or is too long");
  const Wiped text(std::move(*bytes));
  return to_secret(text.text, path);
}

Result<Secret> run_command(const std::vector<std::string>& words) {
  const std::string what = "the command " + words.front();
  auto result = run({.argv = words}, {.output_limit = kMostSecret + 2, .timeout = kLongestCommand});
  if (!result) {
    const auto& code = result.error().code;
    if (code == "process.timeout") return unavailable(what + " took too long");
    if (code == "process.output_limit") return unavailable(what + " says too much");
    return unavailable(what + " cannot be run");
  }
  const Wiped text(std::move(result->out));
  wipe(result->err);  // may say anything
  if (!result->ok()) return unavailable(what + " failed: " + describe_status(result->status));
  return to_secret(text.text, what);
}

}  // namespace

Result<Secret> read_source(const Source& source) {
  switch (source.kind) {
    case Source::Kind::kEnv:
      return read_variable(source.place);
    case Source::Kind::kFile:
      return read_secret_file(source.place);
    case Source::Kind::kCommand:
      return run_command(source.command);
  }
  return unavailable("no source");
}

Sources::Sources(Bindings bindings) : bindings_(std::move(bindings)) {}
Sources::~Sources() = default;

Result<void> Sources::check() {
  for (const auto& [name, binding] : bindings_) {
    if (binding.oauth) {
      const auto& source = binding.oauth->refresh_token;
      const auto token = read_source(source);
      if (!token) return wrap(token.error(), "credential " + name + ", refresh_token");
      if (binding.oauth->rotates && ::access(parent_path(source.place).c_str(), W_OK) != 0)
        return unavailable("credential " + name + ": no new refresh token could be written to " +
                           source.place);
      if (!binding.oauth->client_secret) continue;
      const auto secret = read_source(*binding.oauth->client_secret);
      if (!secret) return wrap(secret.error(), "credential " + name + ", client_secret");
    } else if (const auto value = get(name); !value) {
      return wrap(value.error(), "credential " + name);
    }
  }
  return {};
}

Result<Sources::Value> Sources::get(const std::string& name) {
  const auto binding = bindings_.find(name);
  if (binding == bindings_.end()) return unavailable("it has no source");
  const auto now = Clock::now();
  if (const auto found = cached_.find(name); found != cached_.end()) {
    if (now < found->second.until)
      return Value{&found->second.secret,
                   std::chrono::duration_cast<milliseconds>(found->second.until - now)};
    cached_.erase(found);
  }
  return fetch(name, binding->second);
}

Sources::Value Sources::keep(const std::string& name, Secret secret, milliseconds valid) {
  const auto [place, fresh] = cached_.insert_or_assign(name, Cached{std::move(secret), Clock::now() + valid});
  return {&place->second.secret, valid};
}

// RFC 6749, section 6: the server may give a new refresh token, and the old one may be good for nothing then.
Result<Sources::Value> Sources::fetch_token(const std::string& name, const OAuth& oauth) {
  const auto before = refresh_.find(name);
  TRY_ASSIGN(AccessToken token,
             fetch_access_token(oauth, before == refresh_.end() ? nullptr : &before->second));
  if (token.refresh) {
    const auto [now, fresh] = refresh_.insert_or_assign(name, std::move(*token.refresh));
    if (oauth.rotates) {
      if (!write_file_atomic(oauth.refresh_token.place, now->second.reveal(), 0600))
        return unavailable("its new refresh token cannot be written to " + oauth.refresh_token.place);
      refresh_.erase(now);  // the file has it, and another run's newer one later
    }
  }
  return keep(name, std::move(token.secret), token.valid);
}

Result<Sources::Value> Sources::fetch(const std::string& name, const Binding& binding) {
  if (binding.oauth) return fetch_token(name, *binding.oauth);
  TRY_ASSIGN(Secret secret, read_source(binding.source));
  switch (binding.source.kind) {
    case Source::Kind::kFile:
      return keep(name, std::move(secret), kFileValid);
    case Source::Kind::kCommand:
      return keep(name, std::move(secret),
                  binding.source.cache.count() > 0 ? binding.source.cache : kForever);
    case Source::Kind::kEnv:
      break;
  }
  return keep(name, std::move(secret), kForever);
}

}  // namespace firestop::credentials
