#include "egress/git_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "codec/pkt_line.h"

namespace firestop::egress {
namespace {

using manifest::EgressRule;
using testing::HasSubstr;
using testing::Not;

const std::string kZero(40, '0'), kOne(40, '1'), kTwo(40, '2');
const std::string kPack = "PACK\0\0\0\2 and whatever follows";

std::string pkt(std::string_view payload) {
  std::string out;
  codec::append_pkt_line(out, payload);
  return out;
}

struct Command {
  std::string old_id, new_id, ref;
};

std::string push(const std::vector<Command>& commands, const std::string& capabilities,
                 const std::vector<std::string>& options = {}) {
  std::string out;
  for (const auto& [old_id, new_id, ref] : commands) {
    const std::string one = old_id + " " + new_id + " " + ref;
    out += pkt(out.empty() ? one + '\0' + capabilities : one);
  }
  out += "0000";
  for (const auto& option : options) out += pkt(option);
  if (capabilities.find("push-options") != std::string::npos) out += "0000";
  return out + kPack;
}

constexpr const char* kUsual = " report-status-v2 side-band-64k quiet object-format=sha1 agent=git/2.39.5";

std::string gzipped(std::string_view bytes) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string in(bytes), out(bytes.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

EgressRule::Git rule(std::vector<std::string> refs = {"refs/heads/agent/**"}) {
  EgressRule::Git git;
  git.repository = "acme/widget";
  git.fetch = true;
  git.push = std::move(refs);
  return git;
}

struct Outcome {
  std::string out;
  std::optional<http::Denial> denial;
  std::string detail;
};

Outcome through(std::unique_ptr<GitBody> body, std::string_view bytes, size_t piece) {
  Outcome outcome;
  EXPECT_TRUE(body->decides());
  while (!bytes.empty() && !outcome.denial) {
    outcome.denial = body->feed(bytes.substr(0, piece), outcome.out);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  if (!outcome.denial) outcome.denial = body->finish(outcome.out);
  outcome.detail = body->detail();
  return outcome;
}

Outcome pushed(const EgressRule::Git& git, std::string_view bytes, size_t piece = SIZE_MAX,
               const std::string& coding = "") {
  return through(make_push_body(git, "egress[1]", coding), bytes, piece);
}

Outcome fetched(std::string_view bytes, size_t piece = SIZE_MAX, const std::string& coding = "") {
  return through(make_fetch_body("egress[1]", coding), bytes, piece);
}

TEST(GitPushBody, WhatIsAllowedGoesOnUnchangedInAnyPieces) {
  const std::string bytes =
      push({{kZero, kOne, "refs/heads/agent/a"}, {kOne, kTwo, "refs/heads/agent/b/c"}}, kUsual);
  for (const size_t piece : {SIZE_MAX, size_t{1}, size_t{3}, size_t{50}}) {
    const auto plain = pushed(rule(), bytes, piece);
    EXPECT_FALSE(plain.denial);
    EXPECT_EQ(plain.out, bytes);
    EXPECT_EQ(
        plain.detail,
        "push: refs/heads/agent/a created to 111111111111, refs/heads/agent/b/c updated to 222222222222");
    const auto packed = pushed(rule(), gzipped(bytes), piece, "gzip");
    EXPECT_FALSE(packed.denial);
    EXPECT_EQ(packed.out, gzipped(bytes));
  }
}

TEST(GitPushBody, inv09_NothingOfARefusedPushGoesOutInAnyPieces) {
  const std::string bytes =
      push({{kZero, kOne, "refs/heads/agent/a"}, {kOne, kTwo, "refs/heads/main"}}, kUsual);
  for (const size_t piece : {SIZE_MAX, size_t{1}, size_t{3}, size_t{50}}) {
    for (const auto& outcome :
         {pushed(rule(), bytes, piece), pushed(rule(), gzipped(bytes), piece, "gzip")}) {
      ASSERT_TRUE(outcome.denial);
      EXPECT_EQ(outcome.out, "");
      EXPECT_EQ(outcome.denial->code, "egress.git_ref");
      EXPECT_EQ(outcome.denial->rule, "egress[1]");
      EXPECT_EQ(outcome.denial->message,
                "the push to acme/widget is refused as a whole: refs/heads/main may not be updated (only "
                "refs/heads/agent/** may be pushed)");
      ASSERT_TRUE(outcome.denial->answer);
      EXPECT_EQ(outcome.denial->answer->status, 200);
    }
  }
}

TEST(GitPushBody, TheAnswerIsAReportThatNamesEachRef) {
  const auto outcome =
      pushed(rule(), push({{kZero, kOne, "refs/heads/agent/a"}, {kOne, kTwo, "refs/heads/main"}}, kUsual));
  ASSERT_TRUE(outcome.denial && outcome.denial->answer);
  codec::PktLineReader reader;
  reader.feed(outcome.denial->answer->body);
  const std::string progress(reader.next()->value().payload), report(reader.next()->value().payload);
  EXPECT_EQ(reader.next()->value().kind, codec::PktLine::Kind::kFlush);
  EXPECT_EQ(reader.rest(), "");
  EXPECT_THAT(progress, HasSubstr("\2Firestop: this push is refused as a whole"));
  EXPECT_EQ(report, '\1' + pkt("unpack ok\n") +
                        pkt("ng refs/heads/agent/a firestop: not pushed, because another ref was refused\n") +
                        pkt("ng refs/heads/main firestop: only refs/heads/agent/** may be pushed\n") +
                        "0000");
}

TEST(GitPushBody, ClientsThatReadLess) {
  const std::vector<Command> main{{kZero, kOne, "refs/heads/main"}};
  const auto report = pushed(rule(), push(main, "report-status"));
  EXPECT_EQ(report.denial->answer->body,
            pkt("unpack ok\n") +
                pkt("ng refs/heads/main firestop: only refs/heads/agent/** may be pushed\n") + "0000");
  const auto band = pushed(rule(), push(main, "side-band-64k"));
  EXPECT_THAT(band.denial->answer->body, HasSubstr("\3Firestop"));
  const auto none = pushed(rule(), push(main, ""));
  EXPECT_FALSE(none.denial->answer);
  EXPECT_EQ(none.denial->status, 403);
}

TEST(GitPushBody, inv09_DeletingIsGrantedByName) {
  const std::string bytes = push({{kOne, kZero, "refs/heads/agent/a"}}, kUsual);
  const auto denied = pushed(rule(), bytes);
  ASSERT_TRUE(denied.denial);
  EXPECT_THAT(denied.denial->message, HasSubstr("refs/heads/agent/a may not be deleted"));
  auto git = rule();
  git.deletes = true;
  EXPECT_EQ(pushed(git, bytes).out, bytes);
  EXPECT_TRUE(pushed(git, push({{kOne, kZero, "refs/heads/main"}}, kUsual)).denial);
}

TEST(GitPushBody, inv09_PushOptionsAreGrantedByName) {
  const std::string usual = std::string(kUsual) + " push-options";
  const std::vector<Command> agent{{kZero, kOne, "refs/heads/agent/a"}};
  const auto merge = push(agent, usual, {"ci.skip", "merge_request.merge_when_pipeline_succeeds"});
  auto git = rule();
  EXPECT_EQ(pushed(git, push(agent, usual)).out, push(agent, usual));  // none given
  EXPECT_THAT(pushed(git, merge).denial->message, HasSubstr("the push option 'ci.skip' is not allowed"));
  git.options = {"ci.skip", "merge_request.title=*"};
  const auto denied = pushed(git, merge);
  ASSERT_TRUE(denied.denial);
  EXPECT_THAT(denied.denial->message,
              HasSubstr("the push option 'merge_request.merge_when_pipeline_succeeds' is not allowed"));
  EXPECT_THAT(denied.denial->answer->body, HasSubstr("ng refs/heads/agent/a firestop: the push option"));
  const auto fine = push(agent, usual, {"ci.skip", "merge_request.title=Tidy up"});
  EXPECT_EQ(pushed(git, fine).out, fine);
}

TEST(GitPushBody, inv09_NamesThatAreNoRefs) {
  for (const char* ref :
       {"refs/heads/agent/../main", "refs/heads/agent/a.lock", "refs/heads/agent/", "refs/heads/agent//a",
        "refs/heads/agent/a..b", "refs/heads/agent/@{1}", "refs/heads/agent/.a", "refs/heads/agent/a^",
        "refs/heads/agent/a:refs/heads/main", "refs/heads/agent/a\\b", "HEAD", "main", ".have",
        "refs/for/main", "refs/heads/agent/a~1", "refs/heads/agent/*"})
    EXPECT_EQ(pushed(rule({"refs/heads/agent/**", "refs/heads/**"}), push({{kZero, kOne, ref}}, kUsual))
                  .denial->code,
              "egress.git_ref")
        << ref;
}

TEST(GitPushBody, inv09_WhatDoesNotEndOrIsNoPush) {
  const std::string good = push({{kZero, kOne, "refs/heads/agent/a"}}, kUsual);
  for (const std::string& bytes :
       {std::string(), std::string("PACK"), good.substr(0, 60), "0000" + good, std::string("0000\n"),
        std::string("0000000"), std::string("operation=push"), std::string("{\"operation\":\"upload\"}")}) {
    const auto outcome = pushed(rule(), bytes);
    ASSERT_TRUE(outcome.denial) << bytes;
    EXPECT_EQ(outcome.denial->code, "egress.bad_request");
    EXPECT_EQ(outcome.denial->status, 400);
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(pushed(rule(), "0000").out, "0000");  // git's question whether it must authenticate
  EXPECT_EQ(pushed(rule(), good, SIZE_MAX, "gzip").denial->code, "egress.bad_request");
  EXPECT_EQ(pushed(rule(), gzipped(good)).denial->code, "egress.bad_request");
  const std::string cut = gzipped(good).substr(0, 30);
  EXPECT_EQ(pushed(rule(), cut, SIZE_MAX, "gzip").denial->code, "egress.bad_request");
}

TEST(GitPushBody, inv09_HeldBytesAreBoundedAlsoBehindACoding) {
  // Empty stored blocks: five bytes of gzip that say nothing, again and again.
  std::string endless("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  const std::string nothing("\0\0\0\xff\xff", 5);
  for (size_t i = 0; i < 700000; ++i) endless += nothing;
  const auto outcome = pushed(rule(), endless, 64u << 10, "gzip");
  ASSERT_TRUE(outcome.denial);
  EXPECT_EQ(outcome.denial->status, 400);
  const auto bomb = pushed(rule(), gzipped(std::string(8u << 20, '0')), SIZE_MAX, "gzip");
  EXPECT_EQ(bomb.denial->status, 400);
}

TEST(GitPushBody, ARefusedPushIsReadToItsEndButNotForEver) {
  auto body = make_push_body(rule(), "egress[1]", "");
  std::string out;
  EXPECT_FALSE(body->feed(push({{kZero, kOne, "refs/heads/main"}}, kUsual), out));
  const std::string more(1u << 20, 'x');
  size_t fed = 0;
  std::optional<http::Denial> denial;
  while (!denial && fed < 100) {
    denial = body->feed(more, out);
    ++fed;
  }
  EXPECT_EQ(fed, 65u);
  EXPECT_EQ(denial->code, "egress.git_ref");
  EXPECT_EQ(out, "");
}

TEST(GitFetchBody, RequestsOfEveryVersionPassUnchanged) {
  for (const std::string& bytes :
       {pkt("command=ls-refs\n") + pkt("agent=git/2.39.5") + "0001" + pkt("peel\n") + "0000",
        pkt("command=fetch") + pkt("object-format=sha1") + "0001" + pkt("want " + kOne + "\n") +
            pkt("done\n") + "0000",
        pkt("want " + kOne + " multi_ack_detailed no-done side-band-64k\n") + pkt("deepen 1\n") + "0000" +
            pkt("have " + kTwo + "\n") + pkt("done\n"),
        pkt("want " + kOne + "\n") + "0000" + pkt("done\n"), std::string("0000"), std::string()}) {
    for (const size_t piece : {SIZE_MAX, size_t{1}, size_t{9}}) {
      const auto plain = fetched(bytes, piece);
      EXPECT_FALSE(plain.denial);
      EXPECT_EQ(plain.out, bytes);
      const auto packed = fetched(gzipped(bytes), piece, "gzip");
      EXPECT_FALSE(packed.denial);
      EXPECT_EQ(packed.out, gzipped(bytes));
    }
  }
}

TEST(GitFetchBody, inv09_ACommandThatIsNotReadingIsRefused) {
  for (const std::string& bytes :
       {pkt("command=push\n") + "0001" + "0000",
        pkt("command=ls-refs\n") + "0000" + pkt("command=push\n") + "0000", pkt("command=fetch2") + "0000",
        pkt(kZero + " " + kOne + " refs/heads/main") + "0000", std::string("PACK"), pkt("wanted") + "0000",
        pkt("want " + kOne) + "00", pkt("command=") + "0000"}) {
    for (const size_t piece : {SIZE_MAX, size_t{1}}) {
      const auto outcome = fetched(bytes, piece);
      ASSERT_TRUE(outcome.denial) << bytes;
      EXPECT_EQ(outcome.denial->code, "egress.bad_request");
      EXPECT_THAT(outcome.out, Not(HasSubstr("push")));
    }
  }
}

}  // namespace
}  // namespace firestop::egress
