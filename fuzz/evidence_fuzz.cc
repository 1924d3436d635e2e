// Records that somebody else wrote: an event, an envelope with what may be in it, and a whole record that was
// signed and then edited, of which none may be called intact but the one that was signed.
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "check.h"
#include "evidence/attest.h"
#include "evidence/checkpoint.h"
#include "evidence/log.h"
#include "evidence/verify.h"

using namespace firestop;
using namespace firestop::evidence;

namespace {

using Lines = std::vector<std::string>;

// A signed record of a few events, made once, in a directory that goes with the process.
struct Original {
  std::string directory;
  std::vector<PublicKey> signers;
  Lines events, checkpoints;

  Original() {
    std::string name = (std::filesystem::temp_directory_path() / "evidence_fuzz.XXXXXX").string();
    FUZZ_CHECK(::mkdtemp(name.data()) != nullptr);
    directory = name;
    const auto key = HostKey::load_or_make(directory + "/config");
    FUZZ_CHECK(key.has_value());
    signers = {key->public_key()};
    auto log = Log::create(directory + "/record", "run", *key, {}, {.checkpoint_events = 4});
    FUZZ_CHECK(log.has_value());
    for (int i = 0; i < 10; ++i)
      FUZZ_CHECK((*log)->append(Vantage::kGuest, "process.fork", {{"pid", i}, {"parent", 1}}).has_value());
    FUZZ_CHECK((*log)->close({{"complete", true}}).has_value());
    events = lines_of("events.jsonl");
    checkpoints = lines_of("checkpoints.jsonl");
  }
  Original(const Original&) = delete;
  Original& operator=(const Original&) = delete;
  ~Original() { std::filesystem::remove_all(directory); }

  Lines lines_of(const std::string& name) const {
    Lines out;
    const std::string text = read_file(directory + "/record/" + name).value();
    for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      out.push_back(text.substr(at, text.find('\n', at) - at));
    return out;
  }
};

void write(const std::string& path, const Lines& lines) {
  std::ofstream out(path, std::ios::trunc | std::ios::binary);
  for (const auto& line : lines) out << line << '\n';
}

// Three bytes an edit: what, where, with what; then, for some, the rest as text.
void edit(std::string_view script, Lines& lines, Lines& others) {
  while (script.size() >= 3 && !lines.empty()) {
    const auto what = static_cast<unsigned char>(script[0]), at = static_cast<unsigned char>(script[1]),
               with = static_cast<unsigned char>(script[2]);
    script.remove_prefix(3);
    const auto here = lines.begin() + static_cast<std::ptrdiff_t>(at % lines.size());
    switch (what % 7) {
      case 0:
        lines.erase(here);
        break;
      case 1:
        std::swap(*here, lines[with % lines.size()]);
        break;
      case 2:
        lines.insert(here, std::string(lines[with % lines.size()]));
        break;
      case 3:
        if (!here->empty()) (*here)[with % here->size()] = script.empty() ? 'x' : script[0];
        break;
      case 4:
        here->resize(with);
        break;
      case 5:
        lines.insert(here, std::string(script));
        break;
      default:
        std::swap(lines, others);
    }
  }
}

void one_record(std::string_view script) {
  static const Original original;
  Lines events = original.events, checkpoints = original.checkpoints;
  edit(script, events, checkpoints);
  write(original.directory + "/record/events.jsonl", events);
  write(original.directory + "/record/checkpoints.jsonl", checkpoints);
  const auto found =
      verify(original.directory + "/record", {.signers = original.signers, .run = "run", .anchor = {}});
  FUZZ_CHECK(found.has_value());
  const bool same = events == original.events && checkpoints == original.checkpoints;
  FUZZ_CHECK((found->integrity == Integrity::kIntact) == same);
  if (!found->trusted) return;
  FUZZ_CHECK(found->trusted->count <= events.size());
  for (size_t i = 0; i < found->trusted->count; ++i) FUZZ_CHECK(events[i] == original.events[i]);
}

void one_event(std::string_view line) {
  const auto event = parse_event(line);
  if (!event) return;
  const auto again = to_line(*event);
  FUZZ_CHECK(again.has_value() && *again == line);
}

void one_envelope(std::string_view text) {
  const auto envelope = parse_envelope(text);
  if (!envelope) return;
  FUZZ_CHECK(signer_of(*envelope, {}) == nullptr);
  FUZZ_CHECK(!read_attestation(text, {}).has_value());
  if (const auto checkpoint = checkpoint_of(*envelope)) FUZZ_CHECK(checkpoint->count > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'e')
    one_event(rest);
  else if (data[0] == 's')
    one_envelope(rest);
  else
    one_record(rest);
  return 0;
}
