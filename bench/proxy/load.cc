// Loads one server, or one proxy in front of it, over TLS: each connection is a thread that asks, waits for
// the whole answer, and asks again. Prints one line of JSON: requests, seconds, bytes, and milliseconds of
// latency.
//
//   bench-load PORT HOST:PORT PATH CONNECTIONS SECONDS CA.pem [connect]
//
// With `connect` the port is a proxy's, which is asked to CONNECT first; always HTTP/1.1, kept alive.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Target {
  uint16_t port = 0;
  std::string authority, host, path, ca;
  bool connect = false;
};

struct Sum {
  std::vector<float> milliseconds;  // of each answer
  uint64_t bytes = 0;
  bool failed = false;
};

firestop::UniqueFd open_socket(uint16_t port) {
  firestop::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) socket.reset();
  return socket;
}

bool ask_proxy(int socket, const std::string& authority) {
  const std::string head = "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n";
  if (::send(socket, head.data(), head.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(head.size()))
    return false;
  std::string answer;
  for (char c; !answer.ends_with("\r\n\r\n") && answer.size() < 8192 && ::recv(socket, &c, 1, 0) == 1;)
    answer += c;
  return answer.size() > 9 && answer.compare(9, 1, "2") == 0;
}

// The whole of one answer with a Content-Length; its size, or 0.
size_t read_answer(SSL* ssl, std::vector<char>& buffer) {
  size_t have = 0, want = 0;
  while (want == 0 || have < want) {
    size_t got = 0;
    // What of a large body goes beyond the buffer is not kept.
    const size_t at = want == 0 ? have : 0;
    if (SSL_read_ex(ssl, buffer.data() + at, buffer.size() - at, &got) != 1) return 0;
    have += got;
    if (want != 0) continue;
    const std::string_view text(buffer.data(), have);
    const size_t end = text.find("\r\n\r\n");
    if (end == std::string_view::npos) {
      if (have == buffer.size()) return 0;
      continue;
    }
    if (text.substr(8, 4) != " 200") return 0;
    std::string head(text.substr(0, end));
    for (char& c : head) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const size_t length = head.find("\r\ncontent-length:");
    if (length == std::string::npos) return 0;
    want = end + 4 + std::strtoull(head.c_str() + length + 17, nullptr, 10);
  }
  return have;
}

void run(const Target& target, SSL_CTX* context, const std::atomic<bool>& over, Sum& sum) {
  firestop::UniqueFd socket = open_socket(target.port);
  sum.failed = true;
  if (!socket.valid() || (target.connect && !ask_proxy(socket.get(), target.authority))) return;
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, socket.get());
  SSL_set_tlsext_host_name(ssl, target.host.c_str());
  SSL_set1_host(ssl, target.host.c_str());
  const std::string request = "GET " + target.path + " HTTP/1.1\r\nHost: " + target.authority +
                              "\r\nAuthorization: Bearer " +
                              (std::getenv("BENCH_KEY") ? std::getenv("BENCH_KEY") : "x") + "\r\n\r\n";
  std::vector<char> buffer(64u << 10);
  if (SSL_connect(ssl) == 1) {
    sum.failed = false;
    while (!over && !sum.failed) {
      const auto begun = Clock::now();
      size_t sent = 0;
      const bool asked = SSL_write_ex(ssl, request.data(), request.size(), &sent) == 1;
      const size_t bytes = asked ? read_answer(ssl, buffer) : 0;
      sum.failed = bytes == 0;
      sum.bytes += bytes;
      if (!sum.failed)
        sum.milliseconds.push_back(std::chrono::duration<float, std::milli>(Clock::now() - begun).count());
    }
  }
  SSL_free(ssl);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  Target target{.port = static_cast<uint16_t>(std::strtoul(argv[1], nullptr, 10)),
                .authority = argv[2],
                .path = argv[3],
                .ca = argv[6],
                .connect = argc > 7};
  target.host = target.authority.substr(0, target.authority.rfind(':'));
  const size_t connections = std::strtoul(argv[4], nullptr, 10);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (SSL_CTX_load_verify_locations(context, target.ca.c_str(), nullptr) != 1) return 2;
  std::atomic<bool> over = false;
  std::vector<Sum> sums(connections);
  std::vector<std::thread> threads;
  const auto begun = Clock::now();
  for (Sum& sum : sums) threads.emplace_back([&] { run(target, context, over, sum); });
  std::this_thread::sleep_for(std::chrono::duration<double>(std::strtod(argv[5], nullptr)));
  over = true;
  for (auto& thread : threads) thread.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  std::vector<float> all;
  uint64_t bytes = 0;
  size_t failed = 0;
  for (const Sum& sum : sums) {
    all.insert(all.end(), sum.milliseconds.begin(), sum.milliseconds.end());
    bytes += sum.bytes;
    failed += sum.failed ? 1 : 0;
  }
  std::sort(all.begin(), all.end());
  const auto at = [&](double part) {
    return all.empty()
               ? 0.0F
               : all[std::min(all.size() - 1, static_cast<size_t>(part * static_cast<double>(all.size())))];
  };
  std::printf(
      "{\"requests\": %zu, \"failed\": %zu, \"seconds\": %.3f, \"bytes\": %llu, \"p50\": %.4f, \"p99\": "
      "%.4f}\n",
      all.size(), failed, seconds, static_cast<unsigned long long>(bytes), static_cast<double>(at(0.5)),
      static_cast<double>(at(0.99)));
  SSL_CTX_free(context);
  return failed == 0 && !all.empty() ? 0 : 1;
}
