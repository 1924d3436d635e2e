// How a command tells that it failed: two lines for people on stderr, or with --json one object on stdout,
// {"error":{"code","message","hint","status"}} (with Context::json_lines, one line on stderr that has it).
// And the exit status that an error's code stands for.
#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "cli/command.h"
#include "codec/json.h"
#include "sandbox/run_store.h"

namespace firestop::cli {

// 240 for "usage.*", "manifest.*", "init.*" and names of runs or images that are wrong; 241 for
// "signature.*"; 242 for anything else, since commands other than `run` do nothing half.
ExitStatus status_of(const Error& error);

codec::Json error_json(const Error& error, ExitStatus status);
// The number of `status`, for a handler to return.
int report(Context& context, const Error& error, ExitStatus status);
int report(Context& context, const Error& error);  // with status_of

// The document that a command prints with --json.
void print_json(Context& context, const codec::Json& json);
codec::Json diagnostics_json(const std::vector<Diagnostic>& faults);
// Every fault with its line and caret on stderr, and how many there are.
void print_faults(Context& context, const std::vector<Diagnostic>& faults, std::string_view text);

// RunStore::sweep(), told in one line if anything was swept. A sweep that fails is a note, too: what the
// user asked for goes on.
void sweep(Context& context, sandbox::RunStore& store);

std::string age_of(int64_t then_ms, int64_t now_ms);  // "12s", "5m", "3h", "2d"; "-" without a time
int64_t now_ms();

}  // namespace firestop::cli
