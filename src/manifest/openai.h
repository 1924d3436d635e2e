// The sandbox manifest of the OpenAI Agents SDK, in the spelling of its Python side (snake_case, nested
// environment, children) and of its JavaScript side (camelCase, base64), rewritten into our own spelling
// before the loader sees it. So the loader's rules hold for all three, and one workspace has one canonical
// form.
//
// Accepted is what says the same in other words. What the SDK would let reach further than our spelling can
// say is a fault at its place: other roots, path grants, mounts outside the root, remote stores, values that
// are looked up elsewhere.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "manifest/load.h"
#include "manifest/reader.h"

namespace firestop::manifest {

// What a document says that changes nothing here; `wrong` says why. `file` is empty.
using LeftOut = std::vector<Diagnostic>;

// Rewrites the value of `workspace` in place; `field` is its path. Positions stay those of the document.
void translate_openai(Reader& reader, codec::YamlNode& workspace, const std::string& field,
                      LeftOut& left_out);

struct Imported {
  Loaded loaded;  // faults: what cannot be said, at its place in the SDK's document
  LeftOut left_out;
  std::vector<std::string> binds;  // "NAME=PATH" for what lay outside the folder
  std::string text;                // firestop.yaml; empty with faults
};

// A document of the SDK alone, YAML or JSON. `name` is the new manifest's name. Sources that leave the folder
// become names to bind, and a git_repo without a host gets the SDK's default, github.com.
Imported import_openai(const std::string& file, std::string_view text, const std::string& name);

// The manifest's name and workspace as a document in our spelling, `notes` as comments above it.
std::string workspace_yaml(const Manifest& manifest, const std::vector<std::string>& notes);

}  // namespace firestop::manifest
