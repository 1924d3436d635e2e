// Parts of a manifest in a few words, for the drawing and for diffs.
#pragma once

#include <string>
#include <vector>

#include "manifest/manifest.h"

namespace firestop::manifest {

std::string join_words(const std::vector<std::string>& words, const char* between = ", ");
// As a shell would need it, so that one word does not look like two.
std::string command_words(const std::vector<std::string>& words);
std::string source_words(const Source& source);         // "template", "--bind data"
std::string entry_words(const Entry& entry);            // "copy of folder template"
std::string memory_cap_words(const Limits& limits);     // "at most 16MiB, 1000 files"
std::string destination_words(const EgressRule& rule);  // "api.example.com:443"
std::string ports_words(const std::vector<uint16_t>& ports);
std::string body_words(const EgressRule& rule);     // whose placeholders may stand in bodies, if any
std::string request_words(const EgressRule& rule);  // "GET POST on /v1/**", "git acme/widget: fetch"
std::string image_words(const Image& image);

}  // namespace firestop::manifest
