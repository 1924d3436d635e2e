#include "egress/guard_config.h"
#include "egress/process.h"

namespace firestop::egress {

using codec::Json;

Json to_json(const ProcessConfig& config) {
  return codec::JsonObject{{"guard", to_json(config.guard)},
                           {"upstream_ca", config.upstream_ca},
                           {"connections", config.connections},
                           {"has_sources", config.has_sources}};
}

Result<ProcessConfig> config_of(const Json& json) {
  const auto bad = [](const char* what) {
    return fail("egress.bad_config", std::string("the egress process was given a bad ") + what);
  };
  const Json* guard = json.find("guard");
  const Json* upstream_ca = json.find("upstream_ca");
  const Json* connections = json.find("connections");
  const Json* has_sources = json.find("has_sources");
  if (!guard) return bad("guard");
  if (!upstream_ca || !upstream_ca->as_string()) return bad("upstream_ca");
  if (!connections || !connections->as_int()) return bad("connections");
  if (!has_sources || !has_sources->as_bool()) return bad("has_sources");
  if (*connections->as_int() < 1 || *connections->as_int() > UINT32_MAX) return bad("number of connections");
  ProcessConfig out;
  TRY_ASSIGN(out.guard, guard_parts_from_json(*guard));
  out.upstream_ca = *upstream_ca->as_string();
  out.connections = static_cast<uint32_t>(*connections->as_int());
  out.has_sources = *has_sources->as_bool();
  return out;
}

}  // namespace firestop::egress
