#include "evidence/attest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/digest.h"
#include "base/file.h"
#include "evidence/dsse.h"
#include "evidence/log.h"

namespace firestop::evidence {
namespace {

using codec::JsonArray;
using codec::JsonObject;
using testing::HasSubstr;

class AttestTest : public testing::Test {
 protected:
  AttestTest() { std::filesystem::create_directories(directory_); }
  ~AttestTest() override { std::filesystem::remove_all(directory_); }

  std::string record(const std::string& name, int status) {
    const std::string directory = directory_ + "/" + name;
    auto log = Log::create(directory, "20261129-201011-abcdef", *key_,
                           {{"name", "fix"}, {"manifest_digest", sha256_hex("manifest")}}, {})
                   .value();
    EXPECT_TRUE(log->append(Vantage::kHost, "run.plan", {{"image", "agent-base"}, {"image_digest", "ab"}}));
    EXPECT_TRUE(log->append(Vantage::kHost, "cap.hit", {{"cap", "output"}, {"limit", "1MiB"}}));
    // The guest's word is no subject.
    EXPECT_TRUE(log->append(Vantage::kGuest, "file.out", {{"path", "forged"}, {"digest", sha256_hex("f")}}));
    EXPECT_TRUE(log->append(Vantage::kHost, "file.out",
                            {{"path", "repo"},
                             {"ref", "refs/heads/agent/fix"},
                             {"commit", "1234567890123456789012345678901234567890"}}));
    EXPECT_TRUE(log->append(Vantage::kHost, "file.out",
                            {{"path", "report/a.txt"}, {"size", 1}, {"digest", sha256_hex("a")}}));
    EXPECT_TRUE(log->close({{"status", status}, {"complete", true}, {"alarms", 0}}));
    return directory;
  }

  std::string directory_ = testing::TempDir() + "attest_test." + random_hex(8);
  Result<HostKey> key_ = HostKey::load_or_make(directory_ + "/config");
  std::vector<PublicKey> signers_ = {key_->public_key()};
};

TEST_F(AttestTest, SaysWhatCameOutAndHow) {
  const auto directory = record("run", 0);
  ASSERT_TRUE(write_attestation(directory, *key_));
  const auto attested =
      read_attestation(read_file(directory + "/attestation.json").value(), signers_).value();
  EXPECT_EQ(attested.run, "20261129-201011-abcdef");
  EXPECT_EQ(attested.signer, key_->public_key().id());
  const JsonArray& subjects = *attested.statement.find("subject")->as_array();
  ASSERT_EQ(subjects.size(), 3u);
  EXPECT_EQ(subjects[0].find("digest")->string_or("sha256", ""),
            sha256_file(directory + "/events.jsonl").value());
  EXPECT_EQ(subjects[1].string_or("name", ""), "refs/heads/agent/fix");
  EXPECT_EQ(subjects[1].find("digest")->string_or("gitCommit", ""),
            "1234567890123456789012345678901234567890");
  EXPECT_EQ(subjects[2].find("digest")->string_or("sha256", ""), sha256_hex("a"));
  const codec::Json& predicate = *attested.statement.find("predicate");
  EXPECT_EQ(predicate.find("record")->int_or("count", 0), 7);
  EXPECT_EQ(*predicate.find("caps_hit"), codec::Json(JsonArray{"output"}));
  EXPECT_TRUE(predicate.bool_or("complete", false));
  EXPECT_TRUE(compare_attestation(attested, directory));
}

TEST_F(AttestTest, inv11_AnotherRecordDoesNotFit) {
  const auto one = record("one", 0), two = record("two", 1);
  ASSERT_TRUE(write_attestation(one, *key_));
  const auto attested = read_attestation(read_file(one + "/attestation.json").value(), signers_).value();
  EXPECT_EQ(compare_attestation(attested, two).error().code, "evidence.other_statement");
}

TEST_F(AttestTest, inv11_OnlyTrustedKeysAndStatementsAboutRunsCount) {
  const auto directory = record("run", 0);
  ASSERT_TRUE(write_attestation(directory, *key_));
  std::string text = read_file(directory + "/attestation.json").value();
  EXPECT_EQ(read_attestation(text, {}).error().code, "evidence.unknown_key");
  const auto other = HostKey::load_or_make(directory_ + "/other").value();
  EXPECT_EQ(read_attestation(text, {other.public_key()}).error().code, "evidence.unknown_key");
  EXPECT_EQ(read_attestation("{}", signers_).error().code, "evidence.bad_envelope");
  text[text.find("\"payload\":\"") + 20] ^= 1;
  EXPECT_EQ(read_attestation(text, signers_).error().code, "evidence.bad_signature");
  // Signed by the same key, for another purpose.
  EXPECT_EQ(read_attestation(sign_envelope(*key_, "text/plain", "{}"), signers_).error().code,
            "evidence.bad_attestation");
  EXPECT_EQ(read_attestation(sign_envelope(*key_, kInTotoType, "{}"), signers_).error().code,
            "evidence.bad_attestation");
}

TEST_F(AttestTest, WhatHasNoEndIsNotAttested) {
  const auto directory = directory_ + "/run";
  auto log = Log::create(directory, "run", *key_, {}, {}).value();
  EXPECT_EQ(write_attestation(directory, *key_).error().code, "evidence.not_ended");
  EXPECT_FALSE(exists(directory + "/attestation.json"));
}

}  // namespace
}  // namespace firestop::evidence
