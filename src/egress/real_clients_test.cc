// The sandbox's authority as real programs see it: they trust it for a name of the policy, each by its own
// way of being told, and for no other name. Both matter: a client that overlooks name constraints would pass
// the first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "base/process.h"
#include "egress/certificate_authority.h"
#include "egress/testing/sockets.h"

namespace firestop::egress {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHost = "api.example.com";
constexpr const char* kOther = "api.example.net";

// An origin that says hello, whoever it is taken for.
class HelloServer {
 public:
  explicit HelloServer(CertificateAuthority& authority) : listener_(testing::bound(SOCK_STREAM)) {
    thread_ = std::thread([this, &authority] {
      while (!stop_) {
        pollfd ready{listener_.get(), POLLIN, 0};
        if (::poll(&ready, 1, 20) == 1) serve(authority);
      }
    });
  }
  ~HelloServer() {
    stop_ = true;
    thread_.join();
  }
  HelloServer(const HelloServer&) = delete;
  HelloServer& operator=(const HelloServer&) = delete;
  std::string port() const { return std::to_string(testing::port_of(listener_)); }
  std::string host;  // whose certificate is shown

 private:
  void serve(CertificateAuthority& authority) {
    const UniqueFd socket = testing::accepted(listener_);
    auto ssl = authority.accept_tls(host, {"http/1.1"});
    if (!ssl || SSL_set_fd(ssl->get(), socket.get()) != 1 || SSL_accept(ssl->get()) != 1) return;
    std::string head;
    for (char c = 0; !head.ends_with("\r\n\r\n") && SSL_read(ssl->get(), &c, 1) == 1;) head += c;
    const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";
    SSL_write(ssl->get(), answer.data(), static_cast<int>(answer.size()));
    SSL_shutdown(ssl->get());
  }
  UniqueFd listener_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class RealClients : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // of clients that go away
    folder = ::testing::TempDir() + "/real-clients-" + std::to_string(::getpid());
    ASSERT_TRUE(make_directories(folder));
    auto made = CertificateAuthority::make({{kHost}});
    ASSERT_TRUE(made);
    authority = std::move(*made);
    file = folder + "/authority.pem";
    ASSERT_TRUE(write_file_atomic(file, authority->certificate()));
    server = std::make_unique<HelloServer>(*authority);
  }
  void TearDown() override {
    server.reset();
    EXPECT_TRUE(remove_tree(folder));
  }
  // What it printed, on both streams.
  std::string run_it(std::vector<std::string> argv, const std::vector<std::string>& environment = {}) {
    Command command;
    command.argv = std::move(argv);
    command.directory = folder;
    command.env = environment;
    for (const char* name : {"PATH", "HOME"})
      if (const char* value = ::getenv(name)) command.env->push_back(std::string(name) + "=" + value);
    const auto ran = run(std::move(command), {.timeout = std::chrono::seconds(100)});
    return ran ? ran->out + ran->err : ran.error().code;
  }
  // `client` gets the host and gives back what it saw.
  void expect_trust(const std::function<std::string(const std::string&)>& client, const char* trusted,
                    const char* refused) {
    server->host = kHost;
    const std::string good = client(kHost);
    if (good == "process.not_found") GTEST_SKIP() << "it is not installed";
    EXPECT_THAT(good, HasSubstr(trusted));
    server->host = kOther;
    const std::string bad = client(kOther);
    EXPECT_THAT(bad, Not(HasSubstr(trusted)));
    EXPECT_THAT(bad, HasSubstr(refused));
  }

  std::string folder, file;
  std::unique_ptr<CertificateAuthority> authority;
  std::unique_ptr<HelloServer> server;
};

TEST_F(RealClients, Curl) {
  expect_trust(
      [&](const std::string& host) {
        return run_it(
            {"curl", "-sS", "--max-time", "60", "--resolve", host + ":" + server->port() + ":127.0.0.1",
             "https://" + host + ":" + server->port() + "/"},
            {"CURL_CA_BUNDLE=" + file});
      },
      "hello", "certificate problem: permitted subtree violation");
}

// Debian's is built with GnuTLS.
TEST_F(RealClients, Git) {
  expect_trust(
      [&](const std::string& host) {
        return run_it({"git", "-c", "http.curloptResolve=" + host + ":" + server->port() + ":127.0.0.1",
                       "ls-remote", "https://" + host + ":" + server->port() + "/x"},
                      {"GIT_SSL_CAINFO=" + file, "GIT_TERMINAL_PROMPT=0"});
      },
      "is this a git repository", "certificate verification failed");
}

TEST_F(RealClients, Python) {
  constexpr const char* kScript = R"(
import os, socket, ssl, sys
host, port = sys.argv[1], int(sys.argv[2])
context = ssl.create_default_context()
context.verify_flags |= ssl.VERIFY_X509_STRICT
with context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname=host) as tls:
    tls.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    print(tls.recv(4096).decode())
)";
  expect_trust(
      [&](const std::string& host) {
        return run_it({"python3", "-c", kScript, host, server->port()}, {"SSL_CERT_FILE=" + file});
      },
      "hello", "permitted subtree violation");
}

TEST_F(RealClients, Node) {
  constexpr const char* kScript = R"(
const [host, port] = process.argv.slice(1);
require("https").get({host: "127.0.0.1", port, servername: host, headers: {host}}, (answer) => answer.pipe(process.stdout))
  .on("error", (error) => console.log(error.message));
)";
  expect_trust(
      [&](const std::string& host) {
        return run_it({"node", "-e", kScript, host, server->port()}, {"NODE_EXTRA_CA_CERTS=" + file});
      },
      "hello", "permitted subtree violation");
}

TEST_F(RealClients, Java) {
  constexpr const char* kSource = R"(
import java.net.Socket;
import javax.net.ssl.*;
class Client {
  public static void main(String[] args) throws Exception {
    Socket plain = new Socket("127.0.0.1", Integer.parseInt(args[1]));
    SSLSocket tls = (SSLSocket) ((SSLSocketFactory) SSLSocketFactory.getDefault())
        .createSocket(plain, args[0], plain.getPort(), true);
    SSLParameters parameters = tls.getSSLParameters();
    parameters.setEndpointIdentificationAlgorithm("HTTPS");
    tls.setSSLParameters(parameters);
    tls.getOutputStream().write("GET / HTTP/1.1\r\nHost: x\r\n\r\n".getBytes());
    System.out.println(new String(tls.getInputStream().readAllBytes()));
  }
}
)";
  ASSERT_TRUE(write_file_atomic(folder + "/Client.java", kSource));
  const std::string imported = run_it({"keytool", "-importcert", "-noprompt", "-alias", "firestop", "-file",
                                       file, "-keystore", folder + "/trust", "-storepass", "changeit"});
  if (imported == "process.not_found") GTEST_SKIP() << "java is not installed";
  const std::string compiled = run_it({"javac", "Client.java"});
  if (compiled == "process.not_found") GTEST_SKIP() << "javac is not installed";
  ASSERT_EQ(compiled, "");
  expect_trust(
      [&](const std::string& host) {
        return run_it({"java", "-Djavax.net.ssl.trustStore=" + folder + "/trust",
                       "-Djavax.net.ssl.trustStorePassword=changeit", "Client", host, server->port()});
      },
      "hello", "name constraints check failed");
}

}  // namespace
}  // namespace firestop::egress
