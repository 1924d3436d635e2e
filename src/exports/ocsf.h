// A record as events of the Open Cybersecurity Schema Framework, version 1.6.0 (https://schema.ocsf.io), one
// JSON object a line: Process Activity (1007), File System Activity (1001), Network Activity (4001), HTTP
// Activity (4002), DNS Activity (4003). What has no class of these is a Base Event (0), so that no event is
// left out. The record's own event is in `unmapped`.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "codec/json.h"
#include "story/record_events.h"

namespace firestop::exports {

inline constexpr char kOcsfVersion[] = "1.6.0";

codec::Json to_ocsf(const evidence::Event& event, const story::RecordContext& context);
// Of the record in `directory`; each line with its newline.
Result<void> export_ocsf(const std::string& directory,
                         const std::function<Result<void>(const std::string&)>& sink);

}  // namespace firestop::exports
