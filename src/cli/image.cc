#include "image/image.h"

#include <chrono>

#include "base/units.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "vmm/vmm.h"

namespace firestop::cli {
namespace {

constexpr const char* kDefaultImage = "agent-base";

Result<int> build(const ParsedArgs& args, Context& context) {
  const auto start = std::chrono::steady_clock::now();
  bool worked = false;
  const auto progress = [&](const std::string& line) {
    worked = true;
    context.terminal.progress(line);
  };
  const auto made = image::ensure(args.value_or("NAME", kDefaultImage), progress);
  context.terminal.end_progress();
  if (!made) return tl::unexpected(made.error());
  if (context.json) {
    print_json(context, codec::JsonObject{{"name", made->name},
                                          {"digest", made->digest},
                                          {"kernel_release", made->kernel_release},
                                          {"kernel", made->kernel},
                                          {"initramfs", made->initramfs},
                                          {"root", made->root}});
    return 0;
  }
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  context.terminal.out(printable(made->name) + ": " + made->digest.substr(0, 12) + ", kernel " +
                       printable(made->kernel_release) +
                       (worked ? ", built in " + format_duration(took) : ", was there already") + "\n");
  return 0;
}

Result<int> list(const ParsedArgs&, Context& context) {
  TRY_ASSIGN(const auto images, image::list());
  if (context.json) {
    codec::JsonArray all;
    for (const auto& each : images)
      all.push_back(codec::JsonObject{{"name", each.name},
                                      {"digest", each.digest},
                                      {"kernel_release", each.kernel_release},
                                      {"bytes", each.bytes},
                                      {"created", each.created},
                                      {"current", each.current}});
    print_json(context, std::move(all));
    return 0;
  }
  if (images.empty()) {
    context.terminal.out("no images yet; `firestop image build` makes one, as does the first run\n");
    return 0;
  }
  Table table({{"PART"},
               {"DIGEST"},
               {"SIZE", Table::Align::kRight},
               {"AGE", Table::Align::kRight},
               {"CURRENT"},
               {"KERNEL"}});
  const int64_t now = now_ms();
  for (const auto& each : images)
    table.add({{each.name, {}},
               {each.digest.substr(0, 12), {}},
               {format_bytes(each.bytes), {}},
               {age_of(each.created * 1000, now), {}},
               {each.current ? "yes" : "no", each.current ? Style::kGreen : Style::kDim},
               {each.kernel_release, {}}});
  context.terminal.out(table.render(context.terminal));
  return 0;
}

Result<int> prune(const ParsedArgs& args, Context& context) {
  TRY_ASSIGN(uint64_t freed, image::prune(args.has("--all")));
  TRY_ASSIGN(const uint64_t templates, vmm::prune_templates(args.has("--all")));
  freed += templates;
  if (context.json)
    print_json(context, codec::JsonObject{{"freed_bytes", freed}});
  else
    context.terminal.out("freed " + format_bytes(freed) + "\n");
  return 0;
}

}  // namespace

CommandSpec image_group() {
  return {
      .name = "image",
      .summary = "the guest images: build, list, prune",
      .description =
          "A guest image is a kernel, a small initramfs and a root file system, built once from a recipe "
          "and found by its content afterwards. The first run builds what it needs; these commands are for "
          "doing it beforehand and for tidying up.",
      .examples = {{"firestop image build", "build the image that manifests use by default"}},
      .exits = {exit_note(ExitStatus::kUsage)},
  };
}

CommandSpec image_build_command() {
  return {
      .name = "image build",
      .summary = "build a guest image, unless it is there",
      .description =
          "Builds the image of a recipe, without root, and keeps it in the cache. Needs the network once, "
          "for Debian's packages. If the image is there and its recipe has not changed, nothing happens. "
          "Two that build the same image at once build it once.",
      .positionals = {{.name = "NAME",
                       .help = std::string("the recipe (default: ") + kDefaultImage + ")",
                       .kind = PositionalKind::kOptional,
                       .completes = Completes::kImages}},
      .options = {json_option()},
      .examples = {{"firestop image build", std::string("build ") + kDefaultImage},
                   {"firestop image build agent-base --json", "its digest and files, for a program"}},
      .exits = {exit_note(ExitStatus::kOk, "the image is there"), exit_note(ExitStatus::kUsage),
                exit_note(ExitStatus::kCannotStart, "it could not be built")},
      .handler = build,
  };
}

CommandSpec image_list_command() {
  return {
      .name = "image list",
      .summary = "list the guest images in the cache, part by part",
      .description =
          "Lists what images consist of: root file systems by the name of their image, kernels, initramfs "
          "files, and the digests of what images can execute, with digest, size and age. What is current is "
          "what a run takes.",
      .options = {json_option()},
      .examples = {{"firestop image list", "what is there, and how big it is"}},
      .exits = {exit_note(ExitStatus::kOk), exit_note(ExitStatus::kUsage),
                exit_note(ExitStatus::kCannotStart)},
      .handler = list,
  };
}

CommandSpec image_prune_command() {
  return {
      .name = "image prune",
      .summary = "remove guest images that no recipe leads to any more",
      .description =
          "Removes images whose recipe is gone or has changed since, and what was made from them. What a "
          "living run uses stays usable for it.",
      .options = {{.name = "--all",
                   .metavar = "",
                   .help = "remove every image; the next run builds its own again"},
                  json_option()},
      .examples = {{"firestop image prune", "remove what is out of date"},
                   {"firestop image prune --all", "give all the disk space back"}},
      .exits = {exit_note(ExitStatus::kOk), exit_note(ExitStatus::kUsage),
                exit_note(ExitStatus::kCannotStart)},
      .handler = prune,
  };
}

}  // namespace firestop::cli
