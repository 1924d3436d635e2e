#include "credentials/source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "credentials/oauth.h"
#include "credentials/source_process.h"
#include "credentials/source_wire.h"

namespace firestop::credentials {
namespace {

using testing::HasSubstr;
using testing::Not;

// This program again, as the process of the sources.
constexpr const char* kAsSource = "FIRESTOP_TEST_AS_SOURCE";
[[gnu::constructor]] void be_the_source() {
  if (::getenv(kAsSource)) ::_exit(source_main(kSourceFd));
}

class SourceTest : public testing::Test {
 protected:
  SourceTest() {
    std::string name = "/tmp/firestop-source-XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~SourceTest() override {
    ::unsetenv(kAsSource);
    std::filesystem::remove_all(folder);
  }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = folder + "/" + name;
    EXPECT_TRUE(write_file_atomic(path, text));
    return path;
  }
  static Source file(const std::string& path) { return {.kind = Source::Kind::kFile, .place = path}; }
  static Source command(const std::string& line, std::chrono::milliseconds cache = {}) {
    return {.kind = Source::Kind::kCommand, .command = {"sh", "-c", line}, .cache = cache};
  }
  static std::string value(const Source& source) {
    const auto secret = read_source(source);
    return secret ? std::string(secret->reveal()) : "error " + secret.error().message;
  }
  std::string folder;
};

TEST_F(SourceTest, ReadsVariablesFilesAndCommands) {
  ::setenv("FIRESTOP_TEST_KEY", "from-variable", 1);
  EXPECT_EQ(value({.kind = Source::Kind::kEnv, .place = "FIRESTOP_TEST_KEY"}), "from-variable");
  EXPECT_EQ(value(file(write("a", "from-a-file\n"))), "from-a-file");
  EXPECT_EQ(value(file(write("b", "from-a-file\r\n"))), "from-a-file");
  EXPECT_EQ(value(command("echo from-a-command")), "from-a-command");
  EXPECT_EQ(value(file(write("json", "{\n  \"AccessKeyId\": 1\n}\n"))), "{   \"AccessKeyId\": 1 }");
}

// Whatever is wrong: an error that says where, and nothing of what was there.
TEST_F(SourceTest, RefusesWhatIsNoValue) {
  for (const auto& source :
       {file(write("short", "s3cret7")), file(write("empty", "")),
        file(write("lines", "s3cret-one\ns3cret-two\n")),
        file(write("nul", std::string("s3cret-with\0nul", 15))),
        file(write("utf8", "s3cret-\xc3\xa9\xc3\xa9")), file(write("space", " s3cret-blank ")),
        file(write("long", "s3cret" + std::string(kMostSecret, 'x'))), file(folder + "/missing"),
        file(folder), command("echo s3cret-then-fail; echo s3cret-on-stderr >&2; exit 3"),
        command("kill -9 $$"), command("head -c 100000 /dev/zero"), command("true"),
        Source{.kind = Source::Kind::kCommand, .command = {"/no/such/program"}},
        Source{.kind = Source::Kind::kEnv, .place = "FIRESTOP_TEST_NOT_SET"}}) {
    const auto secret = read_source(source);
    ASSERT_FALSE(secret.has_value()) << source.place;
    EXPECT_EQ(secret.error().code, "credential.unavailable");
    EXPECT_THAT(secret.error().to_string(), Not(HasSubstr("s3cret")));
  }
}

TEST_F(SourceTest, CommandsRunAgainWhenTheirTimeIsOver) {
  const std::string count = folder + "/count";
  Bindings bindings;
  bindings["once"].source = command("echo x >> " + count + "; echo the-value-$(wc -l < " + count + ")");
  bindings["often"].source = command("echo value-of-$(date +%N)", std::chrono::milliseconds(1));
  Sources sources(bindings);
  ASSERT_TRUE(sources.check().has_value());
  for (int round = 0; round < 3; ++round) EXPECT_EQ(sources.get("once")->secret->reveal(), "the-value-1");
  const std::string first(sources.get("often")->secret->reveal());
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_NE(sources.get("often")->secret->reveal(), first);
  EXPECT_FALSE(sources.get("unknown").has_value());
}

std::string get(Loop& loop, Vault& vault, const std::string& name) {
  std::string out = "nothing";
  const auto limit = loop.once(std::chrono::seconds(20), [&] { loop.stop(); });
  bool done = false, waits = false;
  vault.get(name, [&](Result<SharedSecret> secret) {
    out = secret ? std::string((*secret)->reveal()) : "error " + secret.error().message;
    done = true;
    if (waits) loop.stop();
  });
  waits = true;
  if (!done) loop.run();
  EXPECT_TRUE(done);
  return out;
}

TEST_F(SourceTest, AProcessOfItsOwnHasTheSources) {
  ::setenv("FIRESTOP_TEST_KEY", "from-variable", 1);
  ::setenv(kAsSource, "1", 1);
  const std::string path = write("rotates", "first-value");
  Bindings bindings;
  bindings["variable"].source = {.kind = Source::Kind::kEnv, .place = "FIRESTOP_TEST_KEY"};
  bindings["file"].source = file(path);
  bindings["command"].source = command("cat " + path, std::chrono::milliseconds(1));
  auto process = start_source_process({"/proc/self/exe"}, bindings);
  ASSERT_TRUE(process.has_value()) << process.error().message;
  char* kept = ::getenv("FIRESTOP_TEST_KEY");
  wipe_environment(bindings);
  EXPECT_EQ(::getenv("FIRESTOP_TEST_KEY"), nullptr);
  EXPECT_EQ(std::string(kept, 13), std::string(13, '\0'));

  Loop loop;
  {
    const auto vault = make_source_vault(loop, std::move(process->socket));
    EXPECT_TRUE(vault->given("variable").empty());
    EXPECT_EQ(get(loop, *vault, "variable"), "from-variable");
    EXPECT_EQ(get(loop, *vault, "variable"), "from-variable");
    EXPECT_EQ(vault->given("variable").size(), 1u);
    EXPECT_EQ(get(loop, *vault, "command"), "first-value");
    write("rotates", "second-value");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // its time is over
    EXPECT_EQ(get(loop, *vault, "command"), "second-value");
    EXPECT_EQ(vault->given("command").size(), 2u);  // answers may still have the first
    EXPECT_THAT(get(loop, *vault, "unknown"), HasSubstr("error"));
    std::filesystem::remove(path);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_THAT(get(loop, *vault, "command"), HasSubstr("error"));
    // The source dies: what needs it fails, what is known goes on.
    process->child.kill_and_wait();
    EXPECT_THAT(get(loop, *vault, "command"), HasSubstr("does not answer"));
    EXPECT_THAT(get(loop, *vault, "file"), HasSubstr("does not answer"));
    EXPECT_EQ(get(loop, *vault, "variable"), "from-variable");
  }
}

TEST_F(SourceTest, NothingStartsWithoutItsValues) {
  ::setenv(kAsSource, "1", 1);
  Bindings bindings;
  bindings["model"].source = {.kind = Source::Kind::kEnv, .place = "FIRESTOP_TEST_NOT_SET"};
  const auto process = start_source_process({"/proc/self/exe"}, bindings);
  ASSERT_FALSE(process.has_value());
  EXPECT_EQ(process.error().code, "credential.unavailable");
  EXPECT_THAT(process.error().message, HasSubstr("FIRESTOP_TEST_NOT_SET"));
  EXPECT_FALSE(start_source_process({"/bin/false"}, bindings).has_value());
}

TEST(SourceWire, AnswersAreReadStrictly) {
  auto packet = Secret::make(kMostSourceAnswer).value();
  const size_t size = write_answer(packet, "a-value-of-it", std::chrono::seconds(90));
  const auto answer = read_answer(packet.reveal().substr(0, size));
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->has_value);
  EXPECT_EQ(answer->bytes, "a-value-of-it");
  EXPECT_EQ(answer->valid, std::chrono::seconds(90));
  EXPECT_FALSE(read_answer(packet.reveal().substr(0, 8)));
  EXPECT_FALSE(read_answer(packet.reveal().substr(0, 12)));  // a value of three bytes
  EXPECT_FALSE(read_answer(std::string("x") + std::string(20, 'a')));
}

// A token server of one thread on loopback, which gives `answers` one after another.
class TokenServer {
 public:
  explicit TokenServer(std::vector<std::string> answers);
  ~TokenServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/token"; }
  std::vector<std::string> requests;

 private:
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::thread thread_;
};

TokenServer::TokenServer(std::vector<std::string> answers) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  ::listen(listener_.get(), 8);
  thread_ = std::thread([this, answers = std::move(answers)] {
    for (const auto& answer : answers) {
      const UniqueFd one(::accept(listener_.get(), nullptr, nullptr));
      if (!one.valid()) return;
      std::string request(65536, '\0');
      size_t got = 0;
      while (request.substr(0, got).find("scope=read") == std::string::npos) {
        const ssize_t more = ::read(one.get(), request.data() + got, request.size() - got);
        if (more <= 0) break;
        got += static_cast<size_t>(more);
      }
      requests.push_back(request.substr(0, got));
      (void)write_all(one.get(), answer);
    }
  });
}

std::string http_answer(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

TEST_F(SourceTest, OAuthTokensAreFetchedAndRenewed) {
  TokenServer server(
      {http_answer(R"({"access_token":"access-token-1","token_type":"bearer","expires_in":0})"),
       http_answer(R"({"access_token":"access-token-2","token_type":"Bearer","expires_in":3600})"),
       http_answer(R"({"error":"invalid_grant","error_description":"refresh-s3cret was used"})",
                   "400 Bad Request"),
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nrefre\r\n", "garbage\r\n\r\n"});
  Bindings bindings;
  auto& oauth = bindings["mail"].oauth.emplace();
  oauth = {.token_url = server.url(), .client_id = "me & you", .scope = "read"};
  oauth.refresh_token = file(write("refresh", "refresh-s3cret"));
  oauth.client_secret = file(write("client", "client-s3cret"));
  Sources sources(bindings);
  ASSERT_TRUE(sources.check().has_value());
  EXPECT_TRUE(server.requests.empty());  // not before it is needed
  EXPECT_EQ(sources.get("mail")->secret->reveal(), "access-token-1");
  EXPECT_EQ(sources.get("mail")->secret->reveal(), "access-token-2");  // the first was over at once
  EXPECT_EQ(sources.get("mail")->secret->reveal(), "access-token-2");
  ASSERT_EQ(server.requests.size(), 2u);
  EXPECT_THAT(server.requests[0], HasSubstr("POST /token HTTP/1.1\r\n"));
  EXPECT_THAT(server.requests[0],
              HasSubstr("\r\n\r\ngrant_type=refresh_token&refresh_token=refresh-s3cret&client_id="
                        "me%20%26%20you&client_secret=client-s3cret&scope=read"));
  for (const char* what : {"invalid_grant", "", ""}) {
    const auto token = fetch_access_token(oauth);
    ASSERT_FALSE(token.has_value());
    EXPECT_EQ(token.error().code, "credential.unavailable");
    EXPECT_THAT(token.error().to_string(), HasSubstr(what));
    EXPECT_THAT(token.error().to_string(), Not(HasSubstr("s3cret")));
  }
}

TEST_F(SourceTest, NewRefreshTokensAreUsedAndKeptWhereTheBindingSaysSo) {
  const auto answer = [](const std::string& number) {
    return http_answer(R"({"access_token":"access-token-)" + number +
                       R"(","expires_in":0,"refresh_token":"refresh-s3cret-)" + number + "\"}");
  };
  for (const bool rotates : {false, true}) {
    TokenServer server({answer("1"), answer("2"),
                        http_answer(R"({"access_token":"access-token-3","expires_in":0})"), answer("4")});
    Bindings bindings;
    auto& oauth = bindings["mail"].oauth.emplace();
    const std::string path = write("refresh", "refresh-s3cret-0");
    oauth = {.token_url = server.url(),
             .client_id = "me",
             .scope = "read",
             .refresh_token = file(path),
             .rotates = rotates};
    Sources sources(bindings);
    ASSERT_TRUE(sources.check().has_value());
    for (const char* number : {"1", "2", "3", "4"})
      EXPECT_EQ(sources.get("mail")->secret->reveal(), std::string("access-token-") + number);
    ASSERT_EQ(server.requests.size(), 4u);
    // The third answer left the second's token in force.
    for (const auto& [at, number] : {std::pair{0, "0"}, {1, "1"}, {2, "2"}, {3, "2"}})
      EXPECT_THAT(server.requests[static_cast<size_t>(at)],
                  HasSubstr(std::string("refresh_token=refresh-s3cret-") + number + "&"))
          << at;
    EXPECT_EQ(read_file(path).value(), rotates ? "refresh-s3cret-4" : "refresh-s3cret-0");
    struct stat st{};
    ASSERT_EQ(::stat(path.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0600u);
  }
}

TEST_F(SourceTest, ANewRefreshTokenThatCannotBeWrittenIsToldAndNotLost) {
  TokenServer server(
      {http_answer(R"({"access_token":"access-token-1","refresh_token":"refresh-s3cret-1"})"),
       http_answer(R"({"access_token":"access-token-2","refresh_token":"refresh-s3cret-2"})")});
  Bindings bindings;
  auto& oauth = bindings["mail"].oauth.emplace();
  // A place that can be read, and where nobody can make a file.
  const UniqueFd open(::open(write("refresh", "refresh-s3cret-0").c_str(), O_RDONLY | O_CLOEXEC));
  oauth = {.token_url = server.url(),
           .client_id = "me",
           .scope = "read",
           .refresh_token = file("/proc/self/fd/" + std::to_string(open.get())),
           .rotates = true};
  Sources sources(bindings);
  for (int i = 0; i < 2; ++i) {
    const auto token = sources.get("mail");
    ASSERT_FALSE(token.has_value());
    EXPECT_THAT(token.error().to_string(), HasSubstr("cannot be written to /proc/self/fd/"));
    EXPECT_THAT(token.error().to_string(), Not(HasSubstr("s3cret")));
  }
  ASSERT_EQ(server.requests.size(), 2u);
  EXPECT_THAT(server.requests[1], HasSubstr("refresh_token=refresh-s3cret-1&"));
  oauth.refresh_token = file(folder + "/none/refresh");
  EXPECT_FALSE(Sources(bindings).check().has_value());
}

TEST(OAuth, AnswersAreReadStrictly) {
  for (const char* body : {"", "[]", "{}", R"({"access_token":1})", R"({"access_token":"short"})",
                           R"({"access_token":"has a space in it"})", R"({"access_token":"has-a\r\n-line"})",
                           R"({"access_token":"good-enough","token_type":"mac"})"})
    EXPECT_FALSE(read_token_answer(200, body).has_value()) << body;
  EXPECT_FALSE(read_token_answer(302, R"({"access_token":"good-enough"})").has_value());
  const auto token = read_token_answer(200, R"({"access_token":"good-enough","expires_in":100})");
  ASSERT_TRUE(token.has_value());
  EXPECT_EQ(token->valid, std::chrono::seconds(80));
}

}  // namespace
}  // namespace firestop::credentials
