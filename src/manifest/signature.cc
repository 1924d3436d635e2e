#include "manifest/signature.h"

#include <algorithm>
#include <ctime>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "codec/base64.h"
#include "codec/utf8.h"
#include "manifest/beside.h"
#include "manifest/canonical.h"
#include "manifest/ssh_keygen.h"

namespace firestop::manifest {
namespace {

constexpr size_t kMaxPrincipals = 64;  // that are tried for one signature
constexpr size_t kMaxCandidates = 64;  // lines of allowed_signers that are looked at one by one

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string one_line(std::string_view text) {
  std::string out;
  for (const auto& line : lines_of(text)) out += (out.empty() ? "" : "; ") + line;
  return codec::printable(out, 1000);
}

// `Good "..." signature ... with ED25519 key SHA256:...`: for reports only, so that nothing hangs on its
// form.
std::string fingerprint_in(std::string_view good) {
  const size_t at = good.rfind(" key SHA256:");
  if (at == std::string_view::npos) return {};
  const auto rest = good.substr(at + 5);
  return std::string(rest.substr(0, std::min(rest.find('\n'), rest.size())));
}

// One question to ssh-keygen: is this signature one of these signers'?
class Judge {
 public:
  Judge(std::string_view canonical, const SshSignature& signature, const std::string& file)
      : canonical_(canonical), signature_(signature), armored_(signature.armored()), file_(file) {}

  // Of the bytes, by whoever holds the key: which key that is.
  Result<std::string> check_bytes() {
    TRY_ASSIGN(const auto outcome, keygen_judge("check-novalidate", {"-n", kSignatureNamespace},
                                                {{"-s", armored_, "the signature"}}, canonical_));
    if (outcome.ok()) return fingerprint_in(outcome.out);
    return fail("signature.changed",
                "the signature is not one of this manifest and lock: " + one_line(outcome.err),
                "something changed since it was signed; review it and sign again with `firestop sign`");
  }

  // Whether one of `identities` may have made it; what ssh-keygen says against it is kept as reasons.
  Result<std::optional<VerifiedBy>> check_identities(const std::vector<std::string>& identities,
                                                     std::string_view signers) {
    for (const auto& identity : identities) {
      TRY_ASSIGN(const auto outcome,
                 keygen_judge("verify", {"-n", kSignatureNamespace, "-I", identity},
                              {{"-s", armored_, "the signature"}, {"-f", signers, file_}}, canonical_));
      if (outcome.ok())
        return std::optional(VerifiedBy{identity, signature_.key_type, fingerprint_in(outcome.out)});
      add_reasons(outcome.err);
    }
    return std::optional<VerifiedBy>();
  }

  // As above, with the principals that `signers` has for the key.
  Result<std::optional<VerifiedBy>> check_signers(std::string_view signers) {
    TRY_ASSIGN(
        const auto outcome,
        keygen_judge("find-principals", {}, {{"-s", armored_, "the signature"}, {"-f", signers, file_}}, {}));
    add_reasons(outcome.err);
    if (!outcome.ok()) return std::optional<VerifiedBy>();
    auto principals = lines_of(outcome.out);
    std::erase_if(principals, [](const auto& p) { return p.empty() || p.front() == '!'; });
    if (principals.size() > kMaxPrincipals) principals.resize(kMaxPrincipals);
    return check_identities(principals, signers);
  }

  Unexpected refusal(const std::string& fingerprint) const {
    std::string why;
    for (const auto& reason : reasons_) why += "\n  " + codec::printable(reason, 500);
    const std::string who = signature_.key_type + " " + fingerprint;
    const auto said = [&](std::string_view words) { return why.find(words) != std::string::npos; };
    // ssh-keygen says of a certificate only that nobody was found for it.
    const auto time = signature_.certificate_time();
    const auto now = static_cast<uint64_t>(std::time(nullptr));
    if (said("has expired") || (time && now >= time->before))
      return fail("signature.expired", "the signer's key " + who + " is out of date" + because(why));
    if (said("not yet valid") || (time && now < time->after))
      return fail("signature.not_yet_valid", "the signer's key " + who + " is not valid yet" + because(why));
    return fail(
        "signature.unknown_signer",
        "it is signed by " + who + ", whom " + file_ + " does not allow to sign manifests" + because(why),
        "if the signer is to be trusted, add the key to that file");
  }

 private:
  static std::string because(const std::string& why) { return why.empty() ? "" : ":" + why; }

  void add_reasons(const std::string& err) {
    for (auto& line : lines_of(err)) {
      const bool plain =
          line.starts_with("No principal matched") || line.starts_with("Signature verification");
      if (plain || reasons_.size() >= 8) continue;
      if (std::find(reasons_.begin(), reasons_.end(), line) == reasons_.end())
        reasons_.push_back(std::move(line));
    }
  }

  std::string_view canonical_;
  const SshSignature& signature_;
  const std::string armored_;
  const std::string& file_;
  std::vector<std::string> reasons_;
};

// find-principals stops at the first line with the key, also when a later one is the line for this namespace.
// So each line that may be the signer's is asked by itself, at its place in the file, for the messages.
std::vector<std::string> candidates(std::string_view signers, const SshSignature& signature) {
  const std::string key = codec::encode_base64(signature.public_key);
  std::vector<std::string> out;
  const auto lines = lines_of(signers);
  for (size_t i = 0; i < lines.size() && out.size() < kMaxCandidates; ++i) {
    const bool may_be = lines[i].find(key) != std::string::npos ||
                        (signature.is_certificate() && lines[i].find("cert-authority") != std::string::npos);
    if (!may_be || lines[i].starts_with('#')) continue;
    std::string alone;
    for (size_t before = 0; before < i; ++before) alone += "#\n";
    out.push_back(alone + lines[i] + "\n");
  }
  return out;
}

}  // namespace

std::string signature_path(const std::string& manifest_file) {
  return manifest_file + ".sig";
}

Result<std::string> sign(std::string_view canonical, const std::string& key_file) {
  if (!exists(key_file)) return fail("sign.no_key", "there is no key " + key_file);
  TRY_ASSIGN(const auto outcome, keygen_sign(kSignatureNamespace, key_file, canonical));
  if (!outcome.ok())
    return fail("sign.failed", "ssh-keygen could not sign with " + key_file + ": " + one_line(outcome.err),
                "for a public key file, its private key must be in your agent (ssh-add -L) or beside it");
  // Nobody is to find out later that a token or an agent gave nonsense.
  TRY_ASSIGN(const auto signature, parse_signature(outcome.out));
  if (auto right = Judge(canonical, signature, key_file).check_bytes(); !right)
    return wrap(right.error(), "what was just made with " + key_file);
  return signature.armored();
}

Result<VerifiedBy> verify(std::string_view canonical, std::string_view armored,
                          std::string_view allowed_signers, const std::string& file,
                          const std::string& identity) {
  TRY_ASSIGN(const auto signature, parse_signature(armored));
  if (signature.name_space != kSignatureNamespace)
    return fail("signature.namespace", "the signature was made for '" +
                                           codec::printable(signature.name_space, 100) + "', not for " +
                                           kSignatureNamespace);
  Judge judge(canonical, signature, file);
  TRY_ASSIGN(const std::string fingerprint, judge.check_bytes());
  std::optional<VerifiedBy> by;
  if (!identity.empty()) {
    TRY_ASSIGN(by, judge.check_identities({identity}, allowed_signers));
  } else {
    TRY_ASSIGN(by, judge.check_signers(allowed_signers));
    if (!by)
      for (const auto& line : candidates(allowed_signers, signature)) {
        TRY_ASSIGN(by, judge.check_signers(line));
        if (by) break;
      }
  }
  if (!by) return judge.refusal(fingerprint);
  return *by;
}

Result<VerifiedBy> check_signature(const Manifest& manifest, const Lock* lock,
                                   const std::string& signature_file, const std::string& allowed_signers_file,
                                   const std::string& identity) {
  const auto signers = read_file(allowed_signers_file, kMaxAllowedSigners);
  if (!signers)
    return fail("signature.allowed_signers", "cannot read the allowed signers: " + signers.error().message);
  const auto read = read_beside(signature_file, kMaxSignature);
  if (!read) return fail("signature.unreadable", "cannot read the signature: " + read.error().message);
  const auto& armored = *read;
  if (!armored)
    return fail("signature.missing", manifest.file + " is not signed: there is no " + signature_file,
                "sign it with: firestop sign --key KEY");
  TRY_ASSIGN(const std::string canonical, canonical_json(manifest, lock));
  return verify(canonical, *armored, *signers, allowed_signers_file, identity);
}

}  // namespace firestop::manifest
