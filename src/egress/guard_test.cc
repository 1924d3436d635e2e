// The guard without a network: what becomes of heads and bodies. The attacker writes every byte of the
// requests here, and the origin every byte of the answers.
#include <gtest/gtest.h>
#include <zlib.h>

#include "codec/base64.h"
#include "credentials/sigv4.h"
#include "credentials/sigv4_body.h"
#include "egress/codes.h"
#include "egress/guard_config.h"
#include "egress/testing/guard_lab.h"

namespace firestop::egress {
namespace {

using credentials::Secret;
using credentials::SharedSecret;
using http::Body;
using http::find_header;
using http::RequestHead;
using http::ResponseHead;

std::string basic(const std::string& pair) {
  return "Basic " + codec::encode_base64(pair);
}

TEST_F(GuardTest, EachWayPutsTheValueInItsPlace) {
  auto head =
      request("GET", "api.example.com", "/v1/models", {{"Authorization", "bearer " + placeholder("model")}});
  ASSERT_EQ(admit(head), "");
  EXPECT_EQ(head.headers[0].value, "Bearer " + std::string(kValue));
  EXPECT_EQ(exchange->route().rule, "egress[0]");
  EXPECT_EQ(exchange->route().credential, "model");
  EXPECT_EQ(exchange->route().connect_to, "127.0.0.1:9");
  EXPECT_TRUE(exchange->route().private_addresses);

  head = request("GET", "key.example.com", "/", {{"x-api-key", placeholder("key")}});
  ASSERT_EQ(admit(head), "");
  EXPECT_EQ(head.headers[0].value, "Token " + std::string(kValue));
  head = request("GET", "key.example.com", "/", {{"X-Api-Key", "token  " + placeholder("key")}});
  ASSERT_EQ(admit(head), "");
  EXPECT_EQ(head.headers[0].value, "Token " + std::string(kValue));

  head = request("GET", "query.example.com", "/?a=1&key=" + placeholder("query") + "&b=%26");
  ASSERT_EQ(admit(head), "");
  EXPECT_EQ(head.target, "/?a=1&key=s3cret%2Fvalue%2Bwith%3Dchars%26more&b=%26");

  for (const auto& pair : {"x-access-token:" + placeholder("forge"), "me:" + placeholder("forge"),
                           placeholder("forge") + ":", placeholder("forge") + ":x-oauth-basic"}) {
    head = request("GET", "git.example.com", "/", {{"authorization", basic(pair)}});
    ASSERT_EQ(admit(head), "") << pair;
    EXPECT_EQ(head.headers[0].value, basic("x-access-token:" + std::string(kValue)));
  }

  head = {.method = "GET",
          .scheme = "http",
          .authority = {"plain.example.com", 80},
          .target = "/",
          .headers = {{"Authorization", "Bearer " + placeholder("plain")}}};
  ASSERT_EQ(admit(head), "");
  EXPECT_EQ(head.headers[0].value, "Bearer " + std::string(kValue));
}

TEST_F(GuardTest, WithoutAPlaceholderNothingIsPutIn) {
  auto head = request("GET", "git.example.com", "/acme/widget/info/refs");
  ASSERT_EQ(admit(head), "");
  EXPECT_EQ(vault.asked, 0);
  EXPECT_EQ(find_header(head.headers, "Authorization"), nullptr);
  EXPECT_EQ(exchange->route().credential, "");
  head = request("GET", "git.example.com", "/", {{"Authorization", basic("me:mine")}});
  ASSERT_EQ(admit(head), "");
  EXPECT_EQ(head.headers[0].value, basic("me:mine"));
}

TEST_F(GuardTest, inv09_OnlyOnRequestsThatTheRuleAllows) {
  const http::Headers bearer{{"Authorization", "Bearer " + placeholder("model")}};
  for (auto& head : {request("DELETE", "api.example.com", "/v1/models", bearer),  // another method
                     request("GET", "api.example.com", "/v2/models", bearer),     // path
                     request("GET", "api.example.com", "/v1/../v2", bearer),      // spelling
                     request("GET", "key.example.com", "/", bearer),              // credential's host
                     request("GET", "x.other.example.org", "/", bearer),          // host, after a redirect
                     request("GET", "nowhere.example", "/", bearer)}) {
    EXPECT_EQ(admit(RequestHead(head)), codes::kCredentialElsewhere) << head.authority.host << head.target;
    EXPECT_TRUE(denial->alarm);
    EXPECT_EQ(denial->credential, "model");
  }
  RequestHead plain{.method = "GET",
                    .scheme = "http",
                    .authority = {"api.example.com", 80},
                    .target = "/v1/models",
                    .headers = bearer};
  EXPECT_EQ(admit(plain), codes::kPlainText);
  EXPECT_TRUE(denial->alarm);
  EXPECT_EQ(vault.asked, 0);
}

TEST_F(GuardTest, inv08_InAnyOtherPlaceItIsAnAlarm) {
  const std::string text = placeholder("model");
  std::string percent, some, twice, escaped;
  for (size_t at = 0; at < text.size(); ++at) {
    char hex[8];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned>(text[at]));
    percent += std::string("%") + hex;
    some += at % 3 == 1 ? std::string("%") + hex : std::string(1, text[at]);
    twice += std::string("%25") + hex;
    escaped += std::string("\\u00") + hex;
  }
  const auto b64 = [](const std::string& t) { return codec::encode_base64(t); };
  for (const auto& form : {text, percent, some, twice, escaped, b64(text), b64("a" + text),
                           b64("ab" + text + "z"), b64("user:" + text), "x" + text + "y"}) {
    for (auto& head : {
             request("GET", "x.other.example.org", "/" + form),
             request("GET", "x.other.example.org", "/?q=" + form),
             request("GET", "x.other.example.org", "/", {{"User-Agent", form}}),
             request("GET", "api.example.com", "/v1/x", {{"User-Agent", form}}),
             request("GET", "api.example.com", "/v1/x", {{"Referer", "https://a/?" + form}}),
             request("GET", "api.example.com", "/v1/x", {{"X-Request-Id", form}}),
             request("GET", "api.example.com", "/v1/x", {{"Cookie", "a=" + form}}),
             request("GET", "api.example.com", "/v1/x", {{"Authorization", "Digest " + form}}),
             request("GET", "api.example.com", "/v1/x",
                     {{"Authorization", "Bearer " + text}, {"X-Copy", form}}),  // in its place and elsewhere
             request("GET", "api.example.com", "/v1/x",
                     {{"Authorization", "Bearer " + text}, {"Authorization", "Bearer " + form}}),
             request("GET", "api.example.com", "/v1/x?key=" + form, {{"Authorization", "Bearer " + text}}),
         }) {
      EXPECT_EQ(admit(RequestHead(head)), codes::kCredentialElsewhere) << form;
      EXPECT_TRUE(denial && denial->alarm && denial->credential == "model") << form;
    }
  }
  EXPECT_EQ(vault.asked, 0);
  // Cut into two headers.
  EXPECT_EQ(
      admit(request("GET", "x.other.example.org", "/", {{"A", text.substr(0, 20)}, {text.substr(20), "x"}})),
      codes::kCredentialElsewhere);
}

TEST_F(GuardTest, inv08_InANameItIsAnAlarm) {
  std::string lower = placeholder("model");
  for (char& c : lower) c = static_cast<char>(std::tolower(c));
  for (const auto& name :
       {lower + ".other.example.org", lower.substr(0, 9) + "." + lower.substr(9) + ".evil.example"}) {
    const auto denied = guard->name(name);
    ASSERT_TRUE(denied) << name;
    EXPECT_EQ(denied->code, codes::kCredentialElsewhere);
    EXPECT_TRUE(denied->alarm);
    EXPECT_EQ(guard->connection({name, 443}).denial.code, codes::kCredentialElsewhere);
    const auto in_tls = guard->alarm_in_server_name(name);
    ASSERT_TRUE(in_tls) << name;
    EXPECT_TRUE(in_tls->alarm);
    EXPECT_EQ(in_tls->credential, "model");
    EXPECT_TRUE(guard->alarm_in({.method = "CONNECT", .authority = {name, 443}})) << name;
  }
  const std::string text = placeholder("model");
  for (const http::Header& header : {http::Header{"X-Key", text}, http::Header{text, "x"}})
    EXPECT_TRUE(guard->alarm_in({.authority = {"evil.example", 443}, .headers = {header}})) << header.name;
  EXPECT_FALSE(guard->alarm_in({.authority = {"evil.example", 443}, .headers = {{"X-Key", "x"}}}));
  EXPECT_FALSE(guard->alarm_in_server_name("x.other.example.org"));
  EXPECT_FALSE(guard->name("x.other.example.org"));
  EXPECT_EQ(guard->name("evil.example")->code, codes::kNoRule);
}

TEST_F(GuardTest, inv08_InABodyItIsStopped) {
  const std::string text = placeholder("model");
  const auto post = [&](const std::string& encoding = "") {
    auto head = request("POST", "x.other.example.org", "/");
    head.body = {Body::Kind::kUnknown, 0};
    if (!encoding.empty()) head.headers.push_back({"Content-Encoding", encoding});
    EXPECT_EQ(admit(head), "");
    return exchange->request_body();
  };
  EXPECT_EQ(through(post(), {"{\"a\": \"", text, "\"}"}), "denied credential.elsewhere");
  EXPECT_EQ(through(post(), {"x" + text.substr(0, 11), text.substr(11)}), "denied credential.elsewhere");
  EXPECT_EQ(through(post(), {codec::encode_base64("{\"key\":\"" + text + "\"}")}),
            "denied credential.elsewhere");
  // Nothing of its random part but a few characters left before.
  std::string out;
  auto* filter = post();
  for (const char c : "begin " + text.substr(0, text.size() - 1)) EXPECT_FALSE(filter->feed({&c, 1}, out));
  EXPECT_LE(out.size(), 6 + 3 + 4u) << out;
  EXPECT_TRUE(filter->feed(text.substr(text.size() - 1), out));
  EXPECT_LE(out.size(), 6 + 3 + 4u) << out;
  // What only begins like it passes, byte for byte.
  const std::string innocent =
      "x" + text.substr(0, 30) + "-" + text.substr(5) + "%" + std::string(1, '\0') + "\xff";
  EXPECT_EQ(through(post(), {innocent, innocent}), innocent + innocent);
}

// What an agent's tools print is in what it tells its model: a rule may let that pass, unchanged.
TEST_F(GuardTest, inv08_InABodyAPlaceholderPassesOnlyWhereTheRuleSaysSo) {
  const std::string own = placeholder("model"), other = placeholder("forge");
  const auto post = [&](const std::string& host, const std::string& target = "/v1/chat") {
    auto head = request("POST", host, target, {{"Authorization", "Bearer " + own}});
    if (host != "chat.example.com") head.headers.clear();
    head.body = {Body::Kind::kUnknown, 0};
    EXPECT_EQ(admit(head), "") << host << target;
    return exchange->request_body();
  };
  const std::string said = "{\"output\": \"MODEL=" + own + "\\nPATH=/bin\"}";
  EXPECT_EQ(through(post("chat.example.com"), {said.substr(0, 30), said.substr(30)}), said);
  EXPECT_EQ(exchange->in_body(), "model");
  EXPECT_EQ(exchange->route().credential, "model");
  const std::string encoded = codec::encode_base64(said);
  EXPECT_EQ(through(post("chat.example.com"), {encoded, own, own}), encoded + own + own);
  EXPECT_EQ(through(post("chat.example.com"), {"nothing of the kind"}), "nothing of the kind");
  EXPECT_EQ(exchange->in_body(), "");
  // Another's, also behind it; another host of the same credential; a host that has none.
  EXPECT_EQ(through(post("chat.example.com"), {own + " " + other}), "denied credential.elsewhere");
  EXPECT_EQ(through(post("api.example.com"), {said}), "denied credential.elsewhere");
  EXPECT_EQ(through(post("x.other.example.org"), {said}), "denied credential.elsewhere");
  EXPECT_EQ(through(post("open.example.com"), {other + own}), other + own);
  EXPECT_EQ(exchange->in_body(), "forge model");
  // The body only.
  for (const auto& head :
       {request("POST", "chat.example.com", "/v1/x?k=" + own),
        request("POST", "open.example.com", "/", {{"X-Note", own}}),
        request("POST", "chat.example.com", "/v1/x", {{"Authorization", "Bearer " + own}, {"X-Note", own}})})
    EXPECT_EQ(admit(RequestHead(head)), codes::kCredentialElsewhere) << head.target;
  post("chat.example.com");
  http::Headers trailers{{"X-Note", own}};
  EXPECT_TRUE(exchange->request_trailers(trailers));
}

std::string gzip(const std::string& text, int window = 15 + 16) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

TEST_F(GuardTest, inv08_InACompressedBodyItIsStopped) {
  const auto post = [&](const std::string& encoding) {
    auto head = request("POST", "x.other.example.org", "/", {{"Content-Encoding", encoding}});
    head.body = {Body::Kind::kUnknown, 0};
    EXPECT_EQ(admit(head), "");
    return exchange->request_body();
  };
  const std::string secret = "a lot of text " + placeholder("model") + " and more", harmless(5000, 'x');
  EXPECT_EQ(through(post("gzip"), {gzip(secret)}), "denied credential.elsewhere");
  EXPECT_EQ(through(post("x-gzip"), {gzip(secret)}), "denied credential.elsewhere");
  EXPECT_EQ(through(post("deflate"), {gzip(secret, 15)}), "denied credential.elsewhere");
  EXPECT_EQ(through(post("deflate"), {gzip(secret, -15)}), "denied credential.elsewhere");
  EXPECT_EQ(through(post("gzip"), {gzip("first"), gzip(secret)}),
            "denied credential.elsewhere");  // two members
  EXPECT_EQ(through(post("gzip"), {gzip(harmless)}), gzip(harmless));
  // Beside the text: the name of a file (RFC 1952, section 2.3.1).
  std::string named = gzip(harmless);
  named[3] = '\x08';
  named.insert(10, placeholder("model") + std::string(1, '\0'));
  EXPECT_EQ(through(post("gzip"), {named.substr(0, 15), named.substr(15)}), "denied credential.elsewhere");
  EXPECT_EQ(through(post("gzip"), {"no gzip at all"}), "denied egress.bad_request");
  EXPECT_EQ(through(post("gzip"), {gzip(harmless).substr(0, 20)}), "denied egress.bad_request");
}

TEST_F(GuardTest, TheAnswerIsScrubbed) {
  const std::string text = placeholder("model"), value(kValue);
  const auto answer = [&](const std::string& type, const std::string& coding = "") {
    auto head = request("GET", "api.example.com", "/v1/x",
                        {{"Authorization", "Bearer " + text},
                         {"Accept-Encoding", "zstd, br;q=0.5, gzip"},
                         {"Range", "bytes=0-4"}});
    EXPECT_EQ(admit(head), "");
    EXPECT_EQ(find_header(head.headers, "Accept-Encoding")->value, "gzip, br");
    EXPECT_EQ(find_header(head.headers, "Range"), nullptr);
    ResponseHead response{.status = 401,
                          .headers = {{"WWW-Authenticate", "Bearer token=\"" + value + "\""},
                                      {"Location", "/?k=s3cret%2Fvalue%2bwith%3Dchars%26more"},
                                      {"Content-Type", type}},
                          .body = {Body::Kind::kLength, 1000}};
    if (!coding.empty()) response.headers.push_back({"Content-Encoding", coding});
    EXPECT_FALSE(exchange->answer(response));
    EXPECT_EQ(response.headers[0].value, "Bearer token=\"" + text + "\"");
    EXPECT_EQ(response.headers[1].value, "/?k=" + text);
    EXPECT_EQ(find_header(response.headers, "Content-Encoding"), nullptr);
    last = response;
    return exchange->response_body();
  };
  EXPECT_EQ(through(answer("application/json"), {"{\"k\":\"" + value + "\"}"}), "{\"k\":\"" + text + "\"}");
  EXPECT_EQ(last.body.kind, Body::Kind::kUnknown);
  EXPECT_EQ(through(answer("text/plain"), {value.substr(0, 3), value.substr(3) + value}), text + text);
  EXPECT_EQ(through(answer("application/json"), {"\"s3cret\\/value\\u002bwith=chars\\u0026more\""}),
            "\"" + text + "\"");
  EXPECT_EQ(through(answer("text/html"), {"<p>s3cret/value+with=chars&amp;more</p>"}), "<p>" + text + "</p>");
  const auto b64 = [](const std::string& t) { return codec::encode_base64(t); };
  EXPECT_EQ(through(answer("text/plain"), {b64("u:" + value)}).find(b64(value).substr(4, 20)),
            std::string::npos);
  EXPECT_EQ(through(answer("text/plain"), {b64(value)}),
            b64(text).substr(0, b64(text).find('=')) +
                b64(value).substr(b64(value).find('=') == std::string::npos ? b64(value).size()
                                                                            : b64(value).find('=')));
  EXPECT_EQ(through(answer("text/plain", "gzip"), {gzip("a " + value + " b")}), "a " + text + " b");
  // Where the length must stay, it does.
  const std::string binary = through(answer("application/octet-stream"), {"a" + value + "b"});
  EXPECT_EQ(binary.size(), value.size() + 2);
  EXPECT_EQ(binary.find("value"), std::string::npos);
  EXPECT_EQ(last.body.kind, Body::Kind::kLength);
  EXPECT_EQ(through(answer("text/plain", "gzip"), {"no gzip"}), "denied egress.bad_request");
}

TEST_F(GuardTest, ALiveStreamDoesNotStall) {
  auto head =
      request("GET", "api.example.com", "/v1/x", {{"Authorization", "Bearer " + placeholder("model")}});
  ASSERT_EQ(admit(head), "");
  ResponseHead response{
      .status = 200, .headers = {{"Content-Type", "text/event-stream"}}, .body = {Body::Kind::kUnknown, 0}};
  ASSERT_FALSE(exchange->answer(response));
  std::string out;
  ASSERT_FALSE(exchange->response_body()->feed("data: s3c", out));  // as the value begins
  EXPECT_EQ(out, "data: s3c");
  ASSERT_FALSE(exchange->response_body()->feed("\n\n", out));
  EXPECT_EQ(out, "data: s3c\n\n");
}

TEST_F(GuardTest, AnswersOfHostsWithoutCredentialsPassUntouched) {
  ASSERT_EQ(admit(request("GET", "x.other.example.org", "/")), "");
  ResponseHead response{
      .status = 200, .headers = {{"Content-Encoding", "zstd"}}, .body = {Body::Kind::kLength, 9}};
  EXPECT_FALSE(exchange->answer(response));
  EXPECT_EQ(exchange->response_body(), nullptr);
  EXPECT_EQ(response.headers.size(), 1u);
}

TEST_F(GuardTest, inv08_TemporaryKeysOfAwsHaveThreePlaceholders) {
  auto loaded = manifest::load_text("t.yaml", R"(
firestop: 1
name: t
egress: [{host: s3.example.com, methods: [GET], paths: ["/**"], credential: cloud}]
credentials: {cloud: {env: SECRET, inject: sigv4, key_id: ID, session_token: TOKEN}}
)");
  ASSERT_TRUE(loaded.faults.empty()) << render(loaded.faults, loaded.text);
  placeholders = credentials::make_placeholders(loaded.manifest.credentials);
  ASSERT_EQ(placeholders.size(), 3u);
  guard = make_guard({.rules = loaded.manifest.egress,
                      .credentials = loaded.manifest.credentials,
                      .placeholders = placeholders,
                      .vault = &vault,
                      .connect_to = {}});
  vault.value = "ASIAREALREALREALREAL:real-secret-real-secret:real-session-token";
  std::map<std::string, std::string> held;
  for (const auto& one : placeholders) held[one.variable] = one.text;
  EXPECT_TRUE(held["ID"].starts_with("ASIA"));

  const credentials::AwsKey theirs(held["ID"], held["SECRET"], held["TOKEN"]);
  const auto signed_by_them = [&](http::Headers more) {
    auto head = request("GET", "s3.example.com", "/bucket/key", std::move(more));
    for (const auto& [name, value] : std::initializer_list<http::Header>{
             {"X-Amz-Date", "20261129T120000Z"},
             {"X-Amz-Content-Sha256", std::string(credentials::sigv4_body_hash(""))},
             {"X-Amz-Security-Token", theirs.token},
             {"Authorization",
              "AWS4-HMAC-SHA256 Credential=" + theirs.id +
                  "/20261129/eu-north-1/s3/aws4_request, "
                  "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=" +
                  std::string(64, 'a')}})
      head.headers.push_back({name, value});
    credentials::SigV4::find(head, theirs.id)->sign(head, theirs);
    return head;
  };
  auto head = signed_by_them({});
  ASSERT_EQ(admit(head), "") << denial->message;
  EXPECT_EQ(find_header(head.headers, "X-Amz-Security-Token")->value, "real-session-token");
  EXPECT_EQ(find_header(head.headers, "Authorization")->value.find(held["ID"]), std::string::npos);
  const auto real = credentials::parse_aws_key(vault.value).value();
  EXPECT_TRUE(credentials::SigV4::find(head, real.id)->verify(head, real));
  // The token in another place is an alarm; what comes back of the real one becomes the placeholder.
  EXPECT_EQ(admit(signed_by_them({{"X-Note", theirs.token}})), codes::kCredentialElsewhere);
  EXPECT_EQ(admit(request("GET", "s3.example.com", "/", {{"X-Amz-Security-Token", theirs.token}})),
            codes::kCredentialElsewhere);
  head = signed_by_them({});
  ASSERT_EQ(admit(head), "");
  ResponseHead answer{.status = 200, .headers = {{"X-Echo", "real-session-token"}}};
  EXPECT_FALSE(exchange->answer(answer));
  EXPECT_EQ(answer.headers[0].value, theirs.token);
}

TEST_F(GuardTest, WithoutTheValueNothingGoesOut) {
  vault.fails = true;
  auto head =
      request("GET", "api.example.com", "/v1/x", {{"Authorization", "Bearer " + placeholder("model")}});
  EXPECT_EQ(admit(head), codes::kCredentialUnavailable);
  EXPECT_EQ(denial->status, 502);
  EXPECT_EQ(head.headers[0].value, "Bearer " + placeholder("model"));
}

TEST_F(GuardTest, TheValueMayComeLaterOrNever) {
  vault.later = true;
  auto head =
      request("GET", "api.example.com", "/v1/x", {{"Authorization", "Bearer " + placeholder("model")}});
  EXPECT_EQ(admit(head), "");
  EXPECT_FALSE(done);
  vault.waiting[0]();
  EXPECT_TRUE(done);
  EXPECT_EQ(head.headers[0].value, "Bearer " + std::string(kValue));
  admit(head = request("GET", "api.example.com", "/v1/x",
                       {{"Authorization", "Bearer " + placeholder("model")}}));
  exchange.reset();  // the guest went away
  vault.waiting[1]();
  EXPECT_FALSE(done);
}

TEST_F(GuardTest, OneNameForOneRequest) {
  const auto code = [&](const Origin& origin, RequestHead head) {
    std::string out = "none";
    exchange = guard->exchange(origin);
    exchange->admit(head, [&](std::optional<Denial> result) { out = result ? result->code : ""; });
    return out;
  };
  const Authority api{"api.example.com", 443}, other{"x.other.example.org", 443};
  const auto to_api = request("GET", api.host, "/");
  EXPECT_EQ(code({.asked = api, .server_name = api.host, .tls = true}, to_api), "");
  EXPECT_EQ(code({.asked = api, .server_name = "API.example.com.", .tls = true}, to_api), "");
  EXPECT_EQ(code({.asked = api, .server_name = "", .tls = true}, to_api), "");
  EXPECT_EQ(code({.asked = api, .server_name = other.host, .tls = true}, to_api), codes::kHostMismatch);
  EXPECT_EQ(code({.asked = other, .server_name = other.host, .tls = true}, to_api), codes::kHostMismatch);
  EXPECT_EQ(code({.asked = {api.host, 80}, .server_name = api.host, .tls = true}, to_api),
            codes::kHostMismatch);
  EXPECT_EQ(code({.asked = api, .tls = false}, to_api), codes::kHostMismatch);
}

TEST(GuardConfig, IsReadBackAsItself) {
  auto loaded = manifest::load_file(FIRESTOP_SOURCE_DIR "/tests/manifest/good/every-field.yaml").value();
  ASSERT_TRUE(loaded.faults.empty());
  const GuardParts parts{.rules = loaded.manifest.egress,
                         .credentials = loaded.manifest.credentials,
                         .placeholders = credentials::make_placeholders(loaded.manifest.credentials),
                         .connect_to = {{{"api.example.com", 443}, "127.0.0.1:9"}}};
  const auto json = to_json(parts);
  const auto again = guard_parts_from_json(json);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(to_json(*again), json);
  EXPECT_EQ(again->rules.size(), parts.rules.size());
  EXPECT_TRUE(again->rules[7].git->deletes);
  EXPECT_FALSE(guard_parts_from_json(codec::JsonObject{}).has_value());
  for (const char* key : {"rules", "credentials", "placeholders", "connect_to"}) {
    auto less = json;
    less.as_object()->erase(key);
    EXPECT_FALSE(guard_parts_from_json(less).has_value()) << key;
  }
}

}  // namespace
}  // namespace firestop::egress
