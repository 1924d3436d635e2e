#include <fcntl.h>

#include <cerrno>

#include "base/path.h"
#include "manifest/loader.h"
#include "manifest/rules.h"

namespace firestop::manifest {

using codec::in_quotes;

std::optional<std::string> load_source_path(Loading& loading, const Place& place, std::string_view instead) {
  Reader& reader = loading.reader;
  const auto path = reader.text(place, "a path below the manifest's folder");
  if (!path) return std::nullopt;
  const std::string expected = "expected a path below the manifest's folder" + std::string(instead);
  if (const auto why = why_not_relative_path(*path); !why.empty()) {
    reader.fault(place, in_quotes(*path) + ": " + std::string(why), expected);
    return std::nullopt;
  }
  if (!loading.folder.valid()) return path;
  const auto found = open_beneath(loading.folder.get(), *path, O_PATH);
  if (!found && found.error().sys_errno == EXDEV) {
    reader.fault(place, in_quotes(*path) + " leads out of the manifest's folder through a symbolic link",
                 expected);
    return std::nullopt;
  }
  if (!found && found.error().sys_errno == ELOOP) {
    reader.fault(place, in_quotes(*path) + " is a loop of symbolic links", expected);
    return std::nullopt;
  }
  return path;
}

Source load_source(Loading& loading, const Place& place) {
  constexpr std::string_view kExpected = "{bind: NAME} or {path: PATH}";
  Reader& reader = loading.reader;
  const Fields fields(reader, place, kSourceKeys, "source");
  if (!fields.valid()) return {};
  const auto path = fields.get("path"), bind = fields.get("bind");
  if (!path == !bind) {
    reader.fault(place, path ? "has both path and bind" : "has neither path nor bind",
                 "expected " + std::string(kExpected));
    return {};
  }
  if (path)
    return {load_source_path(loading, *path, "; what lies elsewhere is named with bind").value_or(""), ""};
  const auto name = reader.text(*bind, "a name for --bind");
  if (!name) return {};
  if (const auto why = why_not_bind_name(*name); !why.empty())
    reader.fault(*bind, in_quotes(*name) + " " + why,
                 "expected a name, which --bind NAME=PATH gives its place");
  return {"", *name};
}

Source load_local_source(Loading& loading, const Fields& fields) {
  const auto src = fields.get("src"), source = fields.get("source");
  if (src && source) {
    loading.reader.fault(fields.key_position("source"), source->field, "is there beside src",
                         "expected one of them");
    return {};
  }
  if (src)
    return {
        load_source_path(loading, *src, "; what lies elsewhere is named: source: {bind: NAME}").value_or(""),
        ""};
  if (source) return load_source(loading, *source);
  fields.require("src", "a path below the manifest's folder, or source: {bind: NAME}");
  return {};
}

}  // namespace firestop::manifest
