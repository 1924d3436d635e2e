// The parts of the loader, one a section of the document. Each reports its faults to the reader and fills
// its part of the manifest with what was right.
#pragma once

#include "base/fd.h"
#include "manifest/manifest.h"
#include "manifest/openai.h"
#include "manifest/reader.h"

namespace firestop::manifest {

struct Loading {
  Reader& reader;
  Manifest& manifest;
  UniqueFd folder;  // O_PATH; not valid if the folder can't be opened, and then links are not looked at
  // Where the values stand that are checked once everything is known.
  std::vector<std::pair<Place, std::string>> accounts;  // names that must be declared: users
  std::vector<std::pair<Place, std::string>> groups;    // and groups
  std::vector<std::pair<Place, std::string>> credentials_used;
};

// A document that was read already, of which `text` is shown beside faults.
Loaded load_document(const std::string& file, std::string_view text, codec::YamlDocument document,
                     LeftOut& left_out);
void load_workspace(Loading& loading, const Place& place);
void load_entries(Loading& loading, const Place& place);
// After the capabilities. `document` has the keys of the whole.
void load_skills(Loading& loading, const Fields& document);
// A path below the manifest's folder. Links are followed as opening would, and must not lead out. `instead`
// completes what is expected.
std::optional<std::string> load_source_path(Loading& loading, const Place& place, std::string_view instead);
Source load_source(Loading& loading, const Place& place);          // {bind: NAME} or {path: PATH}
Source load_local_source(Loading& loading, const Fields& fields);  // src: PATH, or source
void load_limits(Loading& loading, const Place& place);
void load_egress(Loading& loading, const Place& place);
// One item of egress: a rule, or a preset's.
void load_rule(Loading& loading, const Place& place);
std::string read_placeholders_in_body(Reader& reader, const Place& place);  // "" for none
void load_preset(Loading& loading, const Place& place);
void load_credentials(Loading& loading, const Place& place);

}  // namespace firestop::manifest
