// For tests: git's own HTTP server (git-http-backend) on loopback, behind a rule. Requests are read, judged
// and passed on as the egress process does it, one after the other and without TLS.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "egress/git_rules.h"

namespace firestop::egress {

class GitTestServer {
 public:
  enum class Coding { kAsItCame, kGzip };  // kGzip: bodies are compressed before they are judged

  GitTestServer(std::string root, manifest::EgressRule::Git rule, Coding coding = Coding::kAsItCame);
  ~GitTestServer();
  GitTestServer(const GitTestServer&) = delete;
  GitTestServer& operator=(const GitTestServer&) = delete;

  std::string url(const std::string& path) const;  // "http://127.0.0.1:PORT/PATH"
  void set_rule(manifest::EgressRule::Git rule);
  // What reached git-http-backend: "POST /acme/widget.git/git-receive-pack push: refs/heads/a created ...".
  std::vector<std::string> passed();
  std::vector<http::Denial> denials();

 private:
  struct Request {
    http::RequestHead head;
    std::string body;
  };
  void serve();
  void answer(int socket);
  static std::optional<Request> read(int socket);
  std::string judged(Request request);
  std::string backend(const http::RequestHead& head, const std::string& body) const;

  std::string root_;
  Coding coding_;
  std::mutex mutex_;  // of what follows
  manifest::EgressRule::Git rule_;
  std::vector<std::string> passed_;
  std::vector<http::Denial> denials_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace firestop::egress
