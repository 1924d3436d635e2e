#include "egress/process.h"

namespace firestop::egress {

using codec::Json;
using codec::JsonArray;
using codec::JsonObject;

Json to_json(const ProcessConfig& config) {
  JsonArray mappings;
  for (const auto& each : config.connect_to)
    mappings.push_back(JsonObject{{"host", each.host}, {"port", each.port}, {"to", each.to}});
  return JsonObject{{"manifest_file", config.manifest_file},
                    {"manifest_text", config.manifest_text},
                    {"connect_to", std::move(mappings)},
                    {"upstream_ca", config.upstream_ca},
                    {"placeholders", config.placeholders}};
}

Result<ProcessConfig> config_of(const Json& json) {
  const auto bad = [](const char* what) {
    return fail("egress.config", std::string("the egress process was given a bad ") + what);
  };
  if (!json.as_object()) return bad("configuration");
  ProcessConfig out;
  for (const auto& [name, field] : {std::pair{"manifest_file", &ProcessConfig::manifest_file},
                                    std::pair{"manifest_text", &ProcessConfig::manifest_text},
                                    std::pair{"upstream_ca", &ProcessConfig::upstream_ca}}) {
    const Json* member = json.find(name);
    if (!member || !member->as_string()) return bad(name);
    out.*field = *member->as_string();
  }
  const Json* mappings = json.find("connect_to");
  if (!mappings || !mappings->as_array()) return bad("connect_to");
  for (const Json& each : *mappings->as_array()) {
    const int64_t port = each.int_or("port", 0);
    ProcessConfig::ConnectTo mapping{each.string_or("host", ""), 0, each.string_or("to", "")};
    if (port < 1 || port > UINT16_MAX || mapping.host.empty() || mapping.to.empty()) return bad("connect_to");
    mapping.port = static_cast<uint16_t>(port);
    out.connect_to.push_back(std::move(mapping));
  }
  const Json* placeholders = json.find("placeholders");
  if (!placeholders || !placeholders->as_array()) return bad("placeholders");
  out.placeholders = *placeholders;
  return out;
}

}  // namespace firestop::egress
