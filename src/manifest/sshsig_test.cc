#include "manifest/sshsig.h"

#include <gtest/gtest.h>

#include "codec/base64.h"

namespace firestop::manifest {
namespace {

// Made by ssh-keygen of OpenSSH 9.2.
constexpr const char* kReal = R"(-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgTz/rb5WyjT6Ipk5yuMrd0jiq4I
BEx11m69PvSPuBANQAAAARZmlyZXN0b3AtbWFuaWZlc3QAAAAAAAAABnNoYTUxMgAAAFMA
AAALc3NoLWVkMjU1MTkAAABA7+dRKvFEdKMvugRVcEV5GU5ChyvEBb7soHMQFcM2yMi5ON
KmCLwmqaBeQ0IlqQUo7R8ILYexLyOPFESVEMRnAA==
-----END SSH SIGNATURE-----
)";

std::string text(std::string_view bytes) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(bytes.size() >> shift);
  return out + std::string(bytes);
}

struct Parts {
  std::string magic = "SSHSIG", version = std::string("\0\0\0\1", 4);
  std::string key = text("ssh-ed25519") + text(std::string(32, 'k'));
  std::string name_space = "firestop-manifest", reserved, hash = "sha512", signature = "sig", more;
  std::string blob() const {
    return magic + version + text(key) + text(name_space) + text(reserved) + text(hash) + text(signature) +
           more;
  }
};

std::string armor(const std::string& inside) {
  return "-----BEGIN SSH SIGNATURE-----\n" + inside + "\n-----END SSH SIGNATURE-----\n";
}

std::string armored(const Parts& parts) {
  return armor(codec::encode_base64(parts.blob()));
}

TEST(SshSig, ARealOne) {
  const auto signature = parse_signature(kReal);
  ASSERT_TRUE(signature) << signature.error().message;
  EXPECT_EQ(signature->key_type, "ssh-ed25519");
  EXPECT_EQ(signature->name_space, "firestop-manifest");
  EXPECT_EQ(signature->hash, "sha512");
  EXPECT_FALSE(signature->is_certificate());
  EXPECT_EQ(signature->armored(), kReal);
}

TEST(SshSig, LineEndsOfOtherSystemsAndLengthsOfLinesDoNotMatter) {
  std::string crlf;
  for (const char c : std::string_view(kReal)) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  ASSERT_TRUE(parse_signature(crlf));
  EXPECT_EQ(parse_signature(crlf)->armored(), kReal);
  std::string longer = kReal;
  longer.append(2, '\n');
  EXPECT_EQ(parse_signature(longer)->armored(), kReal);
  EXPECT_TRUE(parse_signature(armored({})));
}

TEST(SshSig, Hostile) {
  const std::string good = codec::encode_base64(Parts{}.blob());
  const std::pair<std::string, const char*> table[] = {
      {"", "nothing"},
      {good, "no armor"},
      {"\n" + armored({}), "something before it"},
      {armored({}) + "x", "something after it"},
      {armored({}) + armored({}), "two: which is meant?"},
      {"-----BEGIN SSH SIGNATURE-----\n" + good + "\n", "no end"},
      {"-----BEGIN SSH SIGNATURE----- \n" + good + "\n-----END SSH SIGNATURE-----\n", "a blank in a marker"},
      {"-----BEGIN PGP SIGNATURE-----\n" + good + "\n-----END PGP SIGNATURE-----\n", "another kind"},
      {armor(good.substr(0, 10) + " " + good.substr(10)), "a blank in it"},
      {armor(good + "="), "too much padding"},
      {armor("Comment: x\n" + good), "a header"},
      {armor(""), "empty"},
      {armored({.magic = "SSHSIg"}), "another magic"},
      {armored({.version = std::string("\0\0\0\0", 4)}), "version 0"},
      {armored({.version = std::string("\0\0\0\2", 4)}), "version 2"},
      {armored({.key = ""}), "no key"},
      {armored({.key = text("")}), "a key without a type"},
      {armored({.key = text("ssh\ned25519")}), "a type over two lines"},
      {armored({.key = text(std::string(200, 'a'))}), "an endless type"},
      {armored({.name_space = "\xff"}), "a namespace that is no text"},
      {armored({.hash = "sha1"}), "a hash that is not to be trusted"},
      {armored({.hash = ""}), "no hash"},
      {armored({.signature = ""}), "no signature"},
      {armored({.more = "x"}), "bytes after its last part"},
      {armor(codec::encode_base64(Parts{}.blob().substr(0, 60))), "cut off"},
      {armor(codec::encode_base64(std::string("SSHSIG\0\0\0\1\xff\xff\xff\xff", 14) + "x")),
       "a length of 4 GiB"},
      {armor(std::string(100000, 'A')), "larger than any signature"},
  };
  for (const auto& [input, why] : table) {
    const auto parsed = parse_signature(input);
    ASSERT_FALSE(parsed) << why;
    EXPECT_EQ(parsed.error().code, "signature.bad") << why;
  }
  ASSERT_TRUE(parse_signature(armored({.reserved = "later"}))) << "reserved bytes are for later and not ours";
}

TEST(SshSig, EveryPrefixOfARealOneIsRefused) {
  const std::string real = kReal;
  for (size_t size = 0; size + 1 < real.size(); ++size)
    EXPECT_FALSE(parse_signature(real.substr(0, size))) << size;
}

}  // namespace
}  // namespace firestop::manifest
