// The examples of AWS's own manual ("Authenticating Requests (AWS Signature Version 4)", Amazon S3 API
// Reference) as vectors, and the round trip: signed with a placeholder, checked, signed again.
#include "credentials/sigv4.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "codec/json.h"
#include "credentials/sigv4_body.h"

namespace firestop::credentials {
namespace {

using http::RequestHead;

const AwsKey kExample("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
const AwsKey kPlaceholder("AKIAABCDEFGHIJKLMNOP", "placeholder0placeholder1placeholder2plac");
const std::string kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string authorization(const std::string& id, const std::string& headers, const std::string& signature) {
  return "AWS4-HMAC-SHA256 Credential=" + id +
         "/20130524/us-east-1/s3/aws4_request,SignedHeaders=" + headers + ",Signature=" + signature;
}

RequestHead example(const std::string& method, const std::string& target, http::Headers headers) {
  headers.push_back({"x-amz-date", "20130524T000000Z"});
  return {.method = method,
          .scheme = "https",
          .authority = {"examplebucket.s3.amazonaws.com", 443},
          .target = target,
          .headers = std::move(headers)};
}

std::string header(const RequestHead& head, const char* name) {
  const auto* found = http::find_header(head.headers, name);
  return found ? found->value : "";
}

struct Vector {
  RequestHead head;
  const char* signed_headers;
  const char* signature;
};

std::vector<Vector> vectors() {
  return {
      {example("GET", "/test.txt", {{"Range", "bytes=0-9"}, {"x-amz-content-sha256", kEmpty}}),
       "host;range;x-amz-content-sha256;x-amz-date",
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {example("PUT", "/test%24file.text",
               {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                {"x-amz-content-sha256", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"},
                {"x-amz-storage-class", "REDUCED_REDUNDANCY"}}),
       "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
      {example("GET", "/?lifecycle", {{"x-amz-content-sha256", kEmpty}}),
       "host;x-amz-content-sha256;x-amz-date",
       "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {example("GET", "/?max-keys=2&prefix=J", {{"x-amz-content-sha256", kEmpty}}),
       "host;x-amz-content-sha256;x-amz-date",
       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
  };
}

TEST(SigV4, PublishedVectorsAreRightAndAreMadeAgain) {
  for (auto& [head, names, signature] : vectors()) {
    head.headers.push_back({"Authorization", authorization(kExample.id, names, signature)});
    auto sigv4 = SigV4::find(head, kExample.id);
    ASSERT_TRUE(sigv4) << head.target;
    EXPECT_EQ(sigv4->payload(), SigV4::Payload::kHash);
    EXPECT_TRUE(sigv4->verify(head, kExample)) << head.target;
    EXPECT_FALSE(SigV4::find(head, kPlaceholder.id));

    // Away from the example's key and back to it.
    sigv4->sign(head, kPlaceholder);
    EXPECT_NE(header(head, "Authorization").find("Credential=" + kPlaceholder.id + "/"), std::string::npos);
    auto theirs = SigV4::find(head, kPlaceholder.id);
    ASSERT_TRUE(theirs);
    EXPECT_FALSE(theirs->verify(head, kExample));
    ASSERT_TRUE(theirs->verify(head, kPlaceholder));
    theirs->sign(head, kExample);
    EXPECT_TRUE(header(head, "Authorization").ends_with(std::string("Signature=") + signature))
        << head.target;
  }
}

TEST(SigV4, AnyChangeIsSeen) {
  auto [head, names, signature] = vectors()[0];
  head.headers.push_back({"Authorization", authorization(kExample.id, names, signature)});
  const auto right = [](const RequestHead& changed) {
    auto sigv4 = SigV4::find(changed, kExample.id);
    return sigv4 && sigv4->verify(changed, kExample);
  };
  ASSERT_TRUE(right(head));
  const std::function<void(RequestHead&)> changes[] = {
      [](RequestHead& h) { h.method = "HEAD"; },
      [](RequestHead& h) { h.target = "/test.txt2"; },
      [](RequestHead& h) { h.target += "?x"; },
      [](RequestHead& h) { h.authority.host = "other.s3.amazonaws.com"; },
      [](RequestHead& h) { h.headers[0].value = "bytes=0-99"; },
      [](RequestHead& h) { h.headers.erase(h.headers.begin()); },
      [](RequestHead& h) { h.headers[2].value = "20130524T000001Z"; },
      [](RequestHead& h) { h.headers.push_back({"Range", "bytes=1-2"}); },
      [](RequestHead& h) { h.headers.push_back({"Authorization", "x"}); },
  };
  size_t row = 0;
  for (const auto& change : changes) {
    RequestHead changed = head;
    change(changed);
    EXPECT_FALSE(right(changed)) << row++;
  }
}

TEST(SigV4, PresignedUrls) {
  RequestHead head{
      .method = "GET",
      .scheme = "https",
      .authority = {"examplebucket.s3.amazonaws.com", 443},
      .target =
          "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524"
          "%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-"
          "SignedHeaders=host&X-Amz-Signature="
          "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"};
  auto sigv4 = SigV4::find(head, kExample.id);
  ASSERT_TRUE(sigv4);
  EXPECT_TRUE(sigv4->verify(head, kExample));
  EXPECT_EQ(sigv4->without_key(head, kExample).target.find("EXAMPLE"), std::string::npos);
  const std::string before = head.target;
  sigv4->sign(head, kPlaceholder);
  auto theirs = SigV4::find(head, kPlaceholder.id);
  ASSERT_TRUE(theirs && theirs->verify(head, kPlaceholder));
  theirs->sign(head, AwsKey(kExample.id, kExample.secret, "tok/en"));
  EXPECT_NE(head.target.find("X-Amz-Security-Token=tok%2Fen"), std::string::npos);
  auto ours = SigV4::find(head, kExample.id);
  ASSERT_TRUE(ours && ours->verify(head, kExample));
  ours->sign(head, kExample);
  EXPECT_EQ(head.target, before);
}

TEST(SigV4, HeadersThatChangedOnTheWayAreSignedAnew) {
  auto [head, names, signature] = vectors()[0];
  head.headers.push_back({"Authorization", authorization(kExample.id, names, signature)});
  auto sigv4 = SigV4::find(head, kExample.id);
  ASSERT_TRUE(sigv4 && sigv4->verify(head, kExample));
  http::remove_headers(head.headers, "Range");
  sigv4->sign(head, AwsKey("AKIAREALREALREALREAL", "real-secret-real-secret", "session-token"));
  EXPECT_NE(header(head, "Authorization")
                .find("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"),
            std::string::npos)
      << header(head, "Authorization");
  EXPECT_EQ(header(head, "X-Amz-Security-Token"), "session-token");
  auto ours = SigV4::find(head, "AKIAREALREALREALREAL");
  EXPECT_TRUE(ours && ours->verify(head, AwsKey("AKIAREALREALREALREAL", "real-secret-real-secret")));
}

// Of temporary keys: the sandbox sends and signs a token of its own, and the origin gets the real one, or
// none.
TEST(SigV4, TokensOfTemporaryKeysAreReplaced) {
  const AwsKey theirs("ASIAPLACEHOLDERPLACE", "placeholder-secret-placeholder", "placeholder-token");
  const std::string names = "host;x-amz-content-sha256;x-amz-date;x-amz-security-token";
  RequestHead asked =
      example("GET", "/", {{"x-amz-content-sha256", kEmpty}, {"X-Amz-Security-Token", theirs.token}});
  asked.headers.push_back({"Authorization", authorization(theirs.id, names, std::string(64, 'a'))});
  SigV4::find(asked, theirs.id)->sign(asked, theirs);
  for (const auto& real : {AwsKey("ASIAREALREALREALREAL", "real-secret-real-secret", "real-token"),
                           AwsKey("AKIAREALREALREALREAL", "real-secret-real-secret")}) {
    RequestHead head = asked;
    auto sigv4 = SigV4::find(head, theirs.id);
    ASSERT_TRUE(sigv4 && sigv4->verify(head, theirs));
    EXPECT_EQ(http::find_header(sigv4->without_key(head, theirs).headers, "X-Amz-Security-Token"), nullptr);
    EXPECT_NE(http::find_header(sigv4->without_key(head, real).headers, "X-Amz-Security-Token"), nullptr)
        << "another's";
    sigv4->sign(head, real);
    EXPECT_EQ(header(head, "X-Amz-Security-Token"), real.token);
    auto ours = SigV4::find(head, real.id);
    EXPECT_TRUE(ours && ours->verify(head, real));
  }
}

TEST(SigV4, WhatIsNoSignatureIsNone) {
  const auto find = [](const std::string& text) {
    auto head = example("GET", "/", {{"x-amz-content-sha256", kEmpty}});
    head.headers.push_back({"Authorization", text});
    return SigV4::find(head, kExample.id).has_value();
  };
  const std::string names = "host;x-amz-content-sha256;x-amz-date", good(64, 'a');
  EXPECT_TRUE(find(authorization(kExample.id, names, good)));
  for (const auto& text :
       {std::string(""), std::string("AWS4-HMAC-SHA256"), std::string("AWS4-HMAC-SHA256 "),
        "Bearer " + kExample.id, authorization(kExample.id + "X", names, good),
        authorization(kExample.id, names, "abc"), authorization(kExample.id, names, good + "a"),
        authorization(kExample.id, names, std::string(64, 'G')),
        authorization(kExample.id, "x-amz-date;host", good), authorization(kExample.id, "x-amz-date", good),
        authorization(kExample.id, names, good) + ",Signature=" + good,
        authorization(kExample.id, names, good) + ",Other=1",
        "AWS4-ECDSA-P256-SHA256 " + authorization(kExample.id, names, good).substr(17)})
    EXPECT_FALSE(find(text)) << text;
  EXPECT_TRUE(parse_aws_key("AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG").has_value());
  const auto json = parse_aws_key(
      R"({"Version":1,"AccessKeyId":"AKIAIOSFODNN7EXAMPLE","SecretAccessKey":"s3cret/s3cret","SessionToken":"t0ken"})");
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ(json->token, "t0ken");
  for (const char* value :
       {"", "AKIAIOSFODNN7EXAMPLE", "short:wJalrXUtnFEMI", "AKIAIOSFODNN7EXAMPLE:short", "{}", "{x"})
    EXPECT_FALSE(parse_aws_key(value).has_value()) << value;
}

// The manual's example of an upload in chunks: 65 KiB of 'a', in 64 KiB and 1 KiB.
struct Streaming {
  RequestHead head = example("PUT", "/examplebucket/chunkObject.txt",
                             {{"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                              {"x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"},
                              {"Content-Encoding", "aws-chunked"},
                              {"x-amz-decoded-content-length", "66560"}});
  std::string body;
  Streaming() {
    head.authority.host = "s3.amazonaws.com";
    head.body = {http::Body::Kind::kLength, 66824};
    head.headers.push_back(
        {"Authorization", authorization(kExample.id,
                                        "content-encoding;content-length;host;x-amz-content-sha256;x-amz-"
                                        "date;x-amz-decoded-content-length"
                                        ";x-amz-storage-class",
                                        "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9")});
    const auto chunk = [&](const char* size, size_t count, const char* signature) {
      body += std::string(size) + ";chunk-signature=" + signature + "\r\n" + std::string(count, 'a') + "\r\n";
    };
    chunk("10000", 65536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648");
    chunk("400", 1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497");
    chunk("0", 0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9");
  }
};

http::Denial bad(const std::string& why) {
  http::Denial out;
  out.message = why;
  return out;
}

std::string through(http::Filter& filter, std::string_view body, size_t piece) {
  std::string out;
  for (size_t at = 0; at < body.size(); at += piece)
    if (const auto denial = filter.feed(body.substr(at, piece), out)) return "denied: " + denial->message;
  if (const auto denial = filter.finish(out)) return "denied: " + denial->message;
  return out;
}

TEST(SigV4, AStreamIsCheckedAndSignedPieceByPiece) {
  const Streaming example;
  auto head = example.head;
  auto sigv4 = SigV4::find(head, kExample.id);
  ASSERT_TRUE(sigv4);
  EXPECT_EQ(sigv4->payload(), SigV4::Payload::kChunks);
  ASSERT_TRUE(sigv4->verify(head, kExample));
  EXPECT_EQ(example.body.size(), 66824u);
  const SigV4 first = *sigv4;
  sigv4->sign(head, kPlaceholder);
  for (const size_t piece : {1u, 17u, 4096u, 100000u}) {
    const std::string other =
        through(*sigv4_chunks(first, kExample, *sigv4, kPlaceholder, bad), example.body, piece);
    ASSERT_EQ(other.size(), example.body.size()) << other.substr(0, 200);
    ASSERT_NE(other, example.body);
    EXPECT_EQ(through(*sigv4_chunks(*sigv4, kPlaceholder, first, kExample, bad), other, piece), example.body);
  }
  // A byte changed, a chunk left out, cut short, something added, the wrong key.
  const auto check = [&](const std::string& body, const AwsKey& key) {
    return through(*sigv4_chunks(first, key, *sigv4, kPlaceholder, bad), body, 1000).starts_with("denied");
  };
  std::string changed = example.body;
  changed[1000] = 'b';
  EXPECT_TRUE(check(changed, kExample));
  EXPECT_TRUE(check(example.body.substr(example.body.find("400;")), kExample));
  EXPECT_TRUE(check(example.body.substr(0, example.body.size() - 2), kExample));
  EXPECT_TRUE(check(example.body + "x", kExample));
  EXPECT_TRUE(check(example.body, kPlaceholder));
  EXPECT_TRUE(check("ffffffff;chunk-signature=" + std::string(64, 'a') + "\r\n", kExample));
  EXPECT_TRUE(check("10000\r\n", kExample));
  EXPECT_TRUE(check(std::string(5000, 'x'), kExample));
}

TEST(SigV4, TrailersAreSignedToo) {
  auto head = Streaming().head;
  for (auto& one : head.headers)
    if (one.name == "x-amz-content-sha256") one.value = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
  auto sigv4 = SigV4::find(head, kExample.id);
  ASSERT_TRUE(sigv4);
  EXPECT_EQ(sigv4->payload(), SigV4::Payload::kChunksAndTrailer);
  const auto body = [&](const SigV4& by, const AwsKey& key) {
    const std::string first = by.sign_chunk(key, by.signature(), "data"),
                      last = by.sign_chunk(key, first, "");
    const std::string trailer = "x-amz-checksum-crc32c:sOO8/Q==";
    return "4;chunk-signature=" + first + "\r\ndata\r\n0;chunk-signature=" + last + "\r\n" + trailer +
           "\r\nx-amz-trailer-signature:" + by.sign_trailer(key, last, trailer + "\n") + "\r\n\r\n";
  };
  const SigV4 theirs = *sigv4;
  sigv4->sign(head, kPlaceholder);
  const std::string good = body(theirs, kExample);
  EXPECT_EQ(through(*sigv4_chunks(theirs, kExample, *sigv4, kPlaceholder, bad), good, 7),
            body(*sigv4, kPlaceholder));
  std::string changed = good;
  changed.replace(changed.find("sOO8"), 4, "sOO9");
  EXPECT_TRUE(
      through(*sigv4_chunks(theirs, kExample, *sigv4, kPlaceholder, bad), changed, 7).starts_with("denied"));
  std::string unsigned_trailer = good.substr(0, good.find("x-amz-trailer-signature")) + "\r\n";
  EXPECT_TRUE(through(*sigv4_chunks(theirs, kExample, *sigv4, kPlaceholder, bad), unsigned_trailer, 7)
                  .starts_with("denied"));
}

// What other implementations signed is right here, and signed again with their other key it is what they made
// of that (tests/vectors/make_sigv4.mjs).
TEST(SigV4, AgreesWithOtherImplementations) {
  const auto json =
      codec::parse_json(read_file(FIRESTOP_SOURCE_DIR "/tests/vectors/sigv4.json").value()).value();
  std::vector<AwsKey> keys;
  for (const auto& key : *json.find("keys")->as_array())
    keys.emplace_back(key.string_or("id", ""), key.string_or("secret", ""));
  size_t count = 0;
  for (const auto& one : *json.find("cases")->as_array()) {
    const std::string body = one.string_or("body", ""), hash = sigv4_body_hash(body);
    RequestHead heads[2];
    for (size_t at = 0; at < 2; ++at) {
      heads[at] = {.method = one.string_or("method", ""),
                   .scheme = "https",
                   .authority = {one.string_or("host", ""), 443},
                   .target = one.string_or("target", "")};
      if (!body.empty()) heads[at].body = {http::Body::Kind::kLength, body.size()};
      if (const auto* targets = one.find("targets"))
        heads[at].target = *(*targets->as_array())[at].as_string();
      if (const auto* signed_by = one.find("signed"))
        for (const auto& [name, value] : *(*signed_by->as_array())[at].as_object())
          if (!http::same_name(name, "host") && !http::same_name(name, "content-length"))
            heads[at].headers.push_back({name, *value.as_string()});
    }
    const std::string what = one.string_or("by", "") + " " + heads[0].method + " " + heads[0].target;
    auto sigv4 = SigV4::find(heads[1], keys[1].id);
    ASSERT_TRUE(sigv4) << what;
    ASSERT_TRUE(sigv4->verify(heads[1], keys[1], hash)) << what;
    EXPECT_FALSE(SigV4(*sigv4).verify(heads[1], keys[0], hash)) << what;
    sigv4->sign(heads[1], keys[0], hash);
    const auto theirs = SigV4::find(heads[0], keys[0].id);
    ASSERT_TRUE(theirs) << what;
    EXPECT_EQ(sigv4->signature(), theirs->signature()) << what;
    ++count;
  }
  EXPECT_GE(count, 25u);
}

}  // namespace
}  // namespace firestop::credentials
