#include "base/digest.h"
#include "manifest/loader.h"
#include "manifest/presets.h"

namespace firestop::manifest {
namespace {

using codec::in_quotes;

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> out;
  for (const auto& preset : all_presets()) out.push_back(preset.name);
  return out;
}

// A credential for all rules of a preset: they bound it by methods and paths, as any rule must.
void give_credential(Loading& loading, const Place& place, size_t first) {
  const auto name = loading.reader.text(place, "the name of a credential");
  if (!name) return;
  loading.credentials_used.emplace_back(place, *name);
  for (size_t at = first; at < loading.manifest.egress.size(); ++at) {
    auto& rule = loading.manifest.egress[at];
    rule.credential = *name;
    if (rule.protocol != "http" || rule.methods.empty() || rule.paths.empty())
      loading.reader.fault(place, "cannot go with a preset that has rules without methods and paths",
                           "expected rules of its own for the credential");
  }
}

// Another word than the preset's own.
void say_placeholders(Loading& loading, const Place& place, size_t first) {
  const std::string word = read_placeholders_in_body(loading.reader, place);
  for (size_t at = first; at < loading.manifest.egress.size(); ++at)
    loading.manifest.egress[at].placeholders_in_body = word;
}

}  // namespace

void load_preset(Loading& loading, const Place& place) {
  constexpr std::string_view kKeys[] = {"preset", "credential", "placeholders_in_body"};
  Reader& reader = loading.reader;
  const Fields fields(reader, place, kKeys, "a rule with preset");
  const auto named = fields.get("preset");
  if (!fields.valid() || !named) return;
  const auto names = preset_names();
  const auto index = reader.word(*named, names);
  if (!index) return;
  const Preset& preset = all_presets()[*index];
  const std::string name(preset.name);
  if (!loading.manifest.presets.emplace(name, sha256_hex(preset.text)).second)
    reader.fault(*named, in_quotes(name) + " is there twice", "expected each preset once");

  const size_t first = loading.manifest.egress.size();
  const auto document = codec::parse_yaml(preset.text);  // a test holds every preset to be right
  const auto* rules = document.root.find("egress");
  for (size_t at = 0; rules && at < rules->value.items.size(); ++at) {
    load_rule(loading, {&rules->value.items[at], codec::item_path(codec::child_path(place.field, name), at)});
    loading.manifest.egress.back().where = place.where();
    loading.manifest.egress.back().preset = name;
  }
  if (const auto credential = fields.get("credential")) give_credential(loading, *credential, first);
  if (const auto word = fields.get("placeholders_in_body")) say_placeholders(loading, *word, first);
}

}  // namespace firestop::manifest
