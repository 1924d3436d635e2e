#include "guest/trust.h"

#include <cstdlib>

#include "base/file.h"

namespace firestop::guest {
namespace {

const std::string kAuthority = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n";

class Trust : public ::testing::Test {
 protected:
  Trust() {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    for (const char* part : {"/image", "/upper"}) EXPECT_TRUE(make_directories(folder_ + part));
    start_.authority = kAuthority;
    start_.authority_hash = "0123abcd";
  }
  ~Trust() override { (void)remove_tree(folder_); }

  void in_image(const std::string& path, const std::string& text) const {
    const std::string whole = folder_ + "/image" + path;
    ASSERT_TRUE(make_directories(whole.substr(0, whole.rfind('/'))));
    ASSERT_TRUE(write_file_atomic(whole, text));
  }
  void write() const {
    const auto image = Inside::open(folder_ + "/image"), upper = Inside::open(folder_ + "/upper");
    ASSERT_TRUE(image && upper);
    const auto written = write_trust(start_, *image, *upper);
    ASSERT_TRUE(written) << written.error().to_string();
  }
  std::string made(const std::string& path) const {
    return read_file(folder_ + "/upper" + path).value_or("none");
  }

  std::string folder_ = "/tmp/firestop-trust-XXXXXX";
  channel::Start start_;
};

TEST_F(Trust, AnImageWithoutAnyCertificatesGetsTheAuthority) {
  write();
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt",
                           "/usr/local/share/ca-certificates/firestop.crt", "/etc/ssl/certs/0123abcd.0"})
    EXPECT_EQ(made(path), kAuthority) << path;
  EXPECT_EQ(made("/etc/pki/tls/certs/ca-bundle.crt"), "none") << "of another distribution";
  EXPECT_NE(made("/etc/profile.d/firestop.sh").find("SSL_CERT_FILE:=/etc/ssl/certs/ca-certificates.crt"),
            std::string::npos);
}

TEST_F(Trust, EveryBundleThatAnImageHasGetsIt) {
  for (const char* path : {"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"}) in_image(path, "theirs");
  in_image("/etc/ssl/certs/ca-certificates.crt", "theirs\n");
  write();
  for (const char* path :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"})
    EXPECT_EQ(made(path), "theirs\n" + kAuthority) << path;
  EXPECT_EQ(made("/etc/ssl/ca-bundle.pem"), "none");
}

TEST_F(Trust, WithoutANetworkNothingIsTrusted) {
  start_.authority.clear();
  write();
  EXPECT_EQ(made("/etc/ssl/certs/ca-certificates.crt"), "none");
  EXPECT_TRUE(trust_environment(start_).empty());
}

}  // namespace
}  // namespace firestop::guest
