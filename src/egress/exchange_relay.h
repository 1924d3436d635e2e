// One request of the guest's and its answer: asked of the guard, carried to the origin and back, recorded
// once. Memory: what the streams buffer (http/stream.h), and what is counted in `holding`: what filters hold
// back, a body that arrives before the origin is connected, and what a filter gave out at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "egress/crossing.h"
#include "egress/guard.h"
#include "egress/origin_pool.h"
#include "http/deadline.h"
#include "http/hold_budget.h"
#include "http/stream.h"

namespace firestop::egress {

struct RelayTimes {
  std::chrono::milliseconds holding{
      std::chrono::minutes(5)};  // until a body that decides has come far enough
  std::chrono::milliseconds answer{std::chrono::minutes(15)};  // from the request's end to the answer's head
  std::chrono::milliseconds idle{std::chrono::minutes(15)};    // of a body, without a byte either way
  std::chrono::milliseconds tunnel{std::chrono::minutes(60)};  // the same, of a WebSocket
};

class ExchangeRelay {
 public:
  static constexpr size_t kMostSwallowed = 256u << 10;  // of a body that was refused, to keep the connection
  static constexpr int kMostTries = 2;  // a kept connection may end just when it is used again

  struct Context {
    Loop& loop;
    Guard& guard;
    OriginPool& pool;
    const Recorder& record;
    const std::function<bool(uint64_t)>& spend;  // limits.network.bytes; false: no more. May be empty
    RelayTimes times;
    http::HoldBudget& holding;
    std::function<void(ExchangeRelay*)> over;  // may destroy it a moment later, not at once
  };
  // `refusal`: set when the connection is denied already, and every request on it is answered so.
  ExchangeRelay(Context context, const Origin& origin, OriginPool::Wire wire, http::RequestHead head,
                std::unique_ptr<http::ServerStream> stream, const Denial* refusal);
  ~ExchangeRelay();
  ExchangeRelay(const ExchangeRelay&) = delete;
  ExchangeRelay& operator=(const ExchangeRelay&) = delete;

  void start();

 private:
  class GuestSide;
  class OriginSide;
  enum class State { kAdmitting, kHolding, kConnecting, kRelaying, kSwallowing, kOver };

  void admitted(std::optional<Denial> denial);
  void connect();
  void connected(OriginPool::Opened opened);
  void on_guest_data(std::string_view bytes);
  void on_guest_end(http::Headers trailers);
  void send_to_origin(std::string_view bytes);
  void end_to_origin();
  void give_back_to_guest();
  void give_back_to_origin();
  void on_response(http::ResponseHead head);
  void on_origin_data(std::string_view bytes);
  void on_origin_end(http::Headers trailers);
  void on_origin_abort(const std::string& why);
  bool try_again();
  bool spend(uint64_t bytes);
  size_t held_now() const;
  void count_held();
  void deny(const Denial& denial);
  void answer_with(const Denial& denial);
  void fail(const std::string& why);
  void finish_if_done();
  void end(const char* verdict);
  void tell(const char* verdict);
  void set_deadline();

  Context context_;
  const Origin origin_;
  const OriginPool::Wire wire_;
  http::RequestHead head_;
  const Denial* refusal_;
  Crossing crossing_;
  State state_ = State::kAdmitting;
  std::unique_ptr<GuestSide> guest_side_;
  std::unique_ptr<OriginSide> origin_side_;
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<http::ServerStream> guest_;
  std::unique_ptr<http::ClientStream> to_origin_;
  std::unique_ptr<OriginPool::Attempt> attempt_;
  http::Held counted_;
  Loop::Handle let_go_;
  std::string accept_;                       // for denials
  std::string held_;                         // for the origin, before it is connected
  http::Headers trailers_;                   // of the request
  size_t guest_owed_ = 0, origin_owed_ = 0;  // taken and not yet given back
  size_t swallowed_ = 0;
  int tries_ = 0;
  bool used_before_ = false;
  bool body_sent_ = false;    // some of it; the request cannot be sent again
  bool guest_ended_ = false;  // the request is whole
  bool end_told_ = false;     // to the origin
  bool answer_begun_ = false, answer_ended_ = false, origin_ended_ = false;
  bool tunnel_ = false;
  http::Deadline deadline_;
};

}  // namespace firestop::egress
