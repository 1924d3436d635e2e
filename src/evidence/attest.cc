#include "evidence/attest.h"

#include <set>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "codec/utf8.h"
#include "evidence/dsse.h"
#include "evidence/event.h"
#include "evidence/line_reader.h"

namespace firestop::evidence {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;

constexpr size_t kMostShown = 80, kMostCaps = 100;

Json member(const Event& event, std::string_view key) {
  const Json* value = event.data.find(key);
  return value ? *value : Json();
}

// Gathers a statement from a record's events.
class Statement {
 public:
  void take(const Event& event, std::string_view line);
  Result<Json> done();

 private:
  void subject(Json name, const char* algorithm, const std::string& digest);
  void file_out(const Event& event);

  Sha256 file_;
  std::string head_, last_kind_;
  uint64_t count_ = 0, left_out_ = 0;
  JsonArray subjects_, caps_;
  std::set<std::string> cap_names_;
  JsonObject predicate_;
  Json key_;
};

void Statement::take(const Event& event, std::string_view line) {
  file_.update(line);
  file_.update("\n");
  head_ = sha256_hex(line);
  ++count_;
  last_kind_ = event.kind;
  if (event.kind == "record.begin") {
    for (const char* name : {"run", "name", "version"}) predicate_[name] = member(event, name);
    predicate_["manifest"] = JsonObject{{"digest", JsonObject{{"sha256", member(event, "manifest_digest")}}}};
    predicate_["began"] = event.time;
    key_ = member(event, "key");
  } else if (event.kind == "run.plan") {
    predicate_["image"] =
        JsonObject{{"name", member(event, "image")}, {"digest", member(event, "image_digest")}};
    predicate_["signer"] = member(event, "signer");
    predicate_["accelerator"] = member(event, "accelerator");
  } else if (event.kind == "cap.hit" && event.vantage == Vantage::kHost) {
    const std::string cap = event.data.string_or("cap", "");
    if (cap_names_.size() < kMostCaps && cap_names_.insert(cap).second) caps_.emplace_back(cap);
  } else if (event.kind == "file.out" && event.vantage == Vantage::kHost) {
    file_out(event);
  } else if (event.kind == "record.end") {
    for (const char* name : {"status", "reason", "complete", "lost", "alarms"})
      predicate_[name] = member(event, name);
    predicate_["ended"] = event.time;
  }
}

void Statement::file_out(const Event& event) {
  if (const std::string commit = event.data.string_or("commit", ""); !commit.empty())
    return subject(member(event, "ref"), "gitCommit", commit);
  const std::string digest = event.data.string_or("digest", "");
  if (!digest.empty()) subject(member(event, "path"), "sha256", digest);
}

void Statement::subject(Json name, const char* algorithm, const std::string& digest) {
  if (subjects_.size() == kMostSubjects) {
    ++left_out_;
    return;
  }
  // A path that is no plain text has no place in a name; its digest is what counts.
  if (!name.as_string()) name = codec::printable(bytes_of(name), 4096);
  subjects_.push_back(JsonObject{{"name", std::move(name)}, {"digest", JsonObject{{algorithm, digest}}}});
}

Result<Json> Statement::done() {
  if (last_kind_ != "record.end")
    return fail("evidence.not_ended", "the record has no record.end, so there is nothing to attest");
  // The record is a subject itself: `sha256sum events.jsonl`.
  subjects_.insert(subjects_.begin(),
                   JsonObject{{"name", "events.jsonl"}, {"digest", JsonObject{{"sha256", file_.hex()}}}});
  predicate_["subjects_left_out"] = left_out_;
  predicate_["caps_hit"] = std::move(caps_);
  predicate_["record"] = JsonObject{{"count", count_}, {"head", head_}, {"key", key_}};
  return Json(JsonObject{{"_type", kStatementType},
                         {"subject", std::move(subjects_)},
                         {"predicateType", kPredicateType},
                         {"predicate", std::move(predicate_)}});
}

}  // namespace

Result<Json> statement_of(const std::string& directory) {
  TRY_ASSIGN(LineReader reader, LineReader::open(join_path(directory, "events.jsonl"), kMostLine));
  Statement statement;
  for (;;) {
    TRY_ASSIGN(const auto got, reader.next());
    if (got == LineReader::Got::kEnd) return statement.done();
    if (got != LineReader::Got::kLine)
      return fail("evidence.bad_event", "line " + std::to_string(reader.number()) + " is no event");
    const auto event = parse_event(reader.line());
    if (!event) return wrap(event.error(), "line " + std::to_string(reader.number()));
    statement.take(*event, reader.line());
  }
}

Result<void> write_attestation(const std::string& directory, const HostKey& key) {
  TRY_ASSIGN(const Json statement, statement_of(directory));
  auto payload = codec::write_canonical_json(statement);
  if (!payload) return fail("evidence.bad_attestation", payload.error().message);
  const std::string path = join_path(directory, kAttestation);
  if (auto written = write_file_atomic(path, sign_envelope(key, kInTotoType, *payload) + "\n"); !written)
    return fail("evidence.write", written.error().message);
  return {};
}

Result<Attested> read_attestation(std::string_view text, const std::vector<PublicKey>& signers) {
  TRY_ASSIGN(const Envelope envelope, parse_envelope(text));
  const PublicKey* key = signer_of(envelope, signers);
  if (!key) {
    const std::string& id = envelope.signatures.front().key_id;
    for (const auto& each : signers)
      if (each.id() == id)
        return fail("evidence.bad_signature", "it names key " + id + ", and that key did not sign it");
    return fail("evidence.unknown_key", "signed by an unknown key " + codec::printable(id, kMostShown),
                "--signers FILE names the keys that you trust, in PEM");
  }
  const auto bad = [](const char* why) { return fail("evidence.bad_attestation", why); };
  if (envelope.type != kInTotoType) return bad("it is signed, and is no in-toto statement");
  auto statement = codec::parse_json(envelope.payload);
  if (!statement) return bad("its statement is no JSON");
  if (statement->string_or("_type", "") != kStatementType ||
      statement->string_or("predicateType", "") != kPredicateType)
    return bad("it is signed, and is no statement about a run");
  const Json* predicate = statement->find("predicate");
  std::string run = predicate ? predicate->string_or("run", "") : "";
  if (run.empty()) return bad("its statement names no run");
  return Attested{.statement = std::move(*statement), .run = std::move(run), .signer = key->id()};
}

Result<void> compare_attestation(const Attested& attested, const std::string& directory) {
  TRY_ASSIGN(const Json recorded, statement_of(directory));
  if (recorded == attested.statement) return {};
  const auto differs = [](const std::string& what) {
    return fail("evidence.other_statement", "the attestation says something else than the record of " + what);
  };
  const Json *said = attested.statement.find("predicate"), *is = recorded.find("predicate");
  for (const auto& [name, value] : *is->as_object()) {
    const Json* other = said->find(name);
    if (!other || !(*other == value)) return differs("its " + name);
  }
  return differs("its subjects");
}

}  // namespace firestop::evidence
