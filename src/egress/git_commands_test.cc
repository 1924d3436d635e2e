#include "egress/git_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/pkt_line.h"

namespace firestop::egress {
namespace {

using codec::PktLine;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kZero(40, '0'), kOne(40, '1'), kTwo(40, '2');

std::string pkt(std::string_view payload) {
  std::string out;
  codec::append_pkt_line(out, payload);
  return out;
}

constexpr std::string_view kFlush = "0000";

std::string command(const std::string& old_id, const std::string& new_id, const std::string& ref) {
  return old_id + " " + new_id + " " + ref;
}

std::string with(const std::string& command, std::string_view capabilities) {
  return command + '\0' + std::string(capabilities);
}

struct Outcome {
  std::string error;  // or empty
  bool done = false, nothing = false;
  GitPush push;
};

Outcome read(std::string_view bytes, size_t piece = SIZE_MAX) {
  GitCommandReader reader;
  while (!bytes.empty()) {
    if (auto fed = reader.feed(bytes.substr(0, piece)); !fed) return {fed.error().message, false, false, {}};
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return {"", reader.done(), reader.nothing(), reader.push()};
}

std::string certificate(std::initializer_list<std::string> lines) {
  std::string out = pkt(with("push-cert", " report-status side-band-64k"));
  for (const auto& line : lines) out += pkt(line + "\n");
  return out + pkt("push-cert-end\n") + std::string(kFlush);
}

TEST(GitCommands, WhatAnOrdinaryClientSends) {
  const std::string bytes = pkt(with(command(kZero, kOne, "refs/heads/agent/x"),
                                     " report-status-v2 side-band-64k object-format=sha1 agent=git/2.39.5")) +
                            pkt(command(kOne, kTwo, "refs/heads/agent/y")) +
                            pkt(command(kOne, kZero, "refs/tags/v1") + "\n") + std::string(kFlush) + "PACK";
  for (const size_t piece : {SIZE_MAX, size_t{1}, size_t{7}}) {
    const Outcome got = read(bytes, piece);
    ASSERT_EQ(got.error, "");
    ASSERT_TRUE(got.done);
    EXPECT_TRUE(got.push.reports && got.push.side_band && !got.push.has_options && !got.push.is_signed);
    ASSERT_EQ(got.push.updates.size(), 3u);
    EXPECT_EQ(got.push.updates[0].kind, GitUpdate::Kind::kCreate);
    EXPECT_EQ(got.push.updates[0].ref, "refs/heads/agent/x");
    EXPECT_EQ(got.push.updates[1].kind, GitUpdate::Kind::kUpdate);
    EXPECT_EQ(got.push.updates[2].kind, GitUpdate::Kind::kDelete);
    EXPECT_EQ(got.push.updates[2].ref, "refs/tags/v1");
  }
}

TEST(GitCommands, AShallowRepositoryAndSha256) {
  const std::string zero(64, '0'), one(64, 'a');
  const Outcome got =
      read(pkt("shallow " + one) +
           pkt(with(command(zero, one, "refs/heads/a"), "report-status object-format=sha256")) +
           std::string(kFlush));
  EXPECT_EQ(got.error, "");
  EXPECT_TRUE(got.done && got.push.sha256);
}

TEST(GitCommands, PushOptionsFollowIfTheyWereAnnounced) {
  const std::string bytes = pkt(with(command(kZero, kOne, "refs/heads/a"), "report-status push-options")) +
                            std::string(kFlush) + pkt("ci.skip") + pkt("merge_request.create\n");
  EXPECT_FALSE(read(bytes).done);
  const Outcome got = read(bytes + std::string(kFlush));
  EXPECT_TRUE(got.done);
  EXPECT_THAT(got.push.options, ElementsAre("ci.skip", "merge_request.create"));
}

TEST(GitCommands, ASignedPushIsReadThroughItsCertificate) {
  const Outcome got =
      read(certificate({"certificate version 0.1", "pusher A <a@example.org> 1700000000 +0000",
                        "pushee https://git.example.com/a/b", "nonce 17-abc", "push-option ci.skip", "",
                        command(kZero, kOne, "refs/heads/a"), command(kOne, kTwo, "refs/heads/main"),
                        "-----BEGIN SSH SIGNATURE-----", "U1NIU0lH", "-----END SSH SIGNATURE-----"}));
  ASSERT_EQ(got.error, "");
  ASSERT_TRUE(got.done && got.push.is_signed && got.push.side_band);
  ASSERT_EQ(got.push.updates.size(), 2u);
  EXPECT_EQ(got.push.updates[1].ref, "refs/heads/main");
  EXPECT_THAT(got.push.options, ElementsAre("ci.skip"));
}

TEST(GitCommands, AFlushAloneAsksForNothingAndNothingMayFollow) {
  EXPECT_TRUE(read("0000").nothing);
  EXPECT_FALSE(read("0000").done);
  EXPECT_FALSE(read("0000P").nothing);
  EXPECT_THAT(read("0000" + pkt(command(kOne, kTwo, "refs/heads/main")) + "0000").error, HasSubstr("behind"));
}

// What git or another server could read in another way than we do.
TEST(GitCommands, inv09_WhatTwoServersCouldReadInTwoWaysIsRefused) {
  const std::string good = command(kZero, kOne, "refs/heads/agent/a"),
                    evil = command(kOne, kTwo, "refs/heads/main");
  const std::string head = "certificate version 0.1", pusher = "pusher A <a@example.org> 1 +0000";
  const std::string begin = "-----BEGIN PGP SIGNATURE-----";
  const std::string flush(kFlush);
  struct {
    const char* why;
    std::string bytes;
  } rows[] = {
      {"a second NUL hides a second text", pkt(good + '\0' + "report-status" + '\0' + evil) + flush},
      {"capabilities on a later line", pkt(good) + pkt(with(evil, "push-options")) + flush},
      {"a line feed starts another command", pkt(good + "\n" + evil) + flush},
      {"a carriage return", pkt(good + "\r") + flush},
      {"two spaces", pkt(kZero + "  " + kOne + " refs/heads/a") + flush},
      {"a space in the ref", pkt(good + " refs/heads/main") + flush},
      {"a tab for a space", pkt(kZero + "\t" + kOne + "\trefs/heads/a") + flush},
      {"no ref", pkt(kZero + " " + kOne + " ") + flush},
      {"two parts", pkt(kZero + " refs/heads/a") + flush},
      {"an empty line", pkt("") + flush},
      {"a short object id", pkt(command(kZero, kOne.substr(1), "refs/heads/a")) + flush},
      {"ids of two lengths", pkt(command(kZero, std::string(64, '1'), "refs/heads/a")) + flush},
      {"no hexadecimal", pkt(command(kZero, std::string(40, 'g'), "refs/heads/a")) + flush},
      {"SHA-256 that was not announced",
       pkt(command(std::string(64, '0'), std::string(64, '1'), "refs/heads/a")) + flush},
      {"SHA-256 announced, SHA-1 sent", pkt(with(good, "object-format=sha256")) + flush},
      {"two object formats", pkt(with(good, "object-format=sha1 object-format=sha256")) + flush},
      {"another object format", pkt(with(good, "object-format=md5")) + flush},
      {"a delimiter among commands", pkt(good) + "0001" + pkt(evil) + flush},
      {"a response end among commands", pkt(good) + "0002" + flush},
      {"protocol version 2", pkt("command=push") + "0001" + pkt(good) + flush},
      {"shallow behind a command", pkt(good) + pkt("shallow " + kOne) + flush},
      {"shallow without a command", pkt("shallow " + kOne) + flush},
      {"shallow of no id", pkt("shallow main") + pkt(good) + flush},
      {"a NUL in a push option",
       pkt(with(good, "push-options")) + flush + pkt(std::string("a\0b", 3)) + flush},
      {"a line feed in a push option", pkt(with(good, "push-options")) + flush + pkt("a\nb") + flush},
      {"a certificate and a command", pkt("push-cert") + pkt(head + "\n") + pkt("\n") + pkt(good + "\n") +
                                          pkt(begin + "\n") + pkt("push-cert-end\n") + pkt(evil) + flush},
      {"a command, then a certificate", pkt(good) + pkt("push-cert") + flush},
      {"a certificate without its end", pkt("push-cert") + pkt(head + "\n") + flush},
      {"a certificate of another version", certificate({"certificate version 0.2", pusher, "", good, begin})},
      {"no version", certificate({pusher, "", good, begin})},
      {"no signature", certificate({head, pusher, "", good})},
      {"no commands", certificate({head, pusher, "", begin})},
      {"a command behind the first of two signatures",
       certificate({head, pusher, "", good, begin, evil, begin})},
      {"an empty line among its commands", certificate({head, pusher, "", good, "", evil, begin})},
      {"an unknown line in its head", certificate({head, pusher, "ref refs/heads/main", "", good, begin})},
      {"two lines in a packet", pkt("push-cert") + pkt(head + "\n" + pusher + "\n") + flush},
      {"half a line in a packet", pkt("push-cert") + pkt(head) + flush},
      {"no pkt-line", "PACK"},
      {"a body of a web form", "operation=push"},
  };
  for (const auto& row : rows) {
    const Outcome got = read(row.bytes);
    EXPECT_NE(got.error, "") << row.why;
    EXPECT_EQ(read(row.bytes, 1).error, got.error) << row.why;
  }
}

TEST(GitCommands, BoundsHold) {
  std::string many = pkt(with(command(kZero, kOne, "refs/heads/a0"), "report-status"));
  for (size_t i = 1; i < GitCommandReader::kMostUpdates; ++i)
    many += pkt(command(kZero, kOne, "refs/heads/a" + std::to_string(i)));
  EXPECT_EQ(read(many + "0000").push.updates.size(), GitCommandReader::kMostUpdates);
  EXPECT_THAT(read(many + pkt(command(kZero, kOne, "refs/heads/z"))).error, HasSubstr("more than 1000 refs"));

  std::string options = pkt(with(command(kZero, kOne, "refs/heads/a"), "push-options")) + "0000";
  for (size_t i = 0; i <= GitCommandReader::kMostOptions; ++i) options += pkt("o" + std::to_string(i));
  EXPECT_THAT(read(options).error, HasSubstr("more than 100 push options"));

  std::string large;
  for (int i = 0; i < 20; ++i)
    large += pkt(command(kZero, kOne, "refs/heads/" + std::to_string(i) + std::string(60000, 'x')));
  EXPECT_THAT(read(large).error, HasSubstr("more than 1 MiB"));
}

}  // namespace
}  // namespace firestop::egress
