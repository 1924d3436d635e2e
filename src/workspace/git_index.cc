#include "workspace/git_index.h"

#include <openssl/evp.h>

#include <algorithm>
#include <map>
#include <memory>

namespace firestop::workspace {
namespace {

constexpr size_t kStatBytes = 40;  // ten 32-bit words before the object id
constexpr uint16_t kNameMask = 0xfff;

void put_u32(std::string& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift & 0xff));
}

size_t hash_bytes(const std::string& object_format) {
  return object_format == "sha256" ? 32 : 20;
}

// Entries are padded with 1 to 8 NULs to a multiple of eight.
size_t padded(size_t bytes) {
  return (bytes + 8) / 8 * 8;
}

struct TreeNode {
  std::string id;
  size_t entries = 0;
  std::map<std::string, TreeNode> children;
};

TreeNode* descend(TreeNode& root, std::string_view path) {
  TreeNode* node = &root;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    node = &node->children[std::string(path.substr(0, end))];
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return node;
}

// Pre-order: "NAME\0COUNT SUBTREES\n" and the id. A tree without an id is written as invalid ("-1").
void put_tree(std::string& out, const std::string& name, const TreeNode& node) {
  size_t subtrees = 0;
  for (const auto& child : node.children) subtrees += child.second.entries > 0 ? 1 : 0;
  out += name + '\0' + (node.id.empty() ? "-1" : std::to_string(node.entries)) + " " +
         std::to_string(subtrees) + "\n";
  out += node.id;
  // git keeps subtrees sorted by length, then bytes, and searches them so.
  std::vector<const std::pair<const std::string, TreeNode>*> order;
  for (const auto& child : node.children)
    if (child.second.entries > 0) order.push_back(&child);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->first.size() != b->first.size() ? a->first.size() < b->first.size() : a->first < b->first;
  });
  for (const auto* child : order) put_tree(out, child->first, child->second);
}

std::string cache_tree(const std::vector<IndexEntry>& entries, const std::vector<IndexTree>& trees) {
  TreeNode root;
  for (const auto& tree : trees) descend(root, tree.path)->id = tree.id;
  for (const auto& entry : entries) {
    TreeNode* node = &root;
    ++node->entries;
    std::string_view rest = entry.path;
    for (size_t end; (end = rest.find('/')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
      node = &node->children[std::string(rest.substr(0, end))];
      ++node->entries;
    }
  }
  std::string out;
  put_tree(out, "", root);
  return out;
}

Result<std::string> checksum(const std::string& data, const std::string& object_format) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  const EVP_MD* digest = object_format == "sha256" ? EVP_sha256() : EVP_sha1();
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!context || EVP_DigestInit_ex(context.get(), digest, nullptr) != 1 ||
      EVP_DigestUpdate(context.get(), data.data(), data.size()) != 1 ||
      EVP_DigestFinal_ex(context.get(), out, &size) != 1)
    return fail("git.index", "OpenSSL cannot compute " + object_format);
  return std::string(reinterpret_cast<const char*>(out), size);
}

}  // namespace

uint64_t index_size(const std::vector<IndexEntry>& entries, const std::vector<IndexTree>& trees,
                    const std::string& object_format) {
  const size_t hash = hash_bytes(object_format);
  uint64_t bytes = 12;
  for (const auto& entry : entries) bytes += padded(kStatBytes + hash + 2 + entry.path.size());
  return bytes + 8 + cache_tree(entries, trees).size() + hash;
}

Result<std::string> write_index(const std::vector<IndexEntry>& entries, const IndexStat& stat,
                                const std::vector<IndexTree>& trees, const std::string& object_format) {
  const size_t hash = hash_bytes(object_format);
  std::string out = "DIRC";
  put_u32(out, 2);
  put_u32(out, static_cast<uint32_t>(entries.size()));
  for (size_t i = 0; i < entries.size(); ++i) {
    const IndexEntry& entry = entries[i];
    if (entry.id.size() != hash) return fail("git.index", entry.path + ": an object id of the wrong length");
    if (i > 0 && !(entries[i - 1].path < entry.path))
      return fail("git.index", entry.path + ": stands twice in the tree, or out of order");
    const size_t start = out.size();
    for (const uint32_t word :
         {stat.seconds, 0u, stat.seconds, 0u, 0u, entry.inode, entry.mode, stat.uid, stat.gid, entry.size})
      put_u32(out, word);
    out += entry.id;
    const uint16_t flags = static_cast<uint16_t>(std::min<size_t>(entry.path.size(), kNameMask));
    out.push_back(static_cast<char>(flags >> 8));
    out.push_back(static_cast<char>(flags & 0xff));
    out += entry.path;
    out.resize(start + padded(out.size() - start), '\0');
  }
  const std::string tree = cache_tree(entries, trees);
  out += "TREE";
  put_u32(out, static_cast<uint32_t>(tree.size()));
  out += tree;
  TRY_ASSIGN(const std::string sum, checksum(out, object_format));
  return out + sum;
}

}  // namespace firestop::workspace
