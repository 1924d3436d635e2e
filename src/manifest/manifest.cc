#include "manifest/manifest.h"

namespace firestop::manifest {

uint32_t Manifest::uid_of(const std::string& user) const {
  for (size_t i = 0; i < users.size(); ++i)
    if (users[i].name == user) return 1000 + static_cast<uint32_t>(i);
  return 1000;
}

const char* to_string(EntryType type) {
  switch (type) {
    case EntryType::kGitRepo:
      return "git_repo";
    case EntryType::kFile:
      return "file";
    case EntryType::kDir:
      return "dir";
    case EntryType::kLocalFile:
      return "local_file";
    case EntryType::kLocalDir:
      return "local_dir";
    case EntryType::kMount:
      return "mount";
  }
  return "?";
}

const char* to_string(Capability capability) {
  switch (capability) {
    case Capability::kShell:
      return "shell";
    case Capability::kFilesystem:
      return "filesystem";
    case Capability::kSkills:
      return "skills";
    case Capability::kMemory:
      return "memory";
    case Capability::kCompaction:
      return "compaction";
  }
  return "?";
}

}  // namespace firestop::manifest
