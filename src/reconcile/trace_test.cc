// The readers of agents' traces, on small ones written after the formats' documentation.
#include "reconcile/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/fd.h"
#include "base/file.h"

namespace firestop::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<Trace> read(std::string_view text, TraceFormat format = TraceFormat::kAuto) {
  const UniqueFd fd(::memfd_create("trace", MFD_CLOEXEC));
  EXPECT_TRUE(write_all(fd.get(), text));
  EXPECT_EQ(::lseek(fd.get(), 0, SEEK_SET), 0);
  return read_trace(fd.get(), "trace", format);
}

// Claims as one line each: kind, what, exit, "?" where it is not sure.
std::vector<std::string> claims_of(const Trace& trace) {
  std::vector<std::string> out;
  for (const Claim& claim : trace.claims) {
    std::string line;
    if (claim.kind == Claim::Kind::kWrite) line = "write " + claim.path;
    if (claim.kind == Claim::Kind::kDelete) line = "delete " + claim.path;
    if (claim.kind == Claim::Kind::kCode) line = "code " + claim.command;
    if (claim.kind == Claim::Kind::kCommand) line = "run " + claim.command;
    for (const auto& word : claim.argv) line += " [" + word + "]";
    if (!claim.cwd.empty()) line += " in " + claim.cwd;
    if (claim.exit) line += " = " + std::to_string(*claim.exit);
    out.push_back(line + (claim.sure ? "" : " ?"));
  }
  return out;
}

std::vector<std::string> claims_in(std::string_view text, TraceFormat expected) {
  const auto trace = read(text);
  if (!trace) return {trace.error().to_string()};
  EXPECT_EQ(trace->format, expected);
  const auto again = read(text, expected);
  EXPECT_TRUE(again && claims_of(*again) == claims_of(*trace));
  return claims_of(*trace);
}

TEST(Trace, ClaudeCode) {
  const auto claims = claims_in(
      R"({"type":"summary","summary":"Fix the tests","leafUuid":"1"}
{"type":"user","cwd":"/workspace","message":{"role":"user","content":"fix it"}}
{"type":"assistant","cwd":"/workspace/repo","message":{"role":"assistant","content":[{"type":"text","text":"I run them"},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"make test","description":"tests"}}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"Exit code 2\nfailed","is_error":true}]},"toolUseResult":"Error: Exit code 2"}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_2","name":"Write","input":{"file_path":"/workspace/a.sh","content":"echo hi\n"}},{"type":"tool_use","id":"toolu_3","name":"Edit","input":{"file_path":"b.c","old_string":"a","new_string":"b"}}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"ok"}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_3","content":"String to replace not found","is_error":true}]}}
{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"t4","name":"Bash","input":{"command":"grep x y"}},{"type":"tool_use","id":"t5","name":"Bash","input":{"command":"sleep 9","run_in_background":true}},{"type":"tool_use","id":"t6","name":"Bash","input":{"command":"rm -rf /"}},{"type":"tool_use","id":"t7","name":"Bash","input":{"command":"true"}}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t4","content":""}]},"toolUseResult":{"stdout":"","returnCodeInterpretation":"No matches found"}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t5","content":"running"}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t6","content":[{"type":"text","text":"The user doesn't want to proceed"}],"is_error":true}]}}
{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t7","content":""}]},"toolUseResult":{"stdout":"","interrupted":false}}
)",
      TraceFormat::kClaudeCode);
  EXPECT_THAT(claims,
              ElementsAre("run make test in /workspace/repo = 2", "write /workspace/a.sh", "write b.c ?",
                          "run grep x y", "run sleep 9", "run rm -rf / ?", "run true = 0"));
  EXPECT_EQ(
      read(R"({"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"1",)"
           R"("name":"Write","input":{"file_path":"a","content":"echo hi\n"}}]}})")
          ->claims.at(0)
          .digest,
      sha256_hex("echo hi\n"));
}

TEST(Trace, Codex) {
  const auto claims = claims_in(
      R"({"timestamp":"2026-11-29T20:00:00Z","type":"session_meta","payload":{"id":"1","cwd":"/workspace"}}
{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"make\"],\"workdir\":\"/workspace/a\"}","call_id":"c1"}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"Exit code: 7\",\"metadata\":{\"exit_code\":2,\"duration_seconds\":0.1}}"}}
{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"c2"}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"c2","output":"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nProcess exited with code 0"}}
{"type":"response_item","payload":{"type":"local_shell_call","call_id":"c3","status":"completed","action":{"type":"exec","command":["id"],"working_directory":"/"}}}
{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","call_id":"c4","input":"*** Begin Patch\n*** Add File: n.py\n+print(1)\n+\n*** Update File: o.py\n@@\n-a\n+b\n*** Delete File: p.py\n*** Update File: q.py\n*** Move to: r.py\n*** End Patch"}}
{"type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c4","output":"{\"output\":\"Success\",\"metadata\":{\"exit_code\":0}}"}}
{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"rm\",\"x\"]}","call_id":"c5"}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"c5","output":"rejected by user"}}
{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"apply_patch <<'EOF'\\n*** Begin Patch\\n*** Update File: s.py\\n*** End Patch\\nEOF\"]}","call_id":"c6"}}
)",
      TraceFormat::kCodex);
  EXPECT_THAT(claims, ElementsAre("run  [bash] [-lc] [make] in /workspace/a = 2", "run ls in /workspace = 1",
                                  "run  [id] in /", "write n.py in /workspace", "write o.py in /workspace",
                                  "delete p.py in /workspace", "delete q.py in /workspace",
                                  "write r.py in /workspace", "run  [rm] [x] in /workspace ?",
                                  "write s.py in /workspace ?"));
}

TEST(Trace, CodexExecJson) {
  EXPECT_THAT(claims_in(R"({"type":"thread.started","thread_id":"1"}
{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"bash -lc ls","status":"in_progress"}}
{"type":"item.completed","item":{"id":"i1","type":"command_execution","command":"bash -lc ls","aggregated_output":"","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"i2","type":"file_change","changes":[{"path":"/workspace/a","kind":"add"},{"path":"/workspace/b","kind":"delete"}],"status":"completed"}}
)",
                        TraceFormat::kCodex),
              ElementsAre("run bash -lc ls = 0", "write /workspace/a", "delete /workspace/b"));
}

TEST(Trace, OpenAiAgents) {
  const std::string spans =
      R"({"object":"trace","id":"trace_1","workflow_name":"fix"},
{"object":"trace.span","id":"span_1","trace_id":"trace_1","span_data":{"type":"agent","name":"fixer"},"error":null},
{"object":"trace.span","id":"span_2","span_data":{"type":"function","name":"exec_command","input":"{\"cmd\":\"make test\",\"workdir\":\"/workspace\"}","output":"Process exited with code 0\nOutput:\nok"},"error":null},
{"object":"trace.span","id":"span_3","span_data":{"type":"function","name":"shell","input":"{\"action\":{\"commands\":[\"id\"]}}","output":"[{\"stdout\":\"\",\"outcome\":{\"type\":\"exit\",\"exit_code\":3}}]"},"error":null},
{"object":"trace.span","id":"span_4","span_data":{"type":"function","name":"apply_patch","input":"{\"operation\":{\"type\":\"create_file\",\"path\":\"a.py\",\"diff\":\"+1\"}}","output":"done"},"error":null},
{"object":"trace.span","id":"span_5","span_data":{"type":"function","name":"exec_command","input":"{\"cmd\":\"rm x\"}","output":null},"error":{"message":"refused","data":null}})";
  const auto expected =
      ElementsAre("run make test in /workspace = 0", "run id = 3", "write a.py", "run rm x ?");
  EXPECT_THAT(claims_in("{\"data\":[\n" + spans + "]}", TraceFormat::kOpenAiAgents), expected);
  EXPECT_THAT(claims_in("[" + spans + "]", TraceFormat::kOpenAiAgents), expected);
  std::string lines = spans;
  for (size_t at; (at = lines.find("},\n{\"object")) != std::string::npos;) lines.erase(at + 1, 1);
  EXPECT_THAT(claims_in(lines, TraceFormat::kOpenAiAgents), expected);
}

TEST(Trace, Otel) {
  const std::string span =
      R"({"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":[
{"name":"execute_tool Bash","spanId":"s1","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},
 {"key":"gen_ai.tool.name","value":{"stringValue":"Bash"}},{"key":"gen_ai.tool.call.id","value":{"stringValue":"1"}},
 {"key":"gen_ai.tool.call.arguments","value":{"stringValue":"{\"command\":\"make\"}"}},
 {"key":"gen_ai.tool.call.result","value":{"stringValue":"{\"exit_code\":2}"}}]},
{"name":"execute_tool write_file","spanId":"s2","attributes":[{"key":"gen_ai.tool.name","value":{"stringValue":"write_file"}},
 {"key":"gen_ai.tool.call.arguments","value":{"kvlistValue":{"values":[{"key":"path","value":{"stringValue":"a"}},{"key":"content","value":{"stringValue":"x"}}]}}}]},
{"name":"run","spanId":"s3","attributes":[{"key":"process.command_args","value":{"arrayValue":{"values":[{"stringValue":"ls"},{"stringValue":"-l"}]}}},{"key":"process.exit.code","value":{"intValue":"0"}}]}
]}]}]})";
  EXPECT_THAT(claims_in(span, TraceFormat::kOtel),
              ElementsAre("run make = 2", "write a", "run  [ls] [-l] = 0"));
  EXPECT_THAT(
      claims_in(
          R"({"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[{"key":"gen_ai.tool.name","value":{"stringValue":"shell"}},{"key":"gen_ai.tool.call.arguments","value":{"stringValue":"{\"command\":[\"id\"]}"}}]}]}]}]})",
          TraceFormat::kOtel),
      ElementsAre("run  [id]"));
}

TEST(Trace, Jsonl) {
  EXPECT_THAT(claims_in(R"({"command": "make test", "exit": 0, "cwd": "repo"}

{"command": ["ls", "-l"]}
{"write": "a", "sha256": "00"}
{"delete": "b"}
)",
                        TraceFormat::kJsonl),
              ElementsAre("run make test in repo = 0", "run  [ls] [-l]", "write a", "delete b"));
}

TEST(Trace, WhatIsNoTrace) {
  EXPECT_EQ(read("").error().code, "trace.unknown");
  EXPECT_EQ(read("hello\n").error().code, "trace.unknown");
  EXPECT_EQ(read("{\"a\": 1}\n").error().code, "trace.unknown");
  EXPECT_EQ(read("{\"command\": \"x\"}\n", TraceFormat::kCodex).error().code, "trace.unknown");
  EXPECT_EQ(read_trace("/nowhere", TraceFormat::kAuto).error().code, "trace.unreadable");
  const auto silent = read("", TraceFormat::kCodex);  // an agent that says nothing
  ASSERT_TRUE(silent);
  EXPECT_THAT(silent->claims, IsEmpty());
}

TEST(Trace, HostileLinesAreCounted) {
  std::string deep = "{\"command\": \"x\", \"y\": ";
  for (int i = 0; i < 100; ++i) deep += "[";
  const auto trace = read("{\"command\": \"true\"}\n" + deep + "\n{\"command\": \"tr\n\xff\xfe\n" +
                          std::string(kMostTraceLine + 1, 'x') + "\n{\"command\": \"false\"}");
  ASSERT_TRUE(trace) << trace.error().to_string();
  EXPECT_THAT(claims_of(*trace), ElementsAre("run true", "run false"));
  EXPECT_EQ(trace->unread, 4u);
  EXPECT_EQ(trace->claims.back().line, 6u);
}

TEST(Trace, MoreThanIsReadIsSaid) {
  std::string many;
  for (size_t i = 0; i < kMostClaims + 5; ++i) many += "{\"delete\":\"a\"}\n";
  const auto trace = read(many);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->claims.size(), kMostClaims);
  EXPECT_THAT(trace->note, HasSubstr("more is claimed"));
  // Sparse: larger than what is read, and nothing on the disk.
  const UniqueFd fd(::memfd_create("trace", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(kMostTrace + 1)), 0);
  EXPECT_EQ(read_trace(fd.get(), "trace", TraceFormat::kAuto).error().code, "trace.too_large");
}

}  // namespace
}  // namespace firestop::reconcile
