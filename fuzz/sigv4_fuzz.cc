// Any bytes as the Authorization of a request, as its query, as a signed body in chunks, and as the JSON of a
// key: nothing verifies that was not signed, and what is signed verifies.
#include <cstddef>
#include <cstdint>

#include "check.h"
#include "credentials/oauth.h"
#include "credentials/sigv4.h"
#include "credentials/sigv4_body.h"

using namespace firestop;
using namespace firestop::credentials;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string id = "AKIAIOSFODNN7EXAMPLE";
  const AwsKey key(id, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
      other("AKIAOTHEROTHEROTHER0", "another-secret");
  http::RequestHead head{
      .method = "GET",
      .scheme = "https",
      .authority = {"a.s3.amazonaws.com", 443},
      .target = "/a",
      .headers = {{"x-amz-date", "20130524T000000Z"}, {"x-amz-content-sha256", "UNSIGNED-PAYLOAD"}}};
  const auto check = [&](http::RequestHead one) {
    auto sigv4 = SigV4::find(one, id);
    if (!sigv4) return;
    (void)sigv4->without_key(one, key);
    FUZZ_CHECK(!sigv4->verify(one, key, "x"));  // who could have made it?
    sigv4->sign(one, other, "x");
    auto signed_one = SigV4::find(one, other.id);
    FUZZ_CHECK(!signed_one || signed_one->verify(one, other, "x"));
  };
  http::RequestHead in_header = head;
  in_header.headers.push_back({"Authorization", text});
  check(in_header);
  http::RequestHead in_query = head;
  in_query.target += "?" + text;
  check(in_query);

  head.headers[1].value = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
  head.headers.push_back(
      {"Authorization", "AWS4-HMAC-SHA256 Credential=" + id +
                            "/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;"
                            "x-amz-date, Signature=" +
                            std::string(64, 'a')});
  const auto sigv4 = SigV4::find(head, id);
  FUZZ_CHECK(sigv4.has_value());
  const auto filter =
      sigv4_chunks(*sigv4, key, *sigv4, other, [](const std::string&) { return http::Denial{}; });
  std::string out;
  for (size_t at = 0; at < text.size(); at += 7)
    if (filter->feed(std::string_view(text).substr(at, 7), out)) break;
  FUZZ_CHECK(out.empty());

  (void)parse_aws_key(text);
  if (const auto token = read_token_answer(200, text)) FUZZ_CHECK(token->secret.size() >= kLeastSecret);
  return 0;
}
