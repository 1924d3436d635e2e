// The attestation of a run: an in-toto Statement (v1) in a DSSE envelope, signed with the host's key. Its
// subjects are what came out (commits of result branches, output files) and the record itself; its predicate
// says under which manifest, in which image, with which record and which end. All of it is taken from the
// record, so it can be held against it again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "evidence/host_key.h"

namespace firestop::evidence {

inline constexpr const char* kAttestation = "attestation.json";  // in the record's directory
inline constexpr std::string_view kStatementType = "https://in-toto.io/Statement/v1";
inline constexpr std::string_view kInTotoType = "application/vnd.in-toto+json";
inline constexpr std::string_view kPredicateType = "https://firestop.dev/attestations/run/v1";
inline constexpr size_t kMostSubjects = 100000;

// The statement that the record in `directory` stands for; a record without record.end has none
// ("evidence.not_ended"). Does not verify the record. "evidence.unreadable", "evidence.bad_event".
// Of more than kMostSubjects it says how many were left out.
Result<codec::Json> statement_of(const std::string& directory);
// Signed, to `directory`/attestation.json.
Result<void> write_attestation(const std::string& directory, const HostKey& key);

struct Attested {
  codec::Json statement;
  std::string run, signer;  // id of the key
};
// "evidence.bad_envelope"; "evidence.unknown_key", "evidence.bad_signature"; "evidence.bad_attestation" for
// what is signed and no statement about a run.
Result<Attested> read_attestation(std::string_view envelope, const std::vector<PublicKey>& signers);
// Whether the record in `directory` stands for that statement: "evidence.other_statement", and in what.
Result<void> compare_attestation(const Attested& attested, const std::string& directory);

}  // namespace firestop::evidence
