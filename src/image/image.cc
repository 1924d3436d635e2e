#include "image/image.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>

#include "base/digest.h"
#include "base/file.h"
#include "base/path.h"
#include "image/bootstrap.h"
#include "image/cache.h"
#include "image/initramfs.h"
#include "image/kernel.h"
#include "image/program.h"
#include "image/recipe.h"

namespace firestop::image {

namespace {

// Raised whenever the same inputs give another result; old parts are then built anew.
constexpr const char* kRootFormat = "root 1\n";
constexpr const char* kKernelFormat = "kernel 1\n";
constexpr const char* kInitramfsFormat = "initramfs 1\n";
constexpr const char* kExecutablesFormat = "executables 1\n";

constexpr uint64_t kGuestLimit = 64u << 20;

Cache open_cache() {
  return Cache(cache_directory() + "/images");
}

std::string part_name(const char* kind, const std::string& made_from) {
  return std::string(kind) + "-" + sha256_hex(made_from).substr(0, 16);
}

// Three parts, so that a change of one builds only that one: packages, kernel, guest program.
std::string root_part(const Recipe& recipe) {
  return part_name("root", kRootFormat + recipe.canonical());
}

std::string kernel_part(const Recipe& recipe) {
  return part_name("kernel", kKernelFormat + recipe.suite + "\n" + recipe.kernel_package);
}

std::string initramfs_part(const std::string& guest_digest, const std::string& kernel_digest) {
  return part_name("initramfs", kInitramfsFormat + guest_digest + "\n" + kernel_digest);
}

// Of the root image, whichever recipe made it.
std::string executables_part(const std::string& root_digest) {
  return part_name("executables", kExecutablesFormat + root_digest);
}

std::string fact(const Part& part, const char* key) {
  const auto found = part.info.find(key);
  return found == part.info.end() ? "" : found->second;
}

BootFiles assemble(const std::string& name, const Part& root, const Part& kernel, const Part& initramfs,
                   const Part& executables) {
  return {.name = name,
          .digest = sha256_hex("root " + fact(root, "digest") + "\nkernel " + fact(kernel, "digest") +
                               "\ninitramfs " + fact(initramfs, "digest") + "\n"),
          .kernel = kernel.folder + "/vmlinux",
          .kernel_release = fact(kernel, "release"),
          .initramfs = initramfs.folder + "/initramfs.cpio",
          .root = root.folder + "/root.erofs",
          .root_digest = fact(root, "digest"),
          .executables = executables.folder.empty() ? "" : executables.folder + "/executables",
          .executables_digest = fact(executables, "digest")};
}

Result<Info> build_root_part(const Recipe& recipe, const std::string& folder, const Say& say) {
  const std::string file = folder + "/root.erofs";
  TRY(build_root(recipe, folder, file, say));
  TRY_ASSIGN(const std::string digest, sha256_file(file));
  return Info{{"name", recipe.name}, {"digest", digest}};
}

Result<Info> build_executables_part(const Part& root, const std::string& folder) {
  TRY_ASSIGN(const std::string text, Executables::make(root.folder + "/root.erofs", fact(root, "digest")));
  TRY(write_file_atomic(folder + "/executables", text, 0644));
  return Info{{"name", "executables"}, {"digest", sha256_hex(text)}};
}

// Beside the kernel lie its modules, so that a new guest program needs no download.
Result<Info> build_kernel_part(const Recipe& recipe, const std::string& folder, const Say& say) {
  TRY_ASSIGN(const std::string deb, fetch_kernel(recipe, folder, say));
  say("kernel: unpacking");
  TRY_ASSIGN(const Kernel kernel, unpack_kernel(deb));
  TRY(write_file_atomic(folder + "/vmlinux", kernel.vmlinux, 0644));
  TRY(make_directories(folder + "/modules", 0755));
  Sha256 digest;
  digest.update(sha256_hex(kernel.vmlinux));
  std::string order;
  for (const Module& module : kernel.modules) {
    digest.update(module.file + " " + sha256_hex(module.bytes) + "\n");
    TRY(write_file_atomic(folder + "/modules/" + module.file, module.bytes, 0644));
    order += module.file + "\n";
  }
  TRY(write_file_atomic(folder + "/modules.order", order, 0644));
  TRY(remove_tree(folder + "/apt"));
  return Info{{"name", std::string(file_name(deb))}, {"digest", digest.hex()}, {"release", kernel.release}};
}

Result<std::vector<Module>> load_modules(const Part& kernel) {
  TRY_ASSIGN(const std::string order, read_file(kernel.folder + "/modules.order"));
  std::vector<Module> modules;
  for (size_t from = 0; from < order.size();) {
    const size_t end = std::min(order.find('\n', from), order.size());
    const std::string file = order.substr(from, end - from);
    TRY_ASSIGN(std::string bytes, read_file(kernel.folder + "/modules/" + file));
    modules.push_back({.file = file, .bytes = std::move(bytes)});
    from = end + 1;
  }
  return modules;
}

Result<Info> build_initramfs_part(const std::string& guest, const Part& kernel, const std::string& folder) {
  TRY_ASSIGN(const std::string init, read_file(guest, kGuestLimit));
  TRY_ASSIGN(const std::vector<Module> modules, load_modules(kernel));
  const std::string cpio = make_initramfs(init, modules);
  TRY(write_file_atomic(folder + "/initramfs.cpio", cpio, 0644));
  return Info{{"name", "initramfs"}, {"digest", sha256_hex(cpio)}};
}

Result<Part> not_built(const std::string& name) {
  return fail("image.not_built", "image '" + name + "' is not built yet", "firestop image build " + name);
}

}  // namespace

Result<BootFiles> find(const std::string& name) {
  TRY_ASSIGN(const Recipe recipe, load_recipe(name));
  TRY_ASSIGN(const std::string guest, guest_program());
  TRY_ASSIGN(const std::string guest_digest, sha256_file(guest));
  const Cache cache = open_cache();
  const auto part = [&](const std::string& part_name) {
    auto found = cache.find(part_name);
    return found ? found : not_built(name);
  };
  TRY_ASSIGN(const Part root, part(root_part(recipe)));
  TRY_ASSIGN(const Part kernel, part(kernel_part(recipe)));
  TRY_ASSIGN(const Part initramfs, part(initramfs_part(guest_digest, fact(kernel, "digest"))));
  // Made by the next ensure(), where an older Firestop built the rest.
  const auto executables = cache.find(executables_part(fact(root, "digest")));
  return assemble(name, root, kernel, initramfs, executables.value_or(Part{}));
}

Result<Executables> executables_of(const BootFiles& files) {
  TRY_ASSIGN(const std::string text, read_file(files.executables, Executables::kMostBytes));
  return Executables::parse(text, files.executables_digest, files.root_digest);
}

Result<BootFiles> ensure(const std::string& name, const Progress& progress) {
  TRY_ASSIGN(const Recipe recipe, load_recipe(name));
  TRY_ASSIGN(const std::string guest, guest_program());
  TRY_ASSIGN(const std::string guest_digest, sha256_file(guest));
  const Cache cache = open_cache();
  const Say say = [&](const std::string& step) {
    if (progress) progress(name + ": " + step);
  };
  const auto waiting = [&say] { say("waiting for another build of the same"); };
  TRY_ASSIGN(const Part kernel,
             cache.ensure(
                 kernel_part(recipe),
                 [&](const std::string& folder) { return build_kernel_part(recipe, folder, say); }, waiting));
  TRY_ASSIGN(const Part root,
             cache.ensure(
                 root_part(recipe),
                 [&](const std::string& folder) { return build_root_part(recipe, folder, say); }, waiting));
  TRY_ASSIGN(
      const Part initramfs,
      cache.ensure(
          initramfs_part(guest_digest, fact(kernel, "digest")),
          [&](const std::string& folder) { return build_initramfs_part(guest, kernel, folder); }, waiting));
  TRY_ASSIGN(const Part executables,
             cache.ensure(
                 executables_part(fact(root, "digest")),
                 [&](const std::string& folder) { return build_executables_part(root, folder); }, waiting));
  return assemble(name, root, kernel, initramfs, executables);
}

namespace {

// The parts that recipes lead to now; an initramfs only if the guest's program is there.
std::vector<std::string> current_parts(const Cache& cache) {
  std::vector<std::string> names;
  for (const std::string& name : recipe_names()) {
    const auto recipe = load_recipe(name);
    if (!recipe) continue;
    names.push_back(root_part(*recipe));
    if (const auto root = cache.find(names.back())) names.push_back(executables_part(fact(*root, "digest")));
    names.push_back(kernel_part(*recipe));
    const auto kernel = cache.find(names.back());
    const auto guest = guest_program();
    if (!kernel || !guest) continue;
    if (const auto digest = sha256_file(*guest))
      names.push_back(initramfs_part(*digest, fact(*kernel, "digest")));
  }
  return names;
}

}  // namespace

Result<std::vector<Listed>> list() {
  const Cache cache = open_cache();
  const std::vector<std::string> current = current_parts(cache);
  std::vector<Listed> all;
  for (const std::string& part_name : cache.names()) {
    const auto part = cache.find(part_name);
    if (!part) continue;
    Listed listed;
    listed.name = fact(*part, "name");
    listed.digest = fact(*part, "digest");
    listed.kernel_release = fact(*part, "release");
    listed.bytes = disk_usage(part->folder);
    listed.created = std::strtoll(fact(*part, "created").c_str(), nullptr, 10);
    listed.current = std::find(current.begin(), current.end(), part_name) != current.end();
    // A whole image is named by all its parts.
    if (const auto files = find(listed.name); files && files->root == part->folder + "/root.erofs") {
      listed.digest = files->digest;
      listed.kernel_release = files->kernel_release;
    }
    all.push_back(std::move(listed));
  }
  return all;
}

Result<uint64_t> prune(bool all) {
  const Cache cache = open_cache();
  return cache.prune(all ? std::vector<std::string>() : current_parts(cache));
}

}  // namespace firestop::image
