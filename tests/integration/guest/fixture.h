// A test with a machine of its own, and a folder for its files.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "integration/guest/machine.h"

namespace firestop::test {

class Guest : public ::testing::Test {
 protected:
  void SetUp() override {
    char directory[] = "/tmp/firestop-guest-test-XXXXXX";
    ASSERT_NE(::mkdtemp(directory), nullptr);
    directory_ = directory;
    files_ = find_boot_files(directory_);
    if (!files_) GTEST_SKIP() << "no image agent-base: firestop image build";
  }
  void TearDown() override {
    machine_.reset();
    EXPECT_TRUE(remove_tree(directory_));
  }
  void boot(const MachineOptions& options = {}) {
    ASSERT_TRUE(files_);
    auto machine = Machine::boot(files_.value_or(BootFiles{}), options, directory_);
    ASSERT_TRUE(machine) << machine.error().message;
    machine_ = std::move(*machine);
  }
  void start(const channel::Start& start = Machine::usual_start()) {
    const auto started = machine_->start(start);
    ASSERT_TRUE(started) << started.error().message;
    for (const auto& step : started->steps) std::cout << step.name << " " << step.us << " us, ";
    std::cout << "\n";
  }
  std::string directory_;
  std::optional<BootFiles> files_;
  std::unique_ptr<Machine> machine_;
};

}  // namespace firestop::test
