#include "sandbox/operator_egress.h"

#include <cstdlib>

#include "base/file.h"
#include "manifest/load.h"

namespace firestop::sandbox {
namespace {

const std::string kOne = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";

class OperatorEgressTest : public ::testing::Test {
 protected:
  OperatorEgressTest() {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    manifest_ = manifest::load_text("t.yaml", R"(
firestop: 1
name: t
egress: [{host: api.example.com}, {host: "*.example.org", protocol: tls}]
)")
                    .manifest;
  }
  ~OperatorEgressTest() override { (void)remove_tree(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(write_file_atomic(path, text));
    return path;
  }
  HostConfig config(const std::string& text) const {
    const auto read = parse_host_config(text, folder_ + "/config.yaml");
    EXPECT_TRUE(read) << read.error().message;
    return read ? *read : HostConfig{};
  }

  std::string folder_ = "/tmp/firestop-operator-XXXXXX";
  manifest::Manifest manifest_;
};

TEST_F(OperatorEgressTest, TheCommandLineCountsBeforeTheConfiguration) {
  const auto host = config(
      "connect_to: [\"api.example.com:443=10.0.0.1:1\", \"a.example.org:443=10.0.0.2:2\", "
      "\"unused.example:443=10.0.0.3:3\"]\n");
  const auto both = operator_egress(manifest_, host, {"api.example.com:443=127.0.0.1:9"}, "");
  ASSERT_TRUE(both) << both.error().message;
  ASSERT_EQ(both->connect_to.size(), 2u);
  EXPECT_EQ(egress::to_string(both->connect_to[0]), "api.example.com:443=127.0.0.1:9");
  EXPECT_EQ(egress::to_string(both->connect_to[1]), "a.example.org:443=10.0.0.2:2");
  // Without a network there is nothing to say of one, and what is said for all runs is no error.
  const auto none = operator_egress({}, host, {}, "");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->connect_to.empty());
  EXPECT_EQ(operator_egress({}, {}, {"a:1=127.0.0.1:1"}, "").error().code, "usage.connect_to");
}

TEST_F(OperatorEgressTest, CertificatesAddUp) {
  file("first.pem", "first\n" + kOne);
  const auto host = config("upstream_ca: first.pem\n");
  const auto both = operator_egress(manifest_, host, {}, file("third.pem", "third\n" + kOne));
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->upstream_ca, "third\n" + kOne + "\nfirst\n" + kOne + "\n");
  EXPECT_EQ(operator_egress(manifest_, host, {}, "")->upstream_ca, "first\n" + kOne + "\n");
}

TEST_F(OperatorEgressTest, WhatIsWrongIsNotPassedOver) {
  EXPECT_EQ(operator_egress(manifest_, {}, {"api.example.com=127.0.0.1"}, "").error().code,
            "usage.connect_to");
  EXPECT_EQ(operator_egress(manifest_, {}, {"other.example:443=127.0.0.1:1"}, "").error().code,
            "usage.connect_to");
  EXPECT_EQ(operator_egress(manifest_, {}, {}, folder_ + "/none").error().code, "usage.upstream_ca");
  EXPECT_EQ(operator_egress(manifest_, {}, {}, file("empty.pem", "x")).error().code, "usage.upstream_ca");
  EXPECT_EQ(operator_egress(manifest_, config("upstream_ca: none.pem"), {}, "").error().code, "config.bad");
}

}  // namespace
}  // namespace firestop::sandbox
