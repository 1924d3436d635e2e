// Every file in tests/manifest/bad has its faults in a file beside it, with positions and carets, word for
// word. FIRESTOP_WRITE_GOLDEN=1 writes them anew; the difference is then for people to read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "manifest/load.h"

namespace firestop::manifest {
namespace {

const std::filesystem::path kTables = std::filesystem::path(FIRESTOP_SOURCE_DIR) / "tests/manifest";

std::vector<std::string> manifests_in(const char* table) {
  std::vector<std::string> out;
  for (const auto& file : std::filesystem::directory_iterator(kTables / table))
    if (const auto extension = file.path().extension(); extension == ".yaml" || extension == ".json")
      out.push_back(file.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::string case_name(const testing::TestParamInfo<std::string>& info) {
  std::string out = info.param;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return out;
}

// The faults as they are printed, with the file's name alone.
std::string faults_of(const std::filesystem::path& file) {
  auto loaded = load_file(file.string());
  if (!loaded) return loaded.error().to_string();
  for (auto& fault : loaded->faults) fault.file = file.filename().string();
  return render(loaded->faults, loaded->text);
}

class BadManifest : public testing::TestWithParam<std::string> {};

TEST_P(BadManifest, IsRefusedWordForWord) {
  const auto file = kTables / "bad" / GetParam();
  auto expect = file;
  expect.replace_extension(".expect");
  const std::string faults = faults_of(file);
  EXPECT_FALSE(faults.empty());
  if (std::getenv("FIRESTOP_WRITE_GOLDEN")) {
    ASSERT_TRUE(write_file_atomic(expect.string(), faults, 0644));
    return;
  }
  EXPECT_EQ(faults, read_file(expect.string()).value_or("no file " + expect.string()));
}
INSTANTIATE_TEST_SUITE_P(Table, BadManifest, testing::ValuesIn(manifests_in("bad")), case_name);

class GoodManifest : public testing::TestWithParam<std::string> {};

TEST_P(GoodManifest, LoadsWithoutFaults) {
  EXPECT_EQ(faults_of(kTables / "good" / GetParam()), "");
}
INSTANTIATE_TEST_SUITE_P(Table, GoodManifest, testing::ValuesIn(manifests_in("good")), case_name);

TEST(GoldenTables, AreAsLargeAsPromised) {
  EXPECT_GE(manifests_in("bad").size(), 80u);
  EXPECT_GE(manifests_in("good").size(), 4u);
}

}  // namespace
}  // namespace firestop::manifest
