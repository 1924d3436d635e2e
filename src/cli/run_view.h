// How a run looks, in a table, on a page and as JSON.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "codec/json.h"
#include "sandbox/run_store.h"

namespace firestop::cli {

// run.json with "alive", "directory" and "note" (why the record can't be read, else "").
codec::Json run_json(const sandbox::RunStore& store, const sandbox::RunStore::Listed& run);
// What keeps a cap, for people; "nothing" if nothing does.
std::string keepers_text(const sandbox::KeptCap& cap);
std::string state_word(const sandbox::RunStore::Listed& run);  // "unreadable" if its record is
Style state_style(const sandbox::RunStore::Listed& run);

}  // namespace firestop::cli
