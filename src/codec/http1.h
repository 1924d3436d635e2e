// HTTP/1.1 messages (RFC 9112), read strictly and written in one way. The reader stands between a hostile
// client and an origin that may read differently, so it refuses everything that two readers could take for
// two things: both framings, repeated framing or Host, folded lines, bare CR or LF, space before a colon or
// around a chunk size, transfer codings other than "chunked", versions other than 1.0 and 1.1. It also
// refuses to repair: what it gives out is written again by append_*, never copied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/http_field.h"

namespace firestop::codec {

inline constexpr size_t kMostHttpLine = 32u << 10;    // bytes of a line, with its end
inline constexpr size_t kMostHttpHead = 64u << 10;    // bytes of a head, or of trailers
inline constexpr size_t kMostHttpFields = 128;        // of a head, or of trailers
inline constexpr size_t kMostChunkExtension = 256;    // bytes behind one chunk size
inline constexpr size_t kMostChunkExtensions = 8192;  // bytes of them all in one body

struct Http1Framing {
  enum class Kind { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  uint64_t length = 0;  // of kLength; also informational, of an answer without a body (HEAD, 304)
  bool operator==(const Http1Framing&) const = default;
};

// `fields` are the end-to-end ones: Host, Content-Length and Transfer-Encoding have become members, and what
// concerns one connection (Connection and what it names, Keep-Alive, Proxy-Connection, Upgrade) is gone.
// "TE" stays as "trailers" if it had that.
struct Http1Request {
  std::string method;
  std::string scheme;       // of the absolute-form, "http" or "https"; else ""
  HttpAuthority authority;  // of Host; it agrees with the absolute-form; CONNECT: what to connect to
  std::string target;       // origin-form or "*"; "" of CONNECT
  HttpFields fields;
  Http1Framing framing;
  bool keep_alive = false;
  bool expects_continue = false;
  bool version_1_0 = false;
  std::string upgrade;  // "websocket" if that is properly asked for
};

struct Http1Response {
  int status = 0;  // 100 to 599
  HttpFields fields;
  Http1Framing framing;
  bool has_body = false;  // false for 1xx, 204, 304 and answers to HEAD, whatever `framing` says
  bool keep_alive = false;
};

// One side's messages out of a stream of bytes. next() takes from the front of `bytes` and says what it
// found; who calls it keeps what it did not take. Errors are final: "http.malformed", "http.too_large",
// "http.version", "http.expectation", "http.truncated". Holds at most kMostHttpHead bytes and their objects.
class Http1Reader {
 public:
  enum class Event {
    kMore,  // all was taken and nothing is complete
    kHead,
    kData,  // some of the body, or of the tunnel; a view into `bytes`
    kEnd,   // of the message, but not of an interim response; take_trailers() may have some
  };
  struct Step {
    Event event = Event::kMore;
    std::string_view data;
  };

  Result<Step> next(std::string_view& bytes);
  // The other side will send no more: kEnd completes a body that ends so, kMore: nothing was begun.
  Result<Step> end_of_input();
  // From the end of the present message on all bytes are kData; the message has no kEnd of its own.
  void become_tunnel();
  // Nothing of a message was read since the last one's end.
  bool idle() const { return state_ == State::kStart && (line_.empty() || line_done_); }
  HttpFields take_trailers() { return std::move(trailers_); }

 protected:
  enum class State {
    kStart,
    kFields,
    kLength,
    kUntilClose,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailers,
    kEnd,
    kTunnel,
    kBroken
  };
  Http1Reader() = default;
  ~Http1Reader() = default;
  // The head is complete: what frames its body.
  virtual Result<void> read_start_line(std::string_view line) = 0;
  virtual Result<Http1Framing> finish_head(HttpFields fields) = 0;
  void set_interim(bool interim) { interim_ = interim; }

 private:
  Result<Step> step(std::string_view& bytes);
  Step take_body(std::string_view& bytes);
  // A line without its end, once it is complete; a view into `bytes` or into line_.
  Result<std::optional<std::string_view>> take_line(std::string_view& bytes);
  Result<std::optional<Event>> read_line(std::string_view line);
  Result<void> read_field(std::string_view line, HttpFields& into);
  Result<std::optional<Event>> read_chunk_size(std::string_view line);
  Result<Event> end_head();

  State state_ = State::kStart;
  bool tunnel_ = false;
  bool interim_ = false;        // the present head is followed by another one
  bool line_done_ = false;      // line_ was given out whole
  std::string line_;            // the beginning of a line that is not complete
  size_t head_bytes_ = 0;       // of this head, or of these trailers
  size_t extension_bytes_ = 0;  // of this body
  uint64_t left_ = 0;           // of a length or of a chunk
  HttpFields fields_, trailers_;
};

class Http1RequestReader final : public Http1Reader {
 public:
  Http1Request take_request() { return std::move(request_); }  // after kHead

 private:
  Result<void> read_start_line(std::string_view line) override;
  Result<Http1Framing> finish_head(HttpFields fields) override;
  Http1Request request_;
};

class Http1ResponseReader final : public Http1Reader {
 public:
  // The request that the next final response answers; without it every response is an error.
  void expect(std::string_view method, bool upgrade);
  Http1Response take_response() { return std::move(response_); }  // after kHead

 private:
  enum class Expected { kNothing, kBody, kNoBody };
  Result<void> read_start_line(std::string_view line) override;
  Result<Http1Framing> finish_head(HttpFields fields) override;
  Http1Response response_;
  Expected expected_ = Expected::kNothing;
  bool upgrade_ = false;
  bool version_1_0_ = false;
};

// Appends a head. Fails with "http.unwritable" and appends nothing where a name, a value or the target would
// not be read back as the same, or `fields` has what the framing or the connection says. A response of 101
// gets "Upgrade: websocket".
struct Http1RequestLine {
  std::string_view method;
  std::string_view target;  // as it goes on the wire
  std::string_view host;    // value of Host
};
enum class Http1Connection { kKeep, kClose, kUpgrade };
Result<void> append_http1_request(std::string& out, const Http1RequestLine& line, const HttpFields& fields,
                                  const Http1Framing& framing, Http1Connection connection);
Result<void> append_http1_response(std::string& out, int status, const HttpFields& fields,
                                   const Http1Framing& framing, Http1Connection connection);
void append_http1_chunk(std::string& out, std::string_view bytes);  // nothing for no bytes
Result<void> append_http1_last_chunk(std::string& out, const HttpFields& trailers);

// The reason phrase of a status, "" if there is none that everyone knows.
std::string_view http1_reason(int status);
// Fields that have no place behind a body: framing, routing, authentication, content's form.
bool is_forbidden_trailer(std::string_view name);

}  // namespace firestop::codec
