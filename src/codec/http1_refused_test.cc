// What is refused and why: each row is a message that two readers have taken for two things, or one that some
// reader took although it is none.
#include <gtest/gtest.h>

#include "codec/http1.h"
#include "codec/http1_testing.h"

namespace firestop::codec {
namespace {

using namespace std::string_literals;

struct Row {
  const char* why;
  std::string bytes;
  const char* code = "http.malformed";
};

const std::string kPost = "POST / HTTP/1.1\r\nHost: a\r\n";
const std::string kGet = "GET / HTTP/1.1\r\nHost: a\r\n";
const std::string kChunked = kPost + "Transfer-Encoding: chunked\r\n\r\n";

std::string post(std::string_view fields) {
  return kPost + std::string(fields) + "\r\n\r\n";
}
std::string get(std::string_view fields) {
  return kGet + std::string(fields) + "\r\n\r\n";
}

// Accepted by one or both of two well-known parsers, or refused by both: the first 46.
const Row kFraming[] = {
    {"TE gzip, then a length", post("Transfer-Encoding: gzip\r\nContent-Length: 5") + "hello"},
    {"TE gzip alone", post("Transfer-Encoding: gzip")},
    {"TE chunked, identity", post("Transfer-Encoding: chunked, identity")},
    {"TE chunked, chunked", post("Transfer-Encoding: chunked, chunked")},
    {"TE xchunked", post("Transfer-Encoding: xchunked")},
    {"TE in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"obs-fold", get("X: a\r\n b")},
    {"obs-fold in TE", post("Transfer-Encoding:\r\n chunked")},
    {"two equal lengths", post("Content-Length: 5\r\nContent-Length: 5") + "hello"},
    {"a list of equal lengths", post("Content-Length: 5, 5") + "hello"},
    {"no Host", "GET / HTTP/1.1\r\nX: a\r\n\r\n"},
    {"two Hosts", get("Host: b")},
    {"0x80 in the target", "GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
    {"bare LF line ends", "GET / HTTP/1.1\nHost: a\n\n"},
    {"bare LF inside the headers", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
    {"space behind a chunk size", kChunked + "5 \r\nhello\r\n0\r\n\r\n"},
    {"bare LF in a chunk extension", kChunked + "5;a\nhello\r\n0\r\n\r\n"},
    {"chunk data without CRLF", kChunked + "5\r\nhello0\r\n\r\n"},
    {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "http.version"},
    {"HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "http.version"},
    {"two spaces in the request line", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"Content-Length in a trailer", kChunked + "0\r\nContent-Length: 5\r\n\r\n"},
    {"leading CRLF", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"two lengths that differ", post("Content-Length: 5\r\nContent-Length: 6") + "hello!"},
    {"length +5", post("Content-Length: +5") + "hello"},
    {"length 0x5", post("Content-Length: 0x5") + "hello"},
    {"length over 64 bits", post("Content-Length: 18446744073709551621") + "hello"},
    {"length over 63 bits", post("Content-Length: 9223372036854775808")},
    {"NUL in a value", get("X: a\0b"s)},
    {"bare CR in a value", get("X: a\rb")},
    {"chunk 0x5", kChunked + "0x5\r\nhello\r\n0\r\n\r\n"},
    {"chunk -5", kChunked + "-5\r\nhello\r\n0\r\n\r\n"},
    {"chunk size over 64 bits", kChunked + "10000000000000005\r\nhello\r\n0\r\n\r\n"},
    {"chunk size over 63 bits", kChunked + "8000000000000000\r\nhello\r\n"},
    {"empty name", get(": a")},
    {"missing colon", get("X a")},
    {"space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"a length and TE", post("Content-Length: 5\r\nTransfer-Encoding: chunked") + "0\r\n\r\n"},
    {"TE and a length", post("Transfer-Encoding: chunked\r\nContent-Length: 5") + "0\r\n\r\n"},
    {"obs-fold behind the request line", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
    {"obs-fold with a tab", get("X: a\r\n\tb")},
    {"NUL in a name", get("X\0: a"s)},
    {"space in front of a name", "GET / HTTP/1.1\r\nHost: a\r\n X: b\r\n\r\n"},
    {"space in front of a chunk size", kChunked + " 5\r\nhello\r\n0\r\n\r\n"},
    {"tab before the colon", get("X\t: a")},
};

// Their brothers.
const Row kRequests[] = {
    {"HTTP/0.9", "GET /\r\n\r\n"},
    {"HTTP/1", "GET / HTTP/1\r\nHost: a\r\n\r\n"},
    {"HTTP/1.10", "GET / HTTP/1.10\r\nHost: a\r\n\r\n"},
    {"HTTP/01.1", "GET / HTTP/01.1\r\nHost: a\r\n\r\n"},
    {"http/1.1", "GET / http/1.1\r\nHost: a\r\n\r\n"},
    {"HTTP/1.1 and a space", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"},
    {"HTTP/9.9", "GET / HTTP/9.9\r\nHost: a\r\n\r\n", "http.version"},
    {"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http.version"},
    {"tab in the request line", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"leading space", " GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"leading LF", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"bare CR as an end of line", "GET / HTTP/1.1\rHost: a\r\r"s + "\n"},
    {"no method", " / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"no target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"lower-case method: readers fold it, rules do not", "get / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"method with a slash", "GET/x / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"method with a NUL", "GE\0T / HTTP/1.1\r\nHost: a\r\n\r\n"s},
    {"endless method", std::string(25, 'A') + " / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"TLS on a plain port", "\x16\x03\x01\x02\0\x01\0\r\n"s},
    {"target without slash", "GET a HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"target with a fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"target with a backslash", "GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"target with a control character", "GET /a\x01 HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"target with DEL", "GET /a\x7f HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"target with NUL", "GET /a\0 HTTP/1.1\r\nHost: a\r\n\r\n"s},
    {"UTF-8 in the query", "GET /?\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"* of another method", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"absolute-form whose host is not Host", "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"absolute-form whose port is not Host's", "GET http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"absolute-form, https, Host with port 80", "GET https://a/ HTTP/1.1\r\nHost: a:80\r\n\r\n"},
    {"absolute-form with a user", "GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n"},
    {"absolute-form of another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"absolute-form without a host", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"absolute-form with a backslash for a host's end", "GET http://a\\.b/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"absolute-form with a fragment", "GET http://a#b/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"absolute-form with one slash", "GET http:/a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"scheme-relative target means a host to some", "GET a://b HTTP/1.1\r\nHost: b\r\n\r\n"},
    {"CONNECT without a port", "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"CONNECT to a path", "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"CONNECT whose Host is another", "CONNECT a:443 HTTP/1.1\r\nHost: b:443\r\n\r\n"},
    {"CONNECT whose Host has another port", "CONNECT a:443 HTTP/1.1\r\nHost: a:80\r\n\r\n"},
    {"CONNECT with a length", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nContent-Length: 5\r\n\r\nhello"},
    {"CONNECT with chunks",
     "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
    {"two equal Hosts", get("Host: a")},
    {"Host with a user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"},
    {"Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
    {"Host with a space", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
    {"Host with two names", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"},
    {"Host with a bad port", "GET / HTTP/1.1\r\nHost: a:80x\r\n\r\n"},
    {"Host with port 0", "GET / HTTP/1.1\r\nHost: a:0\r\n\r\n"},
    {"Host with a percent sign", "GET / HTTP/1.1\r\nHost: a%2eb\r\n\r\n"},
    {"Host in UTF-8", "GET / HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n"},
    {"Host with a zone", "GET / HTTP/1.1\r\nHost: [fe80::1%1]\r\n\r\n"},
    {"HTTP/1.0 without Host: whose default?", "GET / HTTP/1.0\r\n\r\n"},
    {"a length of nothing", post("Content-Length:")},
    {"length -5", post("Content-Length: -5")},
    {"length with a leading zero", post("Content-Length: 05") + "hello"},
    {"length with a space inside", post("Content-Length: 5 0")},
    {"length with a fraction", post("Content-Length: 5.0")},
    {"length with a comma", post("Content-Length: 5,")},
    {"length with an exponent", post("Content-Length: 5e0")},
    {"length in quotes", post("Content-Length: \"5\"")},
    {"length in other digits", post("Content-Length: \xd9\xa5")},
    {"length with a vertical tab", post("Content-Length: \x0b"s + "5")},
    {"length with an underscore", post("Content_Length: 5") + "hello"},
    {"TE with an underscore", post("Transfer_Encoding: chunked") + "0\r\n\r\n"},
    {"TE twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked") + "0\r\n\r\n"},
    {"TE twice, the other identity",
     post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity") + "0\r\n\r\n"},
    {"TE identity", post("Transfer-Encoding: identity")},
    {"TE empty", post("Transfer-Encoding:")},
    {"TE with a comma in front", post("Transfer-Encoding: , chunked") + "0\r\n\r\n"},
    {"TE in quotes", post("Transfer-Encoding: \"chunked\"") + "0\r\n\r\n"},
    {"TE with a parameter", post("Transfer-Encoding: chunked;q=1") + "0\r\n\r\n"},
    {"TE with a vertical tab", post("Transfer-Encoding: \x0b"s + "chunked") + "0\r\n\r\n"},
    {"TE with a NUL", post("Transfer-Encoding: chunked\0"s) + "0\r\n\r\n"},
    {"TE with a form feed", post("Transfer-Encoding: chunked\x0c") + "0\r\n\r\n"},
    {"TE gzip, chunked", post("Transfer-Encoding: gzip, chunked") + "0\r\n\r\n"},
    {"a name in brackets", get("X(y): a")},
    {"a name with a byte over 0x7f", get("X\xa0: a")},
    {"a name with a slash", get("X/y: a")},
    {"a name with a space inside", get("X y: a")},
    {"a value with DEL", get("X: a\x7f")},
    {"a value with BEL", get("X: a\x07")},
    {"a value with ESC", get("X: \x1b[2J")},
    {"CR CR LF", get("X: a\r")},
    {"Connection names Host", get("Connection: Host")},
    {"Connection names Content-Length", post("Connection: content-length\r\nContent-Length: 5") + "hello"},
    {"Connection names Authorization", get("Connection: close, Authorization")},
    {"Connection is no list of tokens", get("Connection: a b")},
    {"an unknown expectation", post("Expect: 200-ok"), "http.expectation"},
    {"chunk size of nothing", kChunked + "\r\nhello\r\n0\r\n\r\n"},
    {"chunk size of an extension only", kChunked + ";a\r\nhello\r\n0\r\n\r\n"},
    {"chunk size with a sign", kChunked + "+5\r\nhello\r\n0\r\n\r\n"},
    {"chunk size with an underscore", kChunked + "1_0\r\nhello\r\n0\r\n\r\n"},
    {"chunk size with a tab", kChunked + "5\t;a\r\nhello\r\n0\r\n\r\n"},
    {"chunk size with an h", kChunked + "5h\r\nhello\r\n0\r\n\r\n"},
    {"chunk size ended by LF", kChunked + "5\nhello\r\n0\r\n\r\n"},
    {"chunk size ended by CR", kChunked + "5\rhello\r\n0\r\n\r\n"},
    {"chunk extension with a CR", kChunked + "5;a\rb\r\nhello\r\n0\r\n\r\n"},
    {"chunk extension with a NUL", kChunked + "5;\0\r\nhello\r\n0\r\n\r\n"s},
    {"chunk data ended by LF", kChunked + "5\r\nhello\n0\r\n\r\n"},
    {"chunk data ended by other bytes", kChunked + "5\r\nhelloXX0\r\n\r\n"},
    {"chunk longer than its size", kChunked + "4\r\nhello\r\n0\r\n\r\n"},
    {"last chunk ended by LF", kChunked + "0\n\n"},
    {"endless last chunk", kChunked + "00000000000000000\r\n\r\n"},
    {"Host in a trailer", kChunked + "0\r\nHost: b\r\n\r\n"},
    {"TE in a trailer", kChunked + "0\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {"Authorization in a trailer", kChunked + "0\r\nAuthorization: x\r\n\r\n"},
    {"Set-Cookie in a trailer", kChunked + "0\r\nSet-Cookie: x\r\n\r\n"},
    {"folded trailer", kChunked + "0\r\nX: a\r\n b\r\n\r\n"},
    {"trailer without a colon", kChunked + "0\r\nGET / HTTP/1.1\r\n\r\n"},
    {"endless chunk size line", kChunked + std::string(300, '0'), "http.too_large"},
};

const Row kResponses[] = {
    {"no status line", "<html>"s + "\r\n\r\n"},
    {"HTTP/2", "HTTP/2 200\r\n\r\n"},
    {"HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n", "http.version"},
    {"ICY", "ICY 200 OK\r\n\r\n"},
    {"two-digit status", "HTTP/1.1 20 OK\r\n\r\n"},
    {"four-digit status", "HTTP/1.1 2000 OK\r\n\r\n"},
    {"status 099", "HTTP/1.1 099 X\r\n\r\n"},
    {"status 600", "HTTP/1.1 600 X\r\n\r\n"},
    {"two spaces before the status", "HTTP/1.1  200 OK\r\n\r\n"},
    {"NUL in the reason", "HTTP/1.1 200 O\0\r\n\r\n"s},
    {"bare LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n"},
    {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na"},
    {"length and TE", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"TE gzip, chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
    {"TE in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"204 with a length", "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello"},
    {"204 with chunks", "HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"100 with a length", "HTTP/1.1 100 Go\r\nContent-Length: 5\r\n\r\nhello"},
    {"100 of HTTP/1.0", "HTTP/1.0 100 Go\r\n\r\n"},
    {"101 that nobody asked for", "HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"},
    {"folded header", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n"},
    {"space before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello"},
    {"a second answer", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"},
};

template <typename Reader>
std::string last_line(Reader& reader, std::string_view bytes, size_t piece) {
  Http1Transcript transcript(reader);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    transcript.feed(bytes.substr(0, piece));
  const std::string& text = transcript.text();
  if (!transcript.failed()) return "accepted: " + text;
  const size_t end = text.rfind('\n', text.size() - 2);
  return text.substr(end == std::string::npos ? 0 : end + 1);
}

void expect_refused(const Row& row) {
  for (size_t piece : {SIZE_MAX, size_t{1}}) {
    Http1RequestReader reader;
    EXPECT_EQ(last_line(reader, row.bytes, piece), row.code + "\n"s) << row.why;
  }
}

TEST(Http1Refused, FramingThatReadersDisagreeAbout) {
  static_assert(std::size(kFraming) == 46);
  for (const Row& row : kFraming) expect_refused(row);
}

TEST(Http1Refused, Requests) {
  static_assert(std::size(kRequests) >= 100);
  for (const Row& row : kRequests) expect_refused(row);
}

TEST(Http1Refused, Responses) {
  for (const Row& row : kResponses) {
    for (size_t piece : {SIZE_MAX, size_t{1}}) {
      Http1ResponseReader reader;
      reader.expect("GET", false);
      EXPECT_EQ(last_line(reader, row.bytes, piece), row.code + "\n"s) << row.why;
    }
  }
}

TEST(Http1Refused, AnUpgradeThatIsNone) {
  for (const char* fields :
       {"", "Upgrade: websocket\r\n", "Connection: upgrade\r\n", "Upgrade: h2c\r\nConnection: upgrade\r\n"}) {
    Http1ResponseReader reader;
    reader.expect("GET", true);
    EXPECT_EQ(last_line(reader, "HTTP/1.1 101 S\r\n" + std::string(fields) + "\r\n", SIZE_MAX),
              "http.malformed\n")
        << fields;
  }
}

}  // namespace
}  // namespace firestop::codec
