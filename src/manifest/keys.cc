#include "manifest/keys.h"

namespace firestop::manifest {

Keys keys_of(EntryType type) {
  switch (type) {
    case EntryType::kGitRepo:
      return kGitRepoKeys;
    case EntryType::kFile:
      return kFileKeys;
    case EntryType::kDir:
      return kDirKeys;
    case EntryType::kLocalFile:
      return kLocalFileKeys;
    case EntryType::kLocalDir:
      return kLocalDirKeys;
    case EntryType::kMount:
      return kMountKeys;
  }
  return {};
}

std::vector<KeyTable> all_key_tables() {
  return {{"", kDocumentKeys},
          {"workspace", kWorkspaceKeys},
          {"git_repo", kGitRepoKeys},
          {"file", kFileKeys},
          {"content", kContentKeys},
          {"dir", kDirKeys},
          {"local_file", kLocalFileKeys},
          {"local_dir", kLocalDirKeys},
          {"mount", kMountKeys},
          {"skill", kSkillKeys},
          {"source", kSourceKeys},
          {"user", kUserKeys},
          {"group", kGroupKeys},
          {"limits", kLimitsKeys},
          {"network", kNetworkKeys},
          {"egress_rule", kEgressKeys},
          {"git", kGitKeys},
          {"credential", kCredentialKeys}};
}

}  // namespace firestop::manifest
