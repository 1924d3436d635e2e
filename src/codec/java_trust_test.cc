#include "codec/java_trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/process.h"

namespace firestop::codec {
namespace {

using testing::HasSubstr;

std::string armoured(const std::string& text) {
  return "-----BEGIN CERTIFICATE-----\n" + text + "\n-----END CERTIFICATE-----\n";
}

TEST(JavaTrust, LayoutIsAsJavaWritesIt) {
  const auto store = java_trust_store("# comment\n" + armoured("AAE=") + armoured("Ag\r\n==")).value_or("");
  std::string expected("\xfe\xed\xfe\xed\0\0\0\2\0\0\0\2", 12);
  expected += std::string(
      "\0\0\0\2\0\x09"
      "firestop0\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\2\0\1",
      36);
  expected += std::string(
      "\0\0\0\2\0\x09"
      "firestop1\0\0\0\0\0\0\0\0\0\5X.509\0\0\0\1\2",
      35);
  ASSERT_EQ(store.size(), expected.size() + 20);
  EXPECT_EQ(store.substr(0, expected.size()), expected);
}

TEST(JavaTrust, WhatIsNoCertificate) {
  EXPECT_EQ(java_trust_store("").value_or("").size(), 32u);
  EXPECT_FALSE(java_trust_store("-----BEGIN CERTIFICATE-----\nAAE="));
  EXPECT_FALSE(java_trust_store(armoured("A!E=")));
}

// keytool checks the digest, and reads the certificates.
TEST(JavaTrust, KeytoolReadsTheHostsOwnBundle) {
  if (find_program("keytool").empty()) GTEST_SKIP() << "needs keytool";
  const auto pem = read_file("/etc/ssl/certs/ca-certificates.crt");
  ASSERT_TRUE(pem);
  const auto store = java_trust_store(*pem);
  ASSERT_TRUE(store);
  const std::string path = testing::TempDir() + "java_trust_test.jks";
  ASSERT_TRUE(write_file_atomic(path, *store));
  size_t count = 0;
  for (size_t at = 0; (at = pem->find("-----BEGIN CERT", at)) != std::string::npos; ++at) ++count;
  const auto read = run_checked({.argv = {"keytool", "-list", "-storepass", "changeit", "-keystore", path}});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(*read, HasSubstr("contains " + std::to_string(count) + " entries"));
  auto damaged = *store;
  damaged[100] = static_cast<char>(damaged[100] ^ 1);
  ASSERT_TRUE(write_file_atomic(path, damaged));
  EXPECT_FALSE(run_checked({.argv = {"keytool", "-list", "-storepass", "changeit", "-keystore", path}}));
}

}  // namespace
}  // namespace firestop::codec
