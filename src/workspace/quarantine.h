// Where a sandbox's objects stay until they are judged: an empty repository, and the jails of the git
// children that look at them. Each sees what its work needs: the receiver the quarantine only, readers the
// quarantine and the source's objects, both read-only, the packer writes in the quarantine only.
#pragma once

#include <string>

#include "base/result.h"
#include "jail/parser_jail.h"
#include "workspace/cache.h"
#include "workspace/git.h"
#include "workspace/workspace.h"

namespace firestop::workspace {

class Quarantine {
 public:
  // Below `scratch_directory`; removed with this object. Root's children are the owner of the source's
  // objects. Errors: "import.failed" and those of ParserJail.
  static Result<Quarantine> make(const RepoSource& source, const std::string& scratch_directory);

  // For index-pack: writes, and knows nothing of the source.
  GitPlace receiving() const { return {git_dir_, receiver_}; }
  // For all that reads.
  GitPlace reading() const { return {git_dir_, reader_}; }
  // For pack-objects, which writes PACKED()/pack-HASH.{pack,idx,rev}.
  GitPlace packing() const { return {git_dir_, packer_}; }
  const std::string& packed() const { return packed_; }
  const std::string& git_dir() const { return git_dir_; }

  // From now on the source's objects can be referred to.
  Result<void> join(const RepoSource& source) const;

 private:
  Quarantine(TemporaryDirectory folder, jail::ParserJail receiver)
      : folder_(std::move(folder)), receiver_(receiver), reader_(receiver), packer_(std::move(receiver)) {}

  TemporaryDirectory folder_;
  std::string git_dir_, packed_, objects_;
  jail::Identity owner_{};
  jail::ParserJail receiver_, reader_, packer_;
};

// The folders of a repository's objects: its own and, up to the depth that git follows, its alternates'.
Result<std::vector<std::string>> object_folders(const std::string& git_dir);

}  // namespace firestop::workspace
