// What ran that nobody had read, as JSON and as files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/record_view.h"
#include "codec/json.h"
#include "story/script_list.h"

namespace firestop::cli {

codec::Json script_json(const story::Story& story, const story::UnreadScript& script);

struct ExportedScripts {
  uint64_t files = 0, without_bytes = 0;
};
// Each content as `directory`/<SHA-256>, 0600, and index.json. The directory may exist, what it has by these
// names stays if it has the same bytes; links in their place are never followed. "export.*", "evidence.*".
Result<ExportedScripts> export_scripts(const ReadRecord& record,
                                       const std::vector<story::UnreadScript>& scripts,
                                       const std::string& directory);

}  // namespace firestop::cli
