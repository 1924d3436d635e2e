// Which Debian mirrors an image is made from: those that the machine already uses, so that a local mirror
// or a proxy is honoured.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace firestop::image {

struct AptSources {
  std::string list;     // one-line format (sources.list(5)), may be empty
  std::string stanzas;  // deb822 format, may be empty
};

// The entries of `text` that name Debian's `suite`, its updates or its security updates.
std::string debian_lines(const std::string& text, const std::string& suite);
std::string debian_stanzas(const std::string& text, const std::string& suite);

// From $FIRESTOP_APT_SOURCES (a file, taken whole), else the machine's own below `etc_apt`, else
// deb.debian.org.
Result<AptSources> find_sources(const std::string& suite, const std::string& etc_apt = "/etc/apt");

// Writes firestop.list and firestop.sources into `folder`; returns the paths of those that are not empty.
Result<std::vector<std::string>> write_sources(const AptSources& sources, const std::string& folder);

}  // namespace firestop::image
