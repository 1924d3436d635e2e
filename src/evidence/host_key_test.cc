#include "evidence/host_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/digest.h"
#include "base/file.h"
#include "base/process.h"
#include "codec/base64.h"

namespace firestop::evidence {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class HostKeyTest : public testing::Test {
 protected:
  HostKeyTest() { std::filesystem::create_directories(directory_); }
  ~HostKeyTest() override { std::filesystem::remove_all(directory_); }
  std::string code_of(const std::string& bytes) {
    std::ofstream(private_key_path(directory_), std::ios::trunc) << bytes;
    ::chmod(private_key_path(directory_).c_str(), 0600);
    const auto key = HostKey::load_or_make(directory_);
    return key ? "" : key.error().code;
  }

  std::string directory_ = testing::TempDir() + "host_key_test." + random_hex(8);
};

// SubjectPublicKeyInfo of an Ed25519 key, RFC 8410.
std::string pem_of(const std::string& raw) {
  const std::string der("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
  return "-----BEGIN PUBLIC KEY-----\n" + codec::encode_base64(der + raw) + "\n-----END PUBLIC KEY-----\n";
}

TEST_F(HostKeyTest, IsMadeOnceForItsOwnerOnly) {
  const auto made = HostKey::load_or_make(directory_).value();
  struct stat st{};
  ASSERT_EQ(::stat(private_key_path(directory_).c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  EXPECT_THAT(read_file(private_key_path(directory_)).value(), StartsWith("-----BEGIN PRIVATE KEY-----\n"));
  EXPECT_EQ(read_file(public_key_path(directory_)).value(), made.public_key().pem());
  const auto again = HostKey::load_or_make(directory_).value();
  EXPECT_EQ(again.public_key().id(), made.public_key().id());
  EXPECT_TRUE(made.public_key().verifies("text", again.sign("text")));
  EXPECT_FALSE(made.public_key().verifies("texts", again.sign("text")));
  EXPECT_FALSE(made.public_key().verifies("text", ""));
  // The public half is made again where it is lost; it is no secret.
  std::filesystem::remove(public_key_path(directory_));
  ASSERT_TRUE(HostKey::load_or_make(directory_));
  EXPECT_EQ(PublicKey::load(public_key_path(directory_)).value().at(0).id(), made.public_key().id());
}

TEST_F(HostKeyTest, inv11_OneThatOthersCouldReadIsRefused) {
  ASSERT_TRUE(HostKey::load_or_make(directory_));
  for (const mode_t mode : {0640u, 0604u, 0620u, 0644u}) {
    ::chmod(private_key_path(directory_).c_str(), mode);
    EXPECT_EQ(HostKey::load_or_make(directory_).error().code, "evidence.bad_key") << std::oct << mode;
  }
}

TEST_F(HostKeyTest, WhatIsNoKeyIsNeverReplaced) {
  const auto rsa =
      run_checked({.argv = {"openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"}})
          .value();
  const auto locked =
      run_checked({.argv = {"openssl", "genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:x"}})
          .value();
  for (const std::string& bytes : {std::string(), std::string("hello"), rsa, locked}) {
    EXPECT_EQ(code_of(bytes), "evidence.bad_key") << bytes;
    EXPECT_EQ(read_file(private_key_path(directory_)).value(), bytes);
  }
  std::filesystem::remove(private_key_path(directory_));
  std::filesystem::create_directory(private_key_path(directory_));
  EXPECT_FALSE(HostKey::load_or_make(directory_));
}

TEST_F(HostKeyTest, OneThatOpensslMadeIsTaken) {
  const auto pem = run_checked({.argv = {"openssl", "genpkey", "-algorithm", "ed25519"}}).value();
  EXPECT_EQ(code_of(pem), "");
}

// Points whose order divides 8: with such a key a signature of 32 bytes of that point and 32 zeros fits every
// message or one in eight.
TEST_F(HostKeyTest, KeysThatAnybodyCouldSignForAreRefused) {
  const std::string zeros(31, '\0');
  const std::string minus_one = "\xec" + std::string(30, '\xff') + "\x7f";
  for (const std::string& raw :
       {"\x01" + zeros, std::string(32, '\0'), std::string(31, '\0') + "\x80", minus_one,
        std::string("\x26\xe8\x95\x8f\xc2\xb2\x27\xb0\x45\xc3\xf4\x89\xf2\xef\x98\xf0"
                    "\xd5\xdf\xac\x05\xd3\xc6\x33\x39\xb1\x38\x02\x88\x6d\x53\xfc\x05"),
        std::string(32, '\xff')}) {
    EXPECT_EQ(PublicKey::from_raw(raw).error().code, "evidence.bad_key");
    EXPECT_EQ(PublicKey::from_pem(pem_of(raw)).error().code, "evidence.bad_key");
  }
}

TEST_F(HostKeyTest, ManyKeysInAFileWithWordsBetween) {
  const auto one = HostKey::load_or_make(directory_ + "/one").value();
  const auto two = HostKey::load_or_make(directory_ + "/two").value();
  const std::string path = directory_ + "/signers";
  std::ofstream(path) << "one:\n" << one.public_key().pem() << "two:\n" << two.public_key().pem();
  const auto keys = PublicKey::load(path).value();
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[1].id(), two.public_key().id());
  for (const std::string text : {"", "hello", "-----BEGIN PUBLIC KEY-----",
                                 "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"}) {
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_EQ(PublicKey::load(path).error().code, "evidence.bad_key") << text;
  }
  // A private key is nothing to hand around.
  EXPECT_THAT(PublicKey::load(private_key_path(directory_ + "/one")).error().hint, HasSubstr("-pubout"));
}

}  // namespace
}  // namespace firestop::evidence
