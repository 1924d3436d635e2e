#include "workspace/bundle_header.h"

#include "workspace/git.h"

namespace firestop::workspace {
namespace {

Unexpected bad(const std::string& why) {
  return fail("import.bad_bundle", "the bundle's header: " + why);
}

}  // namespace

Result<BundleHeader> parse_bundle_header(std::string_view text) {
  BundleHeader header;
  header.object_format = "sha1";
  std::string_view rest = text;
  const auto line = [&]() -> Result<std::string_view> {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos)
      return bad("it does not end within " + std::to_string(text.size()) + " bytes");
    const std::string_view found = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return found;
  };
  TRY_ASSIGN(std::string_view current, line());
  if (current != "# v2 git bundle" && current != "# v3 git bundle") return bad("unknown signature");
  const bool v3 = current == "# v3 git bundle";
  TRY_ASSIGN(current, line());
  bool format_seen = false;
  while (v3 && !current.empty() && current.front() == '@') {
    const bool sha256 = current == "@object-format=sha256";
    if ((!sha256 && current != "@object-format=sha1") || format_seen)
      return bad("an unknown or repeated capability");
    format_seen = true;
    if (sha256) header.object_format = "sha256";
    TRY_ASSIGN(current, line());
  }
  const size_t digits = header.object_format == "sha256" ? 64 : 40;
  for (; !current.empty(); current = *line()) {
    const bool prerequisite = current.front() == '-';
    if (prerequisite) current.remove_prefix(1);
    if (!is_object_id(current.substr(0, digits), header.object_format))
      return bad("no object id where one must be");
    const std::string id(current.substr(0, digits));
    current.remove_prefix(digits);
    if (prerequisite) {
      if (!current.empty() && current.front() != ' ') return bad("no space after an object id");
      if (!header.tip.empty()) return bad("a prerequisite after a reference");
      header.prerequisites.push_back(id);
    } else {
      if (current.size() < 2 || current.front() != ' ') return bad("a reference without a name");
      if (!header.tip.empty()) return bad("more than one reference");
      header.tip = id;
      header.ref = std::string(current.substr(1));
    }
    if (rest.find('\n') == std::string_view::npos) return bad("it does not end");
  }
  if (header.tip.empty()) return bad("no reference");
  header.bytes = text.size() - rest.size();
  return header;
}

}  // namespace firestop::workspace
