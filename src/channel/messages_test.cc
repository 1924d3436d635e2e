#include "channel/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/frame.h"
#include "codec/json.h"

namespace firestop::channel {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;
using ::testing::HasSubstr;

const std::string kRaw("\0\xff\xfe \n\"\\", 7);   // no text at all
const std::string kRawName = "caf\xe9 \xff\x01";  // a name that some file system has: not UTF-8

Start full_start() {
  Start m;
  for (size_t i = 0; i < kSeedBytes; ++i) m.seed.push_back(static_cast<char>(i * 37));
  m.time_ns = 1795959211123456789;
  m.hostname = "due-diligence";
  m.entries_serial = "ro0";
  m.repositories = {{"repo", "ro1", std::string(40, 'a')}, {kRawName, "ro2", std::string(64, 'f')}};
  m.mounts = {{"dataroom", "ro3"}, {kRawName + "/x", "ro15"}};
  m.outputs = {{"report", 50u << 20}, {kRawName, uint64_t{1} << 62}};
  m.memory = {{".memory", "ro4", uint64_t{1} << 40, UINT32_MAX}};
  m.accounts = {{"analyst", 1000, 1000, {4, UINT32_MAX}}, {"other", 0, UINT32_MAX, {}}};
  m.groups = {{"readers", 2000}};
  m.run_as = "analyst";
  m.environment = {"LANG=C.UTF-8", "BYTES=" + kRawName, "EMPTY="};
  m.capabilities = {"shell", "filesystem"};
  m.seccomp = kRaw + "x";
  m.memory_max = 512u << 20;
  m.processes_max = 256;
  m.open_files_max = UINT32_MAX;
  m.cpus = 1.5;
  m.network = true;
  m.authority = "-----BEGIN CERTIFICATE-----\n";
  m.authority_hash = "0123abcd";
  m.files = {{"/home/analyst/.netrc", kRaw, 0600}, {"/" + kRawName, "", 0777}};
  m.test_root = true;
  return m;
}

std::string encoded(const auto& message) {
  auto json = encode(message);
  EXPECT_TRUE(json) << (json ? "" : json.error().message);
  return json ? *json : "";
}

// Aggregates have no ==; their encodings do, and each field below is distinct.
template <typename M>
M through_guest(const M& m) {
  auto back = decode_from_guest(encoded(FromGuest(m)));
  EXPECT_TRUE(back) << back.error().message;
  EXPECT_TRUE(std::holds_alternative<M>(*back));
  EXPECT_EQ(encoded(*back), encoded(FromGuest(m)));
  return std::get<M>(*back);
}

template <typename M>
M through_host(const M& m) {
  auto back = decode_from_host(encoded(FromHost(m)));
  EXPECT_TRUE(back) << back.error().message;
  EXPECT_TRUE(std::holds_alternative<M>(*back));
  EXPECT_EQ(encoded(*back), encoded(FromHost(m)));
  return std::get<M>(*back);
}

TEST(Messages, StartComesBack) {
  const Start m = full_start();
  const Start back = through_host(m);
  EXPECT_EQ(back.seed, m.seed);
  EXPECT_EQ(back.time_ns, m.time_ns);
  EXPECT_EQ(back.hostname, m.hostname);
  EXPECT_EQ(back.entries_serial, m.entries_serial);
  ASSERT_EQ(back.repositories.size(), 2u);
  EXPECT_EQ(back.repositories[1].path, kRawName);
  EXPECT_EQ(back.repositories[1].serial, "ro2");
  EXPECT_EQ(back.repositories[1].commit, std::string(64, 'f'));
  ASSERT_EQ(back.mounts.size(), 2u);
  EXPECT_EQ(back.mounts[1].path, kRawName + "/x");
  EXPECT_EQ(back.mounts[1].serial, "ro15");
  ASSERT_EQ(back.outputs.size(), 2u);
  EXPECT_EQ(back.outputs[1].path, kRawName);
  EXPECT_EQ(back.outputs[1].max_bytes, uint64_t{1} << 62);
  ASSERT_EQ(back.memory.size(), 1u);
  EXPECT_EQ(back.memory[0].path, ".memory");
  EXPECT_EQ(back.memory[0].serial, "ro4");
  EXPECT_EQ(back.memory[0].max_bytes, uint64_t{1} << 40);
  EXPECT_EQ(back.memory[0].max_files, UINT32_MAX);
  ASSERT_EQ(back.accounts.size(), 2u);
  EXPECT_EQ(back.accounts[0].name, "analyst");
  EXPECT_EQ(back.accounts[0].groups, m.accounts[0].groups);
  EXPECT_EQ(back.accounts[1].uid, 0u);
  EXPECT_EQ(back.accounts[1].gid, UINT32_MAX);
  ASSERT_EQ(back.groups.size(), 1u);
  EXPECT_EQ(back.groups[0].gid, 2000u);
  EXPECT_EQ(back.run_as, "analyst");
  EXPECT_EQ(back.environment, m.environment);
  EXPECT_EQ(back.capabilities, m.capabilities);
  EXPECT_EQ(back.seccomp, m.seccomp);
  EXPECT_EQ(back.memory_max, m.memory_max);
  EXPECT_EQ(back.processes_max, 256u);
  EXPECT_EQ(back.open_files_max, UINT32_MAX);
  EXPECT_EQ(back.cpus, 1.5);
  EXPECT_TRUE(back.test_root);
}

TEST(Messages, OthersFromTheHostComeBack) {
  Exec exec{3, {"/bin/sh", "-c", kRawName, ""}, true, "xterm", 50, 65535};
  Exec e = through_host(exec);
  EXPECT_EQ(e.id, 3);
  EXPECT_EQ(e.argv, exec.argv);
  EXPECT_TRUE(e.terminal);
  EXPECT_EQ(e.term, "xterm");
  EXPECT_EQ(e.rows, 50);
  EXPECT_EQ(e.columns, 65535);

  Signal s = through_host(Signal{1, 15});
  EXPECT_EQ(s.id, 1);
  EXPECT_EQ(s.signal, 15);
  Resize r = through_host(Resize{2, 0, 132});
  EXPECT_EQ(r.id, 2);
  EXPECT_EQ(r.rows, 0);
  EXPECT_EQ(r.columns, 132);
  Export x = through_host(Export{false, true});
  EXPECT_FALSE(x.repositories);
  EXPECT_TRUE(x.outputs);
  through_host(Shutdown{});
}

TEST(Messages, OthersFromTheGuestComeBack) {
  Ready ready = through_guest(Ready{7, "6.1.0-28-cloud-amd64"});
  EXPECT_EQ(ready.version, 7);
  EXPECT_EQ(ready.kernel, "6.1.0-28-cloud-amd64");
  Started started = through_guest(Started{{{"modules", 12345}, {"mounts", 0}}});
  ASSERT_EQ(started.steps.size(), 2u);
  EXPECT_EQ(started.steps[0].name, "modules");
  EXPECT_EQ(started.steps[0].us, 12345);
  Exited exited = through_guest(Exited{4, 0x89, true, 2, 3, "execve: no such file\n"});
  EXPECT_EQ(exited.id, 4);
  EXPECT_EQ(exited.status, 0x89);
  EXPECT_TRUE(exited.out_of_memory);
  EXPECT_EQ(exited.oom_kills, 2u);
  EXPECT_EQ(exited.left_behind, 3u);
  EXPECT_EQ(exited.cannot_start, "execve: no such file\n");
  Exported exported = through_guest(Exported{
      {{kRawName, true, false, ""}, {"b", false, true, "no git"}}, 9, "full", "too much", {{"a fifo"}}});
  ASSERT_EQ(exported.repositories.size(), 2u);
  EXPECT_EQ(exported.repositories[0].path, kRawName);
  EXPECT_TRUE(exported.repositories[0].changed);
  EXPECT_FALSE(exported.repositories[0].uncommitted);
  EXPECT_TRUE(exported.repositories[1].uncommitted);
  EXPECT_EQ(exported.repositories[1].error, "no git");
  EXPECT_EQ(exported.output_files, 9u);
  EXPECT_EQ(exported.outputs_error, "full");
  EXPECT_EQ(exported.memory_error, "too much");
  ASSERT_EQ(exported.notes.size(), 1u);
  EXPECT_EQ(exported.notes[0].text, "a fifo");
  Denied denied = through_guest(Denied{kDeniedExec, "/usr/bin/\x01id", 7});
  EXPECT_EQ(denied.kind, "exec");
  EXPECT_EQ(denied.path, "/usr/bin/\xef\xbf\xbdid");
  EXPECT_EQ(denied.count, 7u);
  Failed failed = through_guest(Failed{"mount", "no disk 'ro7'"});
  EXPECT_EQ(failed.step, "mount");
  EXPECT_EQ(failed.message, "no disk 'ro7'");
}

TEST(Messages, TextsForPeopleAreCutAndPrintable) {
  Failed failed = through_guest(Failed{"x", std::string(100000, '\xff')});
  EXPECT_LE(failed.message.size(), kMaxText);
  EXPECT_EQ(failed.message.substr(0, 3), "\xef\xbf\xbd");
  // A guest that encodes by itself is not believed either.
  auto hostile =
      decode_from_guest(R"({"type":"failed","step":"\u001b]0;owned\u0007","message":"\u009b2J\u202ex"})");
  ASSERT_TRUE(hostile);
  EXPECT_EQ(std::get<Failed>(*hostile).step, "\xef\xbf\xbd]0;owned\xef\xbf\xbd");
  EXPECT_EQ(std::get<Failed>(*hostile).message,
            "\xef\xbf\xbd"
            "2J\xef\xbf\xbdx");
}

TEST(Messages, ARealStartFits) {
  Start m = full_start();
  m.environment.assign(64, "NAME=" + std::string(507, 'x'));  // 32 KiB
  m.seccomp.assign(6144, '\x06');
  EXPECT_LE(encoded(FromHost(m)).size(), codec::kMaxPayload);
}

TEST(Messages, WhatNoFrameHoldsIsAnError) {
  Start start = full_start();
  start.environment.assign(100, "NAME=" + std::string(1000, 'x'));
  for (const FromHost& m : {FromHost(start), FromHost(Exec{0, {"echo", std::string(60000, 'x')}})}) {
    auto json = encode(m);
    ASSERT_FALSE(json);
    EXPECT_EQ(json.error().code, "channel.too_large");
    EXPECT_THAT(json.error().hint, HasSubstr("environment"));
  }
  Exported exported;
  exported.repositories.assign(16, {std::string(4000, 'p'), true, true, std::string(4000, 'e')});
  EXPECT_EQ(encode(FromGuest(exported)).error().code, "channel.too_large");
}

TEST(Messages, ValuesOutOfRangeAreNotEncoded) {
  auto code = [](const FromHost& m) {
    auto json = encode(m);
    return json ? "accepted" : json.error().message;
  };
  Start m = full_start();
  m.seed.pop_back();
  EXPECT_THAT(code(m), HasSubstr("seed"));
  m = full_start();
  m.seccomp.push_back('x');
  EXPECT_THAT(code(m), HasSubstr("seccomp"));
  m = full_start();
  m.environment.push_back(std::string("A=\0B", 4));
  EXPECT_THAT(code(m), HasSubstr("environment: a NUL byte"));
  m = full_start();
  m.memory_max = UINT64_MAX;
  EXPECT_THAT(code(m), HasSubstr("memory_max: out of range"));
  m = full_start();
  m.repositories.assign(17, {});
  EXPECT_THAT(code(m), HasSubstr("repositories: too many"));
  m = full_start();
  m.accounts[1].name = "a\nb";
  EXPECT_THAT(code(m), HasSubstr("accounts: name: characters"));
  EXPECT_THAT(code(Exec{}), HasSubstr("argv: empty"));
  EXPECT_THAT(code(Exec{-1, {"x"}}), HasSubstr("id: out of range"));
  EXPECT_THAT(code(Signal{0, 0}), HasSubstr("signal: out of range"));
}

// The message as an object, with one member replaced (or removed: nullopt).
std::string with(const auto& message, std::string_view member, std::optional<Json> value) {
  Json json = *codec::parse_json(encoded(message));
  json.as_object()->erase(std::string(member));
  if (value) json.as_object()->emplace(member, *value);
  return codec::write_json(json);
}

TEST(Messages, HostileMessagesFromTheGuest) {
  const FromGuest ready = Ready{1, "k"}, started = Started{{{"a", 1}}}, exited = Exited{0, 0};
  const FromGuest exported = Exported{{{"p", true, true, ""}}, 1, ""}, failed = Failed{"s", "m"};
  auto step = [](Json name, Json us) { return Json(JsonArray{JsonObject{{"name", name}, {"us", us}}}); };
  auto repository = [](std::string_view member, Json value) {
    JsonObject r{{"path", "cA=="}, {"changed", true}, {"uncommitted", true}, {"error", ""}};
    r.insert_or_assign(std::string(member), std::move(value));
    return Json(JsonArray{std::move(r)});
  };
  const JsonArray many(100000, Json(0));
  struct {
    const char* why;
    std::string json;
  } table[] = {
      {"nothing", ""},
      {"no JSON", "x"},
      {"no object", "[]"},
      {"null", "null"},
      {"two objects", encoded(ready) + encoded(ready)},
      {"no type", with(ready, "type", std::nullopt)},
      {"type of another type", with(ready, "type", 1)},
      {"unknown type", with(ready, "type", "reboot")},
      {"empty type", with(ready, "type", "")},
      {"type in capitals", with(ready, "type", "Ready")},
      {"a message of the host", encoded(FromHost(Shutdown{}))},
      {"duplicate type", R"({"type":"failed","type":"failed","step":"","message":""})"},
      {"unknown member", with(ready, "extra", 1)},
      {"unknown member of a list's element",
       with(started, "steps", JsonArray{JsonObject{{"name", "a"}, {"us", 1}, {"x", 1}}})},
      {"missing number", with(ready, "version", std::nullopt)},
      {"missing text", with(failed, "message", std::nullopt)},
      {"missing list", with(exported, "repositories", std::nullopt)},
      {"number as text", with(ready, "version", "1")},
      {"number as fraction", with(ready, "version", 1.0)},
      {"number as null", with(ready, "version", Json())},
      {"number as boolean", with(ready, "version", true)},
      {"number as list", with(ready, "version", JsonArray{1})},
      {"version is negative", with(ready, "version", -1)},
      {"version beyond an int", with(ready, "version", int64_t{1} << 31)},
      {"version that wraps to 1", with(ready, "version", (int64_t{1} << 32) + 1)},
      {"text as number", with(ready, "kernel", 6)},
      {"kernel with a line end: would forge log lines", with(ready, "kernel", "6.1\nok")},
      {"kernel with an escape", with(ready, "kernel", "\x1b[2J")},
      {"kernel too long", with(ready, "kernel", std::string(257, 'k'))},
      {"steps is an object", with(started, "steps", JsonObject{})},
      {"a step is no object", with(started, "steps", JsonArray{1})},
      {"a step takes negative time", with(started, "steps", step("a", -1))},
      {"a step's time is beyond 64 bits", with(started, "steps", step("a", 1e19))},
      {"a step without name", with(started, "steps", step(Json(), 1))},
      {"too many steps", with(started, "steps", JsonArray(257, Json(JsonObject{{"name", "a"}, {"us", 1}})))},
      {"an id below 0", with(exited, "id", -1)},
      {"an id above all", with(exited, "id", 4096)},
      {"an id that wraps to 0", with(exited, "id", int64_t{1} << 32)},
      {"a status that wait never gives", with(exited, "status", 0x10000)},
      {"a negative status", with(exited, "status", -1)},
      {"boolean as number", with(exited, "out_of_memory", 1)},
      {"boolean as text", with(exited, "out_of_memory", "true")},
      {"a count below 0", with(exited, "oom_kills", -1)},
      {"a count beyond 32 bits", with(exited, "left_behind", int64_t{1} << 32)},
      {"a text beyond its bound", with(exited, "cannot_start", std::string(kMaxText + 1, 'x'))},
      {"a path that is no base64", with(exported, "repositories", repository("path", "../x"))},
      {"a path with NUL", with(exported, "repositories", repository("path", "YQBi"))},
      {"a path beyond PATH_MAX", with(exported, "repositories", repository("path", std::string(8192, 'A')))},
      {"too many repositories",
       with(exported, "repositories", JsonArray(17, (*repository("error", "").as_array())[0]))},
      {"a list with 100 000 elements", with(exported, "repositories", many)},
      {"longer than a frame", with(failed, "message", std::string(codec::kMaxPayload, 'x'))},
      {"deeply nested", std::string(30000, '[') + std::string(30000, ']')},
      {"deep below a member", R"({"type":"ready","version":)" + std::string(10000, '[')},
  };
  for (const auto& row : table) {
    auto message = decode_from_guest(row.json);
    ASSERT_FALSE(message) << row.why;
    EXPECT_EQ(message.error().code, "channel.bad_message") << row.why;
    EXPECT_LT(message.error().message.size(), 300u) << row.why;
  }
}

TEST(Messages, HostileMessagesToTheGuest) {
  const FromHost start = full_start(), exec = Exec{0, {"x"}};
  const std::string short_seed = "AAAA";
  struct {
    const char* why;
    std::string json;
  } table[] = {
      {"a message of the guest", encoded(FromGuest(Failed{}))},
      {"a seed that is short", with(start, "seed", short_seed)},
      {"no seed", with(start, "seed", std::nullopt)},
      {"a seed that is text", with(start, "seed", std::string(64, '-'))},
      {"a time before 1970", with(start, "time_ns", -1)},
      {"half an instruction", with(start, "seccomp", "AAAA")},
      {"memory below 0", with(start, "memory_max", -1)},
      {"processors below 0", with(start, "cpus", -0.5)},
      {"more processors than there are", with(start, "cpus", 1e9)},
      {"processors as text", with(start, "cpus", "1")},
      {"a variable that is no string", with(start, "environment", JsonArray{1})},
      {"a variable with NUL", with(start, "environment", JsonArray{"QT0AQg=="})},
      {"a variable that is not base64", with(start, "environment", JsonArray{"A=B"})},
      {"a capability that is no string", with(start, "capabilities", JsonArray(1, codec::Json(JsonArray{})))},
      {"a serial longer than virtio's", with(start, "entries_serial", std::string(21, 's'))},
      {"a group beyond 32 bits",
       with(start, "groups", JsonArray{JsonObject{{"name", "g"}, {"gid", int64_t{1} << 32}}})},
      {"a supplementary group below 0",
       with(start, "accounts",
            JsonArray{JsonObject{{"name", "a"}, {"uid", 1}, {"gid", 1}, {"groups", JsonArray{-1}}}})},
      {"nothing to execute", with(exec, "argv", JsonArray{})},
      {"rows beyond 16 bits", with(exec, "rows", 65536)},
      {"terminal as number", with(exec, "terminal", 0)},
      {"TERM with NUL", with(exec, "term", "eAB5")},
      {"signal 65", with(FromHost(Signal{0, 9}), "signal", 65)},
      {"signal 0", with(FromHost(Signal{0, 9}), "signal", 0)},
  };
  for (const auto& row : table) {
    auto message = decode_from_host(row.json);
    ASSERT_FALSE(message) << row.why;
    EXPECT_EQ(message.error().code, "channel.bad_message") << row.why;
  }
}

TEST(Messages, TheGuestIgnoresWhatItDoesNotKnow) {
  auto message = decode_from_host(with(FromHost(Signal{1, 2}), "later", JsonObject{{"x", JsonArray{1}}}));
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<Signal>(*message).signal, 2);
}

TEST(Messages, AnErrorNamesTheMemberAndIsSafeToShow) {
  const FromGuest started = Started{{{"a", 1}}};
  auto error = [](const std::string& json) { return decode_from_guest(json).error().message; };
  EXPECT_EQ(error(with(started, "steps", JsonArray{JsonObject{{"name", "a"}, {"us", -1}}})),
            "channel message 'started': steps: us: out of range");
  EXPECT_EQ(error(with(started, "\x1b[2J", 1)), "channel message 'started': unknown member: \xef\xbf\xbd[2J");
}

}  // namespace
}  // namespace firestop::channel
