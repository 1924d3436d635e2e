// For tests: answers from a list, the next one each time it is asked, the last one for ever. A name without a
// list does not exist; one with an empty list is never answered.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "egress/codes.h"
#include "egress/resolver.h"

namespace firestop::egress::testing {

class FakeResolver final : public Resolver {
 public:
  explicit FakeResolver(Loop& loop) : loop_(loop) {}

  void add(const std::string& name, std::initializer_list<const char*> addresses) {
    std::vector<codec::Address> answer;
    for (const char* address : addresses) answer.push_back(*codec::Address::parse(address));
    answers_[name].push_back(std::move(answer));
  }
  void add_silent(const std::string& name) { answers_[name]; }

  std::unique_ptr<Lookup> look_up(const std::string& name, Done done) override {
    asked.push_back(name);
    auto answer = std::make_shared<Result<std::vector<codec::Address>>>(
        fail(codes::kUnresolved, name + " does not exist, says the host's resolver"));
    if (const auto found = answers_.find(name); found != answers_.end()) {
      if (found->second.empty()) return std::make_unique<Waiting>();
      *answer = found->second.front();
      if (found->second.size() > 1) found->second.erase(found->second.begin());
    }
    auto waiting = std::make_unique<Waiting>();
    waiting->timer = loop_.once(std::chrono::milliseconds(0), [answer, done = std::move(done)] {
      const Done call = done;
      call(*answer);
    });
    return waiting;
  }

  std::vector<std::string> asked;

 private:
  struct Waiting final : Lookup {
    Loop::Handle timer;
  };
  Loop& loop_;
  std::map<std::string, std::vector<std::vector<codec::Address>>> answers_;
};

}  // namespace firestop::egress::testing
