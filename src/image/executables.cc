#include "image/executables.h"

#include <fcntl.h>

#include <charconv>
#include <map>

#include "base/digest.h"
#include "base/file.h"
#include "erofs/reader.h"

namespace firestop::image {
namespace {

constexpr size_t kDigest = 64;
constexpr std::string_view kRoot = "root ";

Unexpected bad(const std::string& what) {
  return fail("image.bad_index", "the digests of an image's executables: " + what,
              "firestop image prune --all, then build the image again");
}

}  // namespace

Result<std::string> Executables::make(const std::string& root_path, const std::string& root_digest) {
  TRY_ASSIGN(UniqueFd image, open_file(root_path, O_RDONLY));
  TRY_ASSIGN(const erofs::Reader reader, erofs::Reader::open(std::move(image)));
  std::map<std::string, erofs::Reader::File> files;
  TRY(reader.each_file([&files](const erofs::Reader::File& file) -> Result<void> {
    if ((file.mode & 0111) != 0 && file.path.find('\n') == std::string::npos) files[file.path] = file;
    return {};
  }));
  std::map<uint64_t, std::string> digests;  // of files with several names
  std::string text = std::string(kRoot) + root_digest + "\n";
  for (const auto& [path, file] : files) {
    std::string& digest = digests[file.nid];
    if (digest.empty()) {
      Sha256 hash;
      TRY(reader.read(file, [&hash](std::string_view bytes) -> Result<void> {
        hash.update(bytes);
        return {};
      }));
      digest = hash.hex();
    }
    text += digest + " " + std::to_string(file.size) + " " + path + "\n";
    if (text.size() > kMostBytes) return bad("there are too many");
  }
  return text;
}

Result<Executables> Executables::parse(const std::string& text, const std::string& digest,
                                       const std::string& root_digest) {
  if (sha256_hex(text) != digest) return bad("they were changed");
  const std::string head = std::string(kRoot) + root_digest + "\n";
  if (!text.starts_with(head)) return bad("they are of another image");
  Executables out;
  for (size_t at = head.size(); at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) return bad("cut short");
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const size_t size_at = kDigest + 1, path_at = line.find(' ', size_at);
    File file;
    if (line.size() <= size_at || line[kDigest] != ' ' || path_at == std::string_view::npos)
      return bad("a line that is none");
    const auto read = std::from_chars(line.data() + size_at, line.data() + path_at, file.size);
    if (read.ec != std::errc() || read.ptr != line.data() + path_at) return bad("a line that is none");
    file.digest = line.substr(0, kDigest);
    out.files_.emplace(line.substr(path_at + 1), std::move(file));
    at = end + 1;
  }
  return out;
}

const Executables::File* Executables::find(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? nullptr : &found->second;
}

}  // namespace firestop::image
