// What a tool call claims, whichever agent made it: by the tool's name and by the names of its arguments, as
// the agents' own documentation has them (docs/reconcile.md).
#include <algorithm>
#include <array>
#include <charconv>

#include "base/digest.h"
#include "reconcile/trace_reader.h"
#include "story/shell_words.h"

namespace firestop::reconcile {
namespace {

using codec::Json;
using codec::JsonArray;

// "mcp__files__write_file" and "functions.shell" are "write_file" and "shell".
std::string bare_tool(std::string_view tool) {
  for (const std::string_view mark : {"__", ".", "/", ":"})
    if (const size_t at = tool.rfind(mark); at != std::string_view::npos)
      tool.remove_prefix(at + mark.size());
  std::string out(tool.substr(0, 128));
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

const std::string* text_of(const Json& json, std::initializer_list<std::string_view> keys) {
  for (const auto key : keys)
    if (const Json* found = json.find(key); found && found->as_string()) return found->as_string();
  return nullptr;
}

bool is_file_tool(std::string_view tool) {
  constexpr std::array<std::string_view, 15> kTools = {
      "write",        "edit",        "multiedit",   "notebookedit",
      "write_file",   "edit_file",   "create_file", "str_replace_editor",
      "save_file",    "str_replace", "insert",      "str_replace_based_edit_tool",
      "replace_file", "append_file", "update_file"};
  return std::find(kTools.begin(), kTools.end(), tool) != kTools.end();
}

bool is_code_tool(std::string_view tool) {
  constexpr std::array<std::string_view, 6> kTools = {"python",     "code_interpreter", "ipython",
                                                      "run_python", "execute_code",     "javascript"};
  return std::find(kTools.begin(), kTools.end(), tool) != kTools.end();
}

bool words_of(const Json& json, std::vector<std::string>& out) {
  const JsonArray* array = json.as_array();
  if (!array || array->empty()) return false;
  for (const Json& word : *array) {
    if (!word.as_string()) return false;
    out.push_back(*word.as_string());
  }
  return true;
}

bool is_patch_program(std::string_view word) {
  return word == "apply_patch" || word == "applypatch";
}

std::optional<int> number_after(std::string_view line, std::string_view words) {
  const size_t at = line.find(words);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + words.size());
  int value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc() || value < -255 || value > 255) return {};
  return value;
}

std::optional<int> exit_of_text(std::string_view text) {
  constexpr int kHeadLines = 6;
  for (int i = 0; i < kHeadLines && !text.empty(); ++i) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line == "Output:" || line.starts_with("Output:")) return {};
    for (const std::string_view words : {"Exit code: ", "Exit code ", "Process exited with code ",
                                         "exit_code: ", "exit code: ", "exited with code "})
      if (line.starts_with(words) || line.starts_with("Error: " + std::string(words)))
        return number_after(line, words);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return {};
}

}  // namespace

const Json& member(const Json& json, std::string_view key) {
  static const Json kNothing;
  const Json* found = json.find(key);
  return found ? *found : kNothing;
}

std::optional<int> exit_of_answer(const Json& answer) {
  constexpr std::array<std::string_view, 6> kMembers = {"exit_code",   "exitCode",    "returncode",
                                                        "return_code", "exit_status", "exit"};
  for (const auto name : kMembers)
    if (const int64_t* value = member(answer, name).as_int(); value && *value >= -255 && *value <= 255)
      return static_cast<int>(*value);
  for (const std::string_view inner : {"metadata", "outcome", "result"})
    if (member(answer, inner).as_object())
      if (const auto exit = exit_of_answer(member(answer, inner))) return exit;
  if (const JsonArray* all = answer.as_array(); all && all->size() == 1) return exit_of_answer(all->front());
  if (const std::string* text = answer.as_string()) {
    if (text->starts_with('{') || text->starts_with("[{"))
      if (const auto json = codec::parse_json(*text); json && !json->as_string())
        return exit_of_answer(*json);
    return exit_of_text(*text);
  }
  if (const std::string* text = member(answer, "text").as_string()) return exit_of_text(*text);
  return {};
}

void ClaimBook::add(Claim claim, std::string_view id) {
  uint64_t size = claim.command.size() + claim.path.size();
  for (const auto& word : claim.argv) size += word.size();
  if (trace_.claims.size() >= kMostClaims || bytes_ + size > kMostClaimedBytes) {
    trace_.note = "more is claimed than is read: " + std::to_string(kMostClaims) + " calls, " +
                  std::to_string(kMostClaimedBytes >> 20) + " MiB of commands";
    return;
  }
  bytes_ += size;
  claim.line = line_;
  // An id that comes again and again would make each answer as long as the trace.
  constexpr size_t kMostOfOneCall = 256;
  if (auto* same = id.empty() ? nullptr : &calls_[std::string(id)]; same && same->size() < kMostOfOneCall)
    same->push_back(trace_.claims.size());
  trace_.claims.push_back(std::move(claim));
}

void ClaimBook::call(std::string_view id, std::string_view tool, const Json& given, std::string_view cwd,
                     Answered answered) {
  Claim base{.kind = Claim::Kind::kCommand, .tool = std::string(tool.substr(0, 128))};
  base.cwd = cwd;
  base.sure = answered == Answered::kYes;
  Json arguments = given;
  if (const std::string* text = given.as_string()) {
    auto json = codec::parse_json(*text);
    if (json && json->as_object())
      arguments = std::move(*json);
    else if (text->find("*** Begin Patch") != std::string::npos)
      return patch(base, *text, id);
  }
  const std::string bare = bare_tool(tool);
  if (const auto* where = text_of(arguments, {"workdir", "working_directory", "cwd", "workingDirectory"}))
    base.cwd = *where;
  if (bare == "apply_patch") {
    if (operation(base, arguments, id)) return;
    if (const auto* text = text_of(arguments, {"input", "patch"})) return patch(base, *text, id);
    return;
  }
  if (is_file_tool(bare) && file(base, arguments, id)) return;
  if (is_code_tool(bare)) {
    if (const auto* text = text_of(arguments, {"code", "input", "script"})) {
      base.kind = Claim::Kind::kCode;
      base.command = *text;
      base.digest = sha256_hex(*text);
      add(std::move(base), id);
    }
    return;
  }
  (void)commands(base, arguments, id);
}

bool ClaimBook::commands(const Claim& base, const Json& arguments, std::string_view id) {
  if (member(arguments, "action").as_object()) return commands(base, member(arguments, "action"), id);
  if (const JsonArray* list = member(arguments, "commands").as_array()) {  // the Responses API's shell tool
    for (const Json& each : *list)
      if (each.as_string()) {
        Claim claim = base;
        claim.command = *each.as_string();
        // One answer has the exits of all of them, so none has an id of its own.
        add(std::move(claim), list->size() == 1 ? id : std::string_view());
      }
    return true;
  }
  Claim claim = base;
  for (const std::string_view key : {"command", "cmd"}) {
    const Json& value = member(arguments, key);
    if (value.as_string()) {
      claim.command = *value.as_string();
    } else if (std::vector<std::string> words; words_of(value, words)) {
      if (is_patch_program(words[0]) && words.size() > 1) return patch(base, words[1], id), true;
      claim.argv = std::move(words);
    } else {
      continue;
    }
    // Agents take such a command for a call of their own tool and start no process.
    std::string_view text = claim.command;
    if (const std::string* inner = story::shell_text_of(claim.argv)) text = *inner;
    if (const size_t begin = text.find("*** Begin Patch"); begin != std::string_view::npos)
      if (const auto shell = story::read_shell(text);
          !shell.commands.empty() && is_patch_program(shell.commands.back().words[0].text))
        return patch(base, text.substr(begin), id), true;
    add(std::move(claim), id);
    return true;
  }
  return false;
}

bool ClaimBook::file(const Claim& base, const Json& arguments, std::string_view id) {
  const auto* path = text_of(arguments, {"file_path", "path", "filePath", "notebook_path", "filename"});
  if (!path) return false;
  if (const auto* verb = text_of(arguments, {"command"}); verb && (*verb == "view" || *verb == "read"))
    return true;  // it only looks
  Claim claim = base;
  claim.kind = Claim::Kind::kWrite;
  claim.path = *path;
  if (const auto* content = text_of(arguments, {"content", "file_text", "contents"}))
    claim.digest = sha256_hex(*content);
  add(std::move(claim), id);
  return true;
}

// {"operation": {"type": "create_file", "path": ..., "diff": ...}}
bool ClaimBook::operation(const Claim& base, const Json& arguments, std::string_view id) {
  const Json& operation =
      member(arguments, "operation").as_object() ? member(arguments, "operation") : arguments;
  const auto* path = text_of(operation, {"path"});
  const auto* type = text_of(operation, {"type"});
  if (!path || !type) return false;
  Claim claim = base;
  claim.kind = *type == "delete_file" ? Claim::Kind::kDelete : Claim::Kind::kWrite;
  claim.path = *path;
  add(std::move(claim), id);
  return true;
}

// "*** Add File: PATH" with lines "+...", "*** Update File: PATH", "*** Move to: PATH", "*** Delete File:
// PATH". Of an added file the whole bytes are there.
void ClaimBook::patch(const Claim& base, std::string_view text, std::string_view id) {
  Claim claim = base;
  std::string added;
  bool whole = false, open = false;
  const auto finish = [&] {
    if (open && whole) claim.digest = sha256_hex(added);
    if (open) add(claim, id);
    claim = base;
    added.clear();
    whole = open = false;
  };
  const auto begin = [&](std::string_view line, std::string_view words, Claim::Kind kind) {
    if (!line.starts_with(words)) return false;
    finish();
    open = true;
    claim.kind = kind;
    claim.path = line.substr(words.size());
    return true;
  };
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (begin(line, "*** Add File: ", Claim::Kind::kWrite)) {
      whole = true;
    } else if (begin(line, "*** Update File: ", Claim::Kind::kWrite) ||
               begin(line, "*** Delete File: ", Claim::Kind::kDelete)) {
    } else if (line.starts_with("*** Move to: ") && open) {
      Claim gone = claim;
      gone.kind = Claim::Kind::kDelete;
      add(std::move(gone), id);
      claim.path = line.substr(13);
    } else if (line.starts_with("*** End Patch")) {
      break;
    } else if (whole && line.starts_with('+')) {
      added.append(line.substr(1)).append("\n");
    }
  }
  finish();
}

void ClaimBook::answer(std::string_view id, const Answer& answer) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  for (const size_t each : found->second) {
    Claim& claim = trace_.claims[each];
    claim.sure = answer.done;
    if (claim.kind == Claim::Kind::kCommand && answer.exit) claim.exit = answer.exit;
  }
}

}  // namespace firestop::reconcile
