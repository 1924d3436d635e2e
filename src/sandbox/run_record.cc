// run.json: the record as a document with a version, so that an older program sees what it can't read.
#include <limits>

#include "sandbox/run_store.h"

namespace firestop::sandbox {
namespace {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;

constexpr int64_t kVersion = 1;
constexpr RunState kStates[] = {RunState::kPreparing, RunState::kRunning, RunState::kEnded, RunState::kDied};

Unexpected bad(std::string_view what) {
  return fail("run.bad_record", "run.json: " + std::string(what));
}

uint32_t small(const Json& json, std::string_view key) {
  const int64_t value = json.int_or(key, 0);
  return value < 0 || value > std::numeric_limits<uint32_t>::max() ? 0 : static_cast<uint32_t>(value);
}

Json branch_json(const RunRecord::Branch& branch) {
  return JsonObject{
      {"entry", branch.entry},   {"repository", branch.repository},   {"ref", branch.ref},
      {"commit", branch.commit}, {"new_commits", branch.new_commits}, {"uncommitted", branch.uncommitted}};
}

RunRecord::Branch branch_of(const Json& json) {
  return {json.string_or("entry", ""),  json.string_or("repository", ""), json.string_or("ref", ""),
          json.string_or("commit", ""), small(json, "new_commits"),       json.bool_or("uncommitted", false)};
}

// Null when there was none.
Json network_json(const RunRecord::Network& network) {
  if (!network.used) return {};
  return JsonObject{{"allowed", network.allowed},
                    {"denied", network.denied},
                    {"failed", network.failed},
                    {"alarms", network.alarms},
                    {"lost", network.lost},
                    {"bytes", network.bytes},
                    {"landlock", network.landlock},
                    {"connect_to", JsonArray(network.connect_to.begin(), network.connect_to.end())},
                    {"upstream_ca", network.upstream_ca}};
}

RunRecord::Network network_of(const Json& json) {
  RunRecord::Network out;
  out.used = json.as_object() != nullptr;
  const auto count = [&json](const char* key) {
    return static_cast<uint64_t>(std::max<int64_t>(0, json.int_or(key, 0)));
  };
  out.allowed = count("allowed");
  out.denied = count("denied");
  out.failed = count("failed");
  out.alarms = count("alarms");
  out.lost = count("lost");
  out.bytes = count("bytes");
  out.landlock = json.bool_or("landlock", false);
  if (const Json* given = json.find("connect_to"); given && given->as_array())
    for (const Json& each : *given->as_array())
      if (each.as_string()) out.connect_to.push_back(*each.as_string());
  out.upstream_ca = json.string_or("upstream_ca", "");
  return out;
}

Json cap_json(const KeptCap& cap) {
  JsonArray by;
  for (const auto& keeper : cap.by) by.push_back(keeper);
  return JsonObject{{"cap", cap.cap}, {"limit", cap.limit}, {"by", std::move(by)}};
}

KeptCap cap_of(const Json& json) {
  KeptCap cap{json.string_or("cap", ""), json.string_or("limit", ""), {}};
  const Json* by = json.find("by");
  if (const JsonArray* keepers = by ? by->as_array() : nullptr)
    for (const Json& keeper : *keepers)
      if (keeper.as_string()) cap.by.push_back(*keeper.as_string());
  return cap;
}

Json memory_json(const RunRecord::Memory& memory) {
  if (memory.name.empty()) return {};
  return JsonObject{{"name", memory.name},
                    {"kept", memory.kept},
                    {"files", memory.files},
                    {"bytes", memory.bytes},
                    {"message", memory.message}};
}

RunRecord::Memory memory_of(const Json& json) {
  return {json.string_or("name", ""), json.bool_or("kept", false), small(json, "files"),
          static_cast<uint64_t>(std::max<int64_t>(0, json.int_or("bytes", 0))),
          json.string_or("message", "")};
}

}  // namespace

const char* to_string(RunState state) {
  switch (state) {
    case RunState::kPreparing:
      return "preparing";
    case RunState::kRunning:
      return "running";
    case RunState::kEnded:
      return "ended";
    case RunState::kDied:
      return "died";
  }
  return "?";
}

Json RunRecord::to_json() const {
  JsonArray words, came_back, refused, kept, steps;
  for (const auto& cap : caps) kept.push_back(cap_json(cap));
  for (const auto& word : command) words.push_back(word);
  for (const auto& branch : branches) came_back.push_back(branch_json(branch));
  for (const auto& each : denied)
    refused.push_back(JsonObject{{"kind", each.kind}, {"path", each.path}, {"count", each.count}});
  for (const auto& [step, us] : steps_us) steps.push_back(JsonObject{{"step", step}, {"us", us}});
  return JsonObject{
      {"version", kVersion},
      {"id", id},
      {"name", name},
      {"manifest", JsonObject{{"file", manifest_file}, {"name", manifest_name}, {"sha256", manifest_digest}}},
      {"signer", signer.empty() ? Json() : Json(JsonObject{{"principal", signer}, {"key", signer_key}})},
      {"image", JsonObject{{"name", image}, {"digest", image_digest}}},
      {"accelerator", accelerator},
      {"command", std::move(words)},
      {"created_ms", created_ms},
      {"started_ms", started_ms},
      {"ended_ms", ended_ms},
      {"state", to_string(state)},
      {"exit_status", exit_status ? Json(*exit_status) : Json()},
      {"reason", reason},
      {"message", message},
      {"branches", std::move(came_back)},
      {"outputs",
       JsonObject{{"directory", outputs_directory}, {"files", output_files}, {"bytes", output_bytes}}},
      {"memory", memory_json(memory)},
      {"denied", std::move(refused)},
      {"network", network_json(network)},
      {"caps", std::move(kept)},
      {"caps_note", caps_note},
      {"steps", std::move(steps)}};
}

Result<RunRecord> RunRecord::from_json(const Json& json) {
  const Json* version = json.find("version");
  if (!version || !version->as_int()) return bad("no version");
  if (*version->as_int() > kVersion)
    return fail(
        "run.newer_version",
        "run.json has version " + std::to_string(*version->as_int()) + ", written by a newer firestop",
        "use that firestop for this run");
  RunRecord record;
  record.id = json.string_or("id", "");
  if (!RunStore::valid_id(record.id)) return bad("no valid id");
  const std::string state = json.string_or("state", "");
  bool known = false;
  for (const RunState each : kStates)
    if (state == to_string(each)) record.state = each, known = true;
  if (!known) return bad("no valid state");
  record.name = json.string_or("name", "");
  static const Json kNothing;
  const auto part = [&](std::string_view key) -> const Json& {
    const Json* found = json.find(key);
    return found ? *found : kNothing;
  };
  record.manifest_file = part("manifest").string_or("file", "");
  record.manifest_name = part("manifest").string_or("name", "");
  record.manifest_digest = part("manifest").string_or("sha256", "");
  record.signer = part("signer").string_or("principal", "");
  record.signer_key = part("signer").string_or("key", "");
  record.image = part("image").string_or("name", "");
  record.image_digest = part("image").string_or("digest", "");
  record.accelerator = json.string_or("accelerator", "");
  record.created_ms = json.int_or("created_ms", 0);
  record.started_ms = json.int_or("started_ms", 0);
  record.ended_ms = json.int_or("ended_ms", 0);
  if (const int64_t* status = part("exit_status").as_int()) {
    if (*status < 0 || *status > 255) return bad("exit_status is out of range");
    record.exit_status = static_cast<int>(*status);
  }
  record.reason = json.string_or("reason", "");
  record.message = json.string_or("message", "");
  if (const JsonArray* words = part("command").as_array())
    for (const Json& word : *words) {
      if (!word.as_string()) return bad("command has something that is no string");
      record.command.push_back(*word.as_string());
    }
  if (const JsonArray* branches = part("branches").as_array())
    for (const Json& branch : *branches) record.branches.push_back(branch_of(branch));
  record.outputs_directory = part("outputs").string_or("directory", "");
  record.output_files = small(part("outputs"), "files");
  record.output_bytes = static_cast<uint64_t>(std::max<int64_t>(0, part("outputs").int_or("bytes", 0)));
  record.memory = memory_of(part("memory"));
  if (const JsonArray* refused = part("denied").as_array())
    for (const Json& each : *refused)
      record.denied.push_back(
          {each.string_or("kind", ""), each.string_or("path", ""), each.int_or("count", 0)});
  record.network = network_of(part("network"));
  if (const JsonArray* kept = part("caps").as_array())
    for (const Json& each : *kept) record.caps.push_back(cap_of(each));
  record.caps_note = json.string_or("caps_note", "");
  if (const JsonArray* steps = part("steps").as_array())
    for (const Json& step : *steps)
      record.steps_us.emplace_back(step.string_or("step", ""), step.int_or("us", 0));
  return record;
}

}  // namespace firestop::sandbox
