#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <map>

#include "credentials/source_process.h"
#include "credentials/source_wire.h"

namespace firestop::credentials {
namespace {

constexpr size_t kMostGiven = 4;       // values of one credential that answers are searched for
constexpr size_t kMostWaiting = 4096;  // requests; each is one that a guest has open
constexpr std::chrono::seconds kLongestAnswer{60};

class SourceVault : public Vault {
 public:
  SourceVault(Loop& loop, UniqueFd socket) : loop_(loop), socket_(std::move(socket)) {
    watch_ = loop_.watch(socket_.get(), Loop::kReadable, [this](int) { on_readable(); });
  }

  void get(const std::string& credential, Done done) override {
    auto& entry = entries_[credential];
    if (!entry.values.empty() && Clock::now() < entry.until) {
      done(entry.values.back());
      return;
    }
    if (!watch_ || waiting_ >= kMostWaiting || credential.empty() || credential.size() > kMostName) {
      done(fail("credential.unavailable", "its source does not answer"));
      return;
    }
    entry.waiting.push_back(std::move(done));
    ++waiting_;
    if (entry.asked) return;
    entry.asked = true;
    queue_.push_back(credential);
    ask();
  }

  std::vector<SharedSecret> given(const std::string& credential) const override {
    const auto found = entries_.find(credential);
    return found == entries_.end() ? std::vector<SharedSecret>{} : found->second.values;
  }
  uint64_t changes() const override { return changes_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::vector<SharedSecret> values;  // the last is the one in force
    Clock::time_point until;
    bool asked = false;
    std::vector<Done> waiting;
  };

  // One question at a time; answers come in order.
  void ask() {
    if (asking_ || queue_.empty() || !watch_) return;
    asking_ = true;
    const std::string& name = queue_.front();
    if (::send(socket_.get(), name.data(), name.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        static_cast<ssize_t>(name.size())) {
      gone();
      return;
    }
    timer_ = loop_.once(kLongestAnswer, [this] { gone(); });
  }

  void on_readable() {
    auto packet = Secret::make(kMostSourceAnswer);
    const ssize_t got = packet ? ::recv(socket_.get(), packet->writable(), packet->size(), MSG_DONTWAIT) : -1;
    if (got < 0 && packet && (errno == EAGAIN || errno == EINTR)) return;
    const auto answer = got > 0 ? read_answer(packet->reveal().substr(0, static_cast<size_t>(got)))
                                : std::optional<SourceAnswer>();
    if (!answer || !asking_) {
      gone();
      return;
    }
    timer_.reset();
    asking_ = false;
    const std::string name = std::move(queue_.front());
    queue_.pop_front();
    settle(name, take(entries_[name], *answer));
    ask();
  }

  Result<SharedSecret> take(Entry& entry, const SourceAnswer& answer) {
    if (!answer.has_value) return fail("credential.unavailable", std::string(answer.bytes));
    entry.until = Clock::now() + answer.valid;
    if (!entry.values.empty() && entry.values.back()->same_as(answer.bytes)) return entry.values.back();
    TRY_ASSIGN(Secret secret, Secret::copy(answer.bytes));
    if (entry.values.size() >= kMostGiven) entry.values.erase(entry.values.begin());
    entry.values.push_back(std::make_shared<const Secret>(std::move(secret)));
    ++changes_;
    return entry.values.back();
  }

  void settle(const std::string& name, const Result<SharedSecret>& result) {
    auto& entry = entries_[name];
    entry.asked = false;
    auto waiting = std::move(entry.waiting);
    entry.waiting.clear();
    waiting_ -= waiting.size();
    for (auto& done : waiting) done(result);
  }

  // Without its source there are no values any more but those that are still valid.
  void gone() {
    watch_.reset();
    timer_.reset();
    const auto queue = std::move(queue_);
    queue_.clear();
    for (const auto& name : queue) settle(name, fail("credential.unavailable", "its source does not answer"));
  }

  Loop& loop_;
  UniqueFd socket_;
  Loop::Handle watch_, timer_;
  std::map<std::string, Entry> entries_;
  std::deque<std::string> queue_;
  size_t waiting_ = 0;
  uint64_t changes_ = 0;
  bool asking_ = false;
};

}  // namespace

std::unique_ptr<Vault> make_source_vault(Loop& loop, UniqueFd socket) {
  return std::make_unique<SourceVault>(loop, std::move(socket));
}

}  // namespace firestop::credentials
