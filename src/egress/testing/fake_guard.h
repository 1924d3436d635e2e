// For tests of what asks a guard: names that are on a list are allowed.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "egress/guard.h"

namespace firestop::egress {

class FakeGuard final : public Guard {
 public:
  std::optional<Denial> name(std::string_view host) override {
    asked.emplace_back(host);
    if (names.contains(std::string(host))) return std::nullopt;
    Denial denial;
    denial.code = "egress.no_rule";
    denial.message = "no rule has this host";
    if (!placeholder.empty() && host.find(placeholder) != std::string_view::npos) {
      denial.code = "credential.elsewhere";
      denial.alarm = true;
      denial.credential = "model";
    }
    return denial;
  }
  ConnectionPlan connection(const Authority&) override { return {}; }
  std::unique_ptr<Exchange> exchange(const Origin&) override { return nullptr; }
  std::optional<Denial> alarm_in_server_name(std::string_view) override { return std::nullopt; }
  std::optional<Denial> alarm_in(const http::RequestHead&) override { return std::nullopt; }

  std::set<std::string> names;
  std::string placeholder;
  std::vector<std::string> asked;
};

}  // namespace firestop::egress
