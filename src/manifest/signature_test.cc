// With the real ssh-keygen and ssh-agent, keys made on the spot, and both directions: what it signs we
// accept, what we sign it accepts.
#include "manifest/signature.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <sstream>

#include "base/file.h"
#include "base/process.h"
#include "manifest/canonical.h"
#include "manifest/load.h"

namespace firestop::manifest {
namespace {

constexpr const char* kText = "{\"lock\":null,\"manifest\":{}}";

std::string fields(const std::string& public_key_file) {  // type and key, without the comment
  std::istringstream words(read_file(public_key_file).value());
  std::string type, key;
  words >> type >> key;
  return type + " " + key;
}

class Signing : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder() = "/tmp/firestop-sign-XXXXXX";
    ASSERT_NE(::mkdtemp(folder().data()), nullptr);
    for (const char* name : {"alice", "mallory", "authority"}) make_key(name, {"-t", "ed25519"});
  }
  static void TearDownTestSuite() { (void)remove_tree(folder()); }

  static std::string& folder() {
    static std::string path;
    return path;
  }
  static std::string at(const std::string& name) { return folder() + "/" + name; }
  static std::string public_key(const std::string& name) { return fields(at(name + ".pub")); }

  static std::string keygen(std::vector<std::string> arguments, const std::string& input = {}) {
    arguments.insert(arguments.begin(), "ssh-keygen");
    Command command;
    command.argv = std::move(arguments);
    command.directory = folder();
    auto out = run_checked(std::move(command), {.input = input});
    EXPECT_TRUE(out) << out.error().message;
    return out.value_or("");
  }
  static void make_key(const std::string& name, std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-q", "-N", "", "-C", name, "-f", at(name)});
    keygen(std::move(arguments));
  }
  static std::string signed_by(const std::string& key, std::string_view text = kText) {
    auto signature = sign(text, at(key));
    EXPECT_TRUE(signature) << signature.error().message;
    return signature.value_or("");
  }
  static Result<VerifiedBy> judged(const std::string& signature, const std::string& signers,
                                   const std::string& identity = {}, std::string_view text = kText) {
    return verify(text, signature, signers, "allowed_signers", identity);
  }
  static void refused(const Result<VerifiedBy>& by, std::string_view code, std::string_view says = {}) {
    ASSERT_FALSE(by) << by->principal;
    EXPECT_EQ(by.error().code, code) << by.error().message;
    EXPECT_NE(by.error().message.find(says), std::string::npos) << by.error().message;
    EXPECT_EQ(by.error().message.find("/proc/"), std::string::npos) << by.error().message;
  }
};

TEST_F(Signing, EveryKindOfKey) {
  const std::pair<const char*, std::vector<std::string>> kinds[] = {
      {"k-ed25519", {"-t", "ed25519"}},
      {"k-ecdsa", {"-t", "ecdsa", "-b", "384"}},
      {"k-rsa", {"-t", "rsa", "-b", "2048"}},
  };
  for (const auto& [name, arguments] : kinds) {
    make_key(name, arguments);
    const auto by = judged(signed_by(name), "who@example.com " + public_key(name) + "\n");
    ASSERT_TRUE(by) << name << ": " << by.error().message;
    EXPECT_EQ(by->principal, "who@example.com");
    EXPECT_TRUE(by->fingerprint.starts_with("SHA256:")) << by->fingerprint;
    EXPECT_NE(public_key(name).find(by->key_type), std::string::npos);
  }
}

TEST_F(Signing, KeygenByHandAcceptsOurs) {
  ASSERT_TRUE(write_file_atomic(at("ours.sig"), signed_by("alice")));
  ASSERT_TRUE(write_file_atomic(at("allowed"), "alice " + public_key("alice") + "\n"));
  const auto said = keygen(
      {"-Y", "verify", "-f", at("allowed"), "-I", "alice", "-n", "firestop-manifest", "-s", at("ours.sig")},
      kText);
  EXPECT_TRUE(said.starts_with("Good \"firestop-manifest\" signature for alice")) << said;
}

TEST_F(Signing, WeAcceptKeygensByHand) {
  const auto theirs = keygen({"-Y", "sign", "-n", "firestop-manifest", "-f", at("alice")}, kText);
  EXPECT_TRUE(judged(theirs, "alice " + public_key("alice")));
  const auto sha256 =
      keygen({"-Y", "sign", "-O", "hashalg=sha256", "-n", "firestop-manifest", "-f", at("alice")}, kText);
  EXPECT_TRUE(judged(sha256, "alice " + public_key("alice")));
}

TEST_F(Signing, OneByteThatChanged) {
  const auto signature = signed_by("alice");
  const std::string signers = "alice " + public_key("alice");
  for (size_t i = 0; i < std::string_view(kText).size(); i += 9) {
    std::string changed = kText;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    refused(judged(signature, signers, {}, changed), "signature.changed");
  }
  refused(judged(signature, signers, {}, std::string(kText) + "\n"), "signature.changed");
  refused(judged(signature, signers, {}, ""), "signature.changed");
}

TEST_F(Signing, AChangedSignature) {
  const auto parsed = parse_signature(signed_by("alice"));
  ASSERT_TRUE(parsed);
  for (size_t i = 0; i < parsed->blob.size(); i += 7) {
    auto changed = *parsed;
    changed.blob[i] = static_cast<char>(changed.blob[i] ^ 4);
    EXPECT_FALSE(judged(changed.armored(), "alice " + public_key("alice"))) << i;
  }
}

TEST_F(Signing, SignedBySomebodyElse) {
  refused(judged(signed_by("mallory"), "alice " + public_key("alice")), "signature.unknown_signer",
          "whom allowed_signers does not allow");
  refused(judged(signed_by("alice"), ""), "signature.unknown_signer");
  refused(judged(signed_by("alice"), "# alice " + public_key("alice")), "signature.unknown_signer");
}

TEST_F(Signing, MadeForSomethingElse) {
  const auto git = keygen({"-Y", "sign", "-n", "git", "-f", at("alice")}, kText);
  refused(judged(git, "alice " + public_key("alice")), "signature.namespace", "'git'");
  refused(judged("hello", "alice " + public_key("alice")), "signature.bad");
}

TEST_F(Signing, WhatAllowedSignersSayCounts) {
  const auto signature = signed_by("alice");
  const std::string key = public_key("alice");
  struct Row {
    std::string signers, identity, principal, code;
    const char* why;
  };
  const Row rows[] = {
      {"a@x,b@x " + key, "", "a@x", "", "a list of principals"},
      {"a@x,b@x " + key, "b@x", "b@x", "", "one of them asked for"},
      {"*@x " + key, "", "*@x", "", "a pattern"},
      {"*@x " + key, "eve@x", "eve@x", "", "one whom the pattern has"},
      {"*@x,!eve@x " + key, "eve@x", "", "signature.unknown_signer", "one whom it leaves out"},
      {"!eve@x,*@x " + key, "", "*@x", "", "what is left out is nobody's name"},
      {"a@x " + key, "b@x", "", "signature.unknown_signer", "another was asked for"},
      {"\"A B\" " + key, "", "A B", "", "a name in quotes"},
      {"a namespaces=\"firestop-manifest\" " + key, "", "a", "", "for manifests"},
      {"a namespaces=\"git,firestop-*\" " + key, "", "a", "", "for a pattern of namespaces"},
      {"a namespaces=\"git\" " + key, "", "", "signature.unknown_signer", "for commits only"},
      {"a namespaces=\"git\" " + key + "\nb namespaces=\"firestop-manifest\" " + key, "", "b", "",
       "the second line is the one for manifests"},
      {"a valid-before=\"20200101\" " + key, "", "", "signature.expired", "out of date"},
      {"a valid-before=\"20990101\" " + key, "", "a", "", "not yet out of date"},
      {"a valid-after=\"20200101\" " + key, "", "a", "", "valid for long"},
      {"a valid-after=\"20990101\" " + key, "", "", "signature.not_yet_valid", "not valid yet"},
      {"a valid-before=\"20200101\" " + key + "\na valid-after=\"20200101\" " + key, "", "a", "", "renewed"},
      {"a valid-before=\"20200101\" " + key, "a", "", "signature.expired", "asked for by name, out of date"},
      {"a valid-before=\"soon\" " + key, "", "", "signature.unknown_signer", "a date that is none"},
      {"a frob " + key, "", "", "signature.unknown_signer", "an option nobody knows is no permission"},
      {"a cert-authority " + key, "", "", "signature.unknown_signer", "an authority is no signer itself"},
      {"a\nb " + key, "", "b", "", "a broken line before it"},
      {"# who\r\na " + key + "\r\n", "", "a", "", "line ends of other systems"},
  };
  for (const auto& row : rows) {
    const auto by = judged(signature, row.signers, row.identity);
    if (row.code.empty()) {
      ASSERT_TRUE(by) << row.why << ": " << by.error().message;
      EXPECT_EQ(by->principal, row.principal) << row.why;
    } else {
      SCOPED_TRACE(row.why);
      refused(by, row.code);
    }
  }
}

// A certificate for `key`, by `authority`; returns the name to sign with.
class Certificates : public Signing {
 protected:
  static std::string certify(const std::string& name, std::vector<std::string> options) {
    make_key(name, {"-t", "ed25519"});
    options.insert(options.begin(), {"-q", "-s", at("authority"), "-I", "id"});
    options.push_back(at(name + ".pub"));
    keygen(std::move(options));
    return name + "-cert.pub";
  }
};

TEST_F(Certificates, AreJudgedByTheirAuthority) {
  const auto signature = signed_by(certify("carol", {"-n", "carol@x"}));
  EXPECT_TRUE(parse_signature(signature)->is_certificate());
  const auto by = judged(signature, "*@x cert-authority " + public_key("authority"));
  ASSERT_TRUE(by) << by.error().message;
  EXPECT_EQ(by->principal, "carol@x");
  EXPECT_EQ(by->key_type, "ssh-ed25519-cert-v01@openssh.com");
  refused(judged(signature, "*@x " + public_key("authority")), "signature.unknown_signer");
  refused(judged(signature, "*@y cert-authority " + public_key("authority")), "signature.unknown_signer");
  refused(judged(signature, "*@x cert-authority " + public_key("mallory")), "signature.unknown_signer");
  refused(judged(signature, "*@x cert-authority,namespaces=\"git\" " + public_key("authority")),
          "signature.unknown_signer");
  const auto second = judged(signature, "*@x cert-authority,namespaces=\"git\" " + public_key("authority") +
                                            "\n*@x cert-authority " + public_key("authority"));
  ASSERT_TRUE(second) << second.error().message;
  refused(judged(signature, "*@x cert-authority " + public_key("authority"), "alice@x"),
          "signature.unknown_signer");
}

TEST_F(Certificates, GoOutOfDate) {
  const std::string signers = "*@x cert-authority " + public_key("authority");
  refused(judged(signed_by(certify("dave", {"-n", "dave@x", "-V", "20200101:20210101"})), signers),
          "signature.expired");
  refused(judged(signed_by(certify("erin", {"-n", "erin@x", "-V", "20990101:20990102"})), signers),
          "signature.not_yet_valid");
  // Somebody else's, and out of date: it is the authority that matters first, and ssh-keygen says neither.
  EXPECT_FALSE(judged(signed_by(certify("fay", {"-n", "fay@x", "-V", "20200101:20210101"})),
                      "*@x cert-authority " + public_key("mallory")));
}

TEST_F(Certificates, SayWhenTheyAreValid) {
  for (const char* type : {"ed25519", "ecdsa", "rsa"}) {
    make_key(std::string("t-") + type, {"-t", type});
    keygen({"-q", "-s", at("authority"), "-I", "id", "-n", "x", "-V", "20200101000000Z:20210101000000Z",
            at(std::string("t-") + type + ".pub")});
    const auto signature = parse_signature(signed_by(std::string("t-") + type + "-cert.pub"));
    ASSERT_TRUE(signature);
    ASSERT_TRUE(signature->certificate_time()) << type;
    EXPECT_EQ(signature->certificate_time()->after, 1577836800u) << type;
    EXPECT_EQ(signature->certificate_time()->before, 1609459200u) << type;
  }
  EXPECT_FALSE(parse_signature(signed_by("alice"))->certificate_time());
}

// An agent of its own; $SSH_AUTH_SOCK leads to it while this lives.
class Agent {
 public:
  explicit Agent(const std::string& socket) {
    Command command;
    command.argv = {"ssh-agent", "-D", "-a", socket};
    child_ = spawn(command).value();
    for (int i = 0; i < 500 && !exists(socket); ++i) ::usleep(10000);
    ::setenv("SSH_AUTH_SOCK", socket.c_str(), 1);
  }
  ~Agent() {
    ::unsetenv("SSH_AUTH_SOCK");
    child_.kill_and_wait();
  }

 private:
  Child child_;
};

TEST_F(Signing, AnAgentHoldsTheKey) {
  make_key("frank", {"-t", "ed25519"});
  const std::string signers = "frank " + public_key("frank");
  const Agent agent(at("agent.sock"));
  Command add;
  add.argv = {"ssh-add", "-q", at("frank")};
  ASSERT_TRUE(run_checked(add));
  ASSERT_TRUE(remove_tree(at("frank")));
  const auto by = judged(signed_by("frank.pub"), signers);
  ASSERT_TRUE(by) << by.error().message;
  EXPECT_EQ(by->principal, "frank");
}

TEST_F(Signing, KeysThatCannotSign) {
  EXPECT_EQ(sign(kText, at("nobody")).error().code, "sign.no_key");
  ASSERT_TRUE(write_file_atomic(at("no-key"), "hello\n"));
  EXPECT_EQ(sign(kText, at("no-key")).error().code, "sign.failed");
  make_key("gone", {"-t", "ed25519"});
  ASSERT_TRUE(remove_tree(at("gone")));
  const auto gone = sign(kText, at("gone.pub"));
  EXPECT_EQ(gone.error().code, "sign.failed");
  EXPECT_NE(gone.error().hint.find("agent"), std::string::npos);
}

class Files : public Signing {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_file_atomic(at("firestop.yaml"), "firestop: 1\nname: tidy\ncommand: [make]\n"));
    ASSERT_TRUE(write_file_atomic(at("signers"), "alice " + public_key("alice") + "\n"));
    auto loaded = load_file(at("firestop.yaml"));
    ASSERT_TRUE(loaded);
    manifest_ = std::move(loaded->manifest);
    path_ = signature_path(at("firestop.yaml"));
    ASSERT_TRUE(remove_tree(path_));
  }
  void sign_it(const Lock* lock) {
    ASSERT_TRUE(write_file_atomic(path_, signed_by("alice", canonical_json(manifest_, lock).value())));
  }
  Result<VerifiedBy> check(const Lock* lock) {
    return check_signature(manifest_, lock, path_, at("signers"));
  }

  Manifest manifest_;
  std::string path_;
};

TEST_F(Files, SignedAndThenNot) {
  refused(check(nullptr), "signature.missing");
  sign_it(nullptr);
  const auto by = check(nullptr);
  ASSERT_TRUE(by) << by.error().message;
  EXPECT_EQ(by->principal, "alice");
  manifest_.limits.memory += 1;
  refused(check(nullptr), "signature.changed");
}

TEST_F(Files, TheLockIsSignedWithIt) {
  Lock lock;
  lock.recipe = "agent-base";
  lock.image_digest = std::string(64, 'b');
  sign_it(&lock);
  EXPECT_TRUE(check(&lock));
  refused(check(nullptr), "signature.changed");
  lock.image_digest[0] = 'a';
  refused(check(&lock), "signature.changed");
}

TEST_F(Files, WhatCannotBeReadIsARefusal) {
  sign_it(nullptr);
  refused(check_signature(manifest_, nullptr, path_, at("none")), "signature.allowed_signers");
  ASSERT_TRUE(write_file_atomic(at("big"), std::string(kMaxAllowedSigners + 1, '#')));
  refused(check_signature(manifest_, nullptr, path_, at("big")), "signature.allowed_signers");
  ASSERT_TRUE(write_file_atomic(path_, std::string(kMaxSignature + 1, 'A')));
  refused(check(nullptr), "signature.unreadable");
  ASSERT_TRUE(remove_tree(path_));
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  refused(check(nullptr), "signature.unreadable");
}

TEST_F(Files, WithoutKeygenNothingIsTrusted) {
  sign_it(nullptr);
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);
  const auto by = check(nullptr);
  ::setenv("PATH", path.c_str(), 1);
  refused(by, "signature.cannot_check", "ssh-keygen");
}

}  // namespace
}  // namespace firestop::manifest
