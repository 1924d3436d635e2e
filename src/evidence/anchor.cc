#include "evidence/anchor.h"

#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <set>

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "evidence/anchor_git.h"
#include "evidence/line_reader.h"

namespace firestop::evidence {
namespace {

constexpr std::string_view kCommand = "command:", kGit = "git:";

Unexpected bad(std::string what, std::string hint = {}) {
  return fail("evidence.anchor", std::move(what), std::move(hint));
}

Result<Anchor> file_anchor(const std::string& path) {
  auto fd = std::make_shared<UniqueFd>(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  // What can only be written, such as a device, is an anchor too.
  if (!fd->valid()) fd->reset(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd->valid()) return fail_errno("evidence.anchor", "cannot open the anchor " + path);
  // Somebody else may have died within a line.
  char last = '\n';
  const off_t end = ::lseek(fd->get(), 0, SEEK_END);
  const bool torn = end > 0 && ::pread(fd->get(), &last, 1, end - 1) == 1 && last != '\n';
  return Anchor(
      [fd, path, begin = std::string(torn ? "\n" : "")](const std::string& line) mutable -> Result<void> {
        const std::string whole = begin + line + "\n";
        begin.clear();
        if (!write_all(fd->get(), whole))
          return fail_errno("evidence.anchor", "cannot write to the anchor " + path);
        if (::fdatasync(fd->get()) != 0 && errno != EINVAL && errno != EROFS)
          return fail_errno("evidence.anchor", "cannot sync the anchor " + path);
        return {};
      });
}

Anchor command_anchor(const std::string& words) {
  return [words](const std::string& line) -> Result<void> {
    const auto ended = run({.argv = {"/bin/sh", "-c", words}},
                           {.input = line + "\n", .output_limit = 1u << 20, .timeout = kMostAnchorTime});
    if (!ended) return bad("the anchor's command failed: " + ended.error().message);
    if (ended->ok()) return {};
    const std::string said = ended->err.substr(0, ended->err.find('\n'));
    return bad("the anchor's command failed: " + describe_status(ended->status) +
               (said.empty() ? "" : ": " + said));
  };
}

// Collects what belongs to one run.
class Collector {
 public:
  Collector(const std::string& run, const std::vector<PublicKey>& signers) : run_(run), signers_(signers) {}

  Result<void> take(std::string_view line) {
    const auto envelope = parse_envelope(line);
    if (!envelope) return {};
    const auto checkpoint = checkpoint_of(*envelope);
    if (!checkpoint || checkpoint->run != run_ || !signer_of(*envelope, signers_)) return {};
    if (out_.size() == kMostAnchored)
      return bad("the anchor has more than " + std::to_string(kMostAnchored) + " checkpoints of this run");
    out_.push_back(*checkpoint);
    return {};
  }
  std::vector<Checkpoint> done() { return std::move(out_); }

 private:
  const std::string& run_;
  const std::vector<PublicKey>& signers_;
  std::vector<Checkpoint> out_;
};

}  // namespace

Result<Anchor> open_anchor(const std::string& where) {
  if (where.empty()) return bad("the anchor has no name");
  if (where.starts_with(kCommand)) return command_anchor(where.substr(kCommand.size()));
  if (where.starts_with(kGit)) {
    TRY_ASSIGN(const GitAnchor git, GitAnchor::parse(where.substr(kGit.size())));
    TRY(git.check());
    TRY(git.prepare());
    return Anchor([git](const std::string& line) { return git.add(line); });
  }
  return file_anchor(where);
}

Result<std::vector<Checkpoint>> read_anchor(const std::string& where, const std::string& run,
                                            const std::vector<PublicKey>& signers) {
  if (where.starts_with(kCommand))
    return bad("a command cannot be asked what it was given",
               "let it fetch the lines, and give them as a file: --anchor FILE");
  Collector collector(run, signers);
  if (where.starts_with(kGit)) {
    TRY_ASSIGN(const GitAnchor git, GitAnchor::parse(where.substr(kGit.size())));
    TRY_ASSIGN(const std::string lines, git.read());
    for (size_t at = 0; at < lines.size();) {
      const size_t end = std::min(lines.find('\n', at), lines.size());
      TRY(collector.take(std::string_view(lines).substr(at, end - at)));
      at = end + 1;
    }
    return collector.done();
  }
  auto reader = LineReader::open(where, kMostCheckpoint);
  if (!reader) return bad("cannot read the anchor: " + reader.error().message);
  for (;;) {
    TRY_ASSIGN(const auto got, reader->next());
    if (got == LineReader::Got::kEnd) return collector.done();
    if (got == LineReader::Got::kLine) TRY(collector.take(reader->line()));
  }
}

}  // namespace firestop::evidence
