#include "channel/observation.h"

#include <algorithm>
#include <iterator>

#include "channel/messages.h"
#include "channel/variant.h"

namespace firestop::channel::observed {
namespace {

constexpr size_t kMaxPath = 4096, kMaxWord = 64, kMaxCollectors = 16;
constexpr size_t kMaxArguments = 16384;           // the frame is the real bound
constexpr int64_t kMostExact = int64_t{1} << 53;  // what JSON (RFC 8785), and so the record, can hold
constexpr Range kPid{0, INT32_MAX}, kTime{0, kMostExact}, kSize{0, kMostExact}, kId{1, UINT32_MAX},
    kReference{0, UINT32_MAX};
constexpr Range kAny32{0, UINT32_MAX}, kPort{0, UINT16_MAX}, kWaitStatus{0, 0xffff};

template <typename C, typename M>
using Ref = typename C::template Ref<M>;

template <typename C>
void describe(C& c, Ref<C, Hello> m) {
  c.integer("version", m.version, {0, INT32_MAX});
  c.tokens("collectors", m.collectors, kMaxCollectors, kMaxWord);
  c.tokens("missing", m.missing, kMaxCollectors, kMaxText);
}

template <typename C>
void describe(C& c, Ref<C, Fork> m) {
  c.integer("pid", m.pid, kPid);
  c.integer("parent", m.parent, kPid);
  c.integer("at_us", m.at_us, kTime);
}

template <typename C>
void describe(C& c, Ref<C, Exec> m) {
  c.integer("pid", m.pid, kPid);
  c.integer("parent", m.parent, kPid);
  c.integer("at_us", m.at_us, kTime);
  c.integer("uid", m.uid, kAny32);
  c.integer("gid", m.gid, kAny32);
  c.c_string("file", m.file, kMaxPath);
  c.boolean("from_image", m.from_image);
  c.integer("content", m.content, kReference);
  c.c_strings("argv", m.argv, kMaxArguments, codec::kMaxPayload);
  c.integer("argc", m.argc, kAny32);
  c.boolean("cut", m.cut);
  c.c_string("cwd", m.cwd, kMaxPath);
}

template <typename C>
void describe(C& c, Ref<C, Exit> m) {
  c.integer("pid", m.pid, kPid);
  c.integer("at_us", m.at_us, kTime);
  c.integer("status", m.status, kWaitStatus);
  c.integer("user_us", m.user_us, kSize);
  c.integer("system_us", m.system_us, kSize);
  c.integer("max_rss_kib", m.max_rss_kib, kSize);
}

template <typename C>
void describe(C& c, Ref<C, Content> m) {
  c.integer("id", m.id, kId);
  c.integer("size", m.size, kSize);
  c.integer("sent", m.sent, {0, static_cast<int64_t>(kMostContent)});
}

template <typename C>
void describe(C& c, Ref<C, Code> m) {
  c.integer("pid", m.pid, kPid);
  c.integer("at_us", m.at_us, kTime);
  c.token("how", m.how, kMaxWord);
  c.c_string("path", m.path, kMaxPath);
  c.c_string("interpreter", m.interpreter, kMaxPath);
  c.integer("content", m.content, kReference);
  c.integer("writer", m.writer, kPid);
  c.text("note", m.note);
}

template <typename C>
void describe(C& c, Ref<C, Change> m) {
  c.integer("pid", m.pid, kPid);
  c.integer("at_us", m.at_us, kTime);
  c.token("what", m.what, kMaxWord);
  c.c_string("path", m.path, kMaxPath);
  c.c_string("to", m.to, kMaxPath);
}

template <typename C>
void describe(C& c, Ref<C, Final> m) {
  c.c_string("path", m.path, kMaxPath);
  c.integer("size", m.size, kSize);
  c.token("digest", m.digest, kMaxWord);
  c.text("note", m.note);
}

template <typename C>
void describe(C& c, Ref<C, Connect> m) {
  c.integer("pid", m.pid, kPid);
  c.integer("at_us", m.at_us, kTime);
  c.token("protocol", m.protocol, kMaxWord);
  c.integer("source_port", m.source_port, kPort);
  c.token("address", m.address, kMaxWord);
  c.integer("port", m.port, kPort);
}

template <typename C>
void describe(C& c, Ref<C, Lost> m) {
  c.token("what", m.what, kMaxWord);
  c.integer("count", m.count, kSize);
}

template <typename C>
void describe(C&, Ref<C, Alive>) {}
template <typename C>
void describe(C&, Ref<C, Done>) {}

constexpr const char* kTypes[] = {"hello",  "fork",  "exec",    "exit", "content", "code",
                                  "change", "final", "connect", "lost", "alive",   "done"};
static_assert(std::size(kTypes) == std::variant_size_v<Observation>);

constexpr std::string_view kCollectors[] = {"processes", "costs", "files", "code", "stdin", "connections"};
constexpr std::string_view kHows[] = {"program", "script", "argument", "module",
                                      "command", "stdin",  "typed",    "opened"};
constexpr std::string_view kChanges[] = {"write", "rename", "delete", "link"};
constexpr std::string_view kProtocols[] = {"tcp", "udp"};

template <size_t N>
bool among(const std::string_view (&list)[N], const std::string& word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool is_digest(const std::string& text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

template <typename M>
const char* fault_of(const M&) {
  return nullptr;
}
const char* fault_of(const Hello& m) {
  for (const auto& name : m.collectors)
    if (!among(kCollectors, name)) return "collectors: an unknown one";
  return nullptr;
}
const char* fault_of(const Exec& m) {
  return m.argc < m.argv.size() ? "argc: less than there are" : nullptr;
}
const char* fault_of(const Content& m) {
  return m.sent > m.size ? "sent: more than there is" : nullptr;
}
const char* fault_of(const Code& m) {
  return among(kHows, m.how) ? nullptr : "how: an unknown one";
}
const char* fault_of(const Change& m) {
  if (!among(kChanges, m.what)) return "what: an unknown one";
  const bool moves = m.what == "rename" || m.what == "link";
  return moves == m.to.empty() ? "to: for a rename or a link, and nothing else" : nullptr;
}
const char* fault_of(const Final& m) {
  return m.digest.empty() || is_digest(m.digest) ? nullptr : "digest: none of SHA-256";
}
const char* fault_of(const Connect& m) {
  return among(kProtocols, m.protocol) ? nullptr : "protocol: unknown";
}
const char* fault_of(const Lost& m) {
  return among(kCollectors, m.what) ? nullptr : "what: an unknown one";
}

struct Description {
  template <typename C, typename M>
  void members(C& c, M& m) const {
    describe<C>(c, m);
  }
  template <typename M>
  const char* fault(const M& m) const {
    return fault_of(m);
  }
};

}  // namespace

Result<std::string> encode(const Observation& observation) {
  return encode_variant(observation, kTypes, Description());
}

Result<Observation> decode(std::string_view json) {
  return decode_variant<Observation>(json, kTypes, Unknown::kRefuse, Description());
}

Result<void> Inbox::receive(std::string_view bytes) {
  if (broken_) return fail("channel.broken", "the collectors' port is broken since an earlier error");
  auto done = take(bytes);
  if (!done) broken_ = true;
  return done;
}

Result<void> Inbox::take(std::string_view bytes) {
  decoder_.feed(bytes);
  while (true) {
    TRY_ASSIGN(const auto frame, decoder_.next());
    if (!frame) return {};
    switch (frame->type) {
      case codec::FrameType::kControl:
        TRY(control(frame->payload));
        break;
      case codec::FrameType::kData:
        if (!open_ || frame->stream != kContentStream || frame->payload.size() > left_)
          return bad_message("content", "bytes that were not announced");
        left_ -= frame->payload.size();
        TRY(receiver_.content_bytes(frame->payload));
        break;
      case codec::FrameType::kEnd:
        if (!open_ || frame->stream != kContentStream || left_ != 0)
          return bad_message("content", "an end before its end");
        open_ = false;
        TRY(receiver_.content_end());
        break;
      case codec::FrameType::kCredit:
        return bad_message("credit", "nobody sends to the collectors");
    }
  }
}

Result<void> Inbox::control(std::string_view json) {
  TRY_ASSIGN(const Observation observation, decode(json));
  const bool first = !greeted_;
  greeted_ = true;
  if (std::holds_alternative<Hello>(observation) != first) return bad_message("hello", "first, and once");
  if (done_) return bad_message("done", "something after it");
  if (const auto* content = std::get_if<Content>(&observation)) {
    if (open_) return bad_message("content", "within another");
    if (content->id != last_content_ + 1) return bad_message("content", "an id out of order");
    last_content_ = content->id;
    left_ = content->sent;
    open_ = true;
  }
  const auto refers_ahead = [this](uint32_t id) {
    return id > last_content_ || (open_ && id == last_content_);
  };
  const auto* exec = std::get_if<Exec>(&observation);
  const auto* code = std::get_if<Code>(&observation);
  if ((exec && refers_ahead(exec->content)) || (code && refers_ahead(code->content)))
    return bad_message("content", "a reference to what was not sent");
  done_ = std::holds_alternative<Done>(observation);
  if (done_ && open_) return bad_message("done", "within a content");
  return receiver_.observed(observation);
}

}  // namespace firestop::channel::observed
