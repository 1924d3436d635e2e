#include "image/sources.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"

namespace firestop::image {

namespace {

constexpr uint64_t kLimit = 1 << 20;
constexpr const char* kKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

bool of_suite(const std::string& word, const std::string& suite) {
  return word == suite || word == suite + "-updates" || word == suite + "-security" ||
         word == suite + "/updates";
}

bool is_debian(const std::string& uri) {
  return uri.find("debian") != std::string::npos;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool stanza_fits(const std::map<std::string, std::string>& fields, const std::string& suite) {
  const auto field = [&fields](const char* name) {
    const auto found = fields.find(name);
    return found == fields.end() ? std::vector<std::string>() : words_of(found->second);
  };
  const auto types = field("types"), uris = field("uris"), suites = field("suites"),
             enabled = field("enabled");
  if (!enabled.empty() && (lower(enabled[0]) == "no" || lower(enabled[0]) == "false")) return false;
  return std::find(types.begin(), types.end(), "deb") != types.end() &&
         std::any_of(uris.begin(), uris.end(), is_debian) &&
         std::any_of(suites.begin(), suites.end(),
                     [&suite](const auto& word) { return of_suite(word, suite); });
}

AptSources default_sources(const std::string& suite) {
  const std::string signed_by = exists(kKeyring) ? std::string("[signed-by=") + kKeyring + "] " : "";
  const std::string start = "deb " + signed_by;
  return {.list = start + "http://deb.debian.org/debian " + suite + " main\n" +          //
                  start + "http://deb.debian.org/debian " + suite + "-updates main\n" +  //
                  start + "http://deb.debian.org/debian-security " + suite + "-security main\n",
          .stanzas = ""};
}

}  // namespace

std::string debian_lines(const std::string& text, const std::string& suite) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    line = line.substr(0, line.find('#'));
    std::string plain = line;  // without the options in brackets, which may hold spaces
    if (const size_t open = plain.find('['); open != std::string::npos) {
      const size_t close = plain.find(']', open);
      if (close == std::string::npos) continue;
      plain.erase(open, close - open + 1);
    }
    const std::vector<std::string> words = words_of(plain);
    if (words.size() >= 4 && words[0] == "deb" && is_debian(words[1]) && of_suite(words[2], suite))
      out += line + "\n";
  }
  return out;
}

std::string debian_stanzas(const std::string& text, const std::string& suite) {
  std::istringstream in(text + "\n\n");
  std::string out, stanza, name;
  std::map<std::string, std::string> fields;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      if (stanza_fits(fields, suite)) out += stanza + "\n";
      stanza.clear();
      fields.clear();
      name.clear();
      continue;
    }
    stanza += line + "\n";
    const size_t colon = line.find(':');
    if (line[0] == ' ' || line[0] == '\t') {
      fields[name] += " " + line;
    } else if (colon != std::string::npos) {
      name = lower(line.substr(0, colon));
      fields[name] = line.substr(colon + 1);
    }
  }
  return out;
}

Result<AptSources> find_sources(const std::string& suite, const std::string& etc_apt) {
  AptSources sources;
  if (const char* named = std::getenv("FIRESTOP_APT_SOURCES"); named != nullptr && *named != '\0') {
    auto text = read_file(named, kLimit);
    if (!text) return wrap(std::move(text).error(), "FIRESTOP_APT_SOURCES");
    (std::string(named).ends_with(".sources") ? sources.stanzas : sources.list) = *text;
    return sources;
  }
  std::vector<std::string> files = {etc_apt + "/sources.list"};
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(etc_apt + "/sources.list.d", ignored), end;
       !ignored && at != end; at.increment(ignored)) {
    files.push_back(at->path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    const bool stanzas = file.ends_with(".sources");
    if (!stanzas && !file.ends_with(".list")) continue;
    const auto text = read_file(file, kLimit);
    if (!text) continue;  // what apt could not read either
    (stanzas ? sources.stanzas : sources.list) +=
        stanzas ? debian_stanzas(*text, suite) : debian_lines(*text, suite);
  }
  if (sources.list.empty() && sources.stanzas.empty()) return default_sources(suite);
  return sources;
}

Result<std::vector<std::string>> write_sources(const AptSources& sources, const std::string& folder) {
  std::vector<std::string> paths;
  const auto put = [&](const char* name, const std::string& text) -> Result<void> {
    if (text.empty()) return {};
    paths.push_back(folder + "/" + name);
    return write_file_atomic(paths.back(), text, 0644);
  };
  TRY(put("firestop.list", sources.list));
  TRY(put("firestop.sources", sources.stanzas));
  return paths;
}

}  // namespace firestop::image
