// For tests: the files of another machine.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::engine {

/// A folder that stands for /, with these files in it: path -> content.
class FakeMachine {
 public:
  using Files = std::map<std::string, std::string>;

  explicit FakeMachine(const Files& files) {
    for (const auto& [path, content] : files) {
      std::filesystem::create_directories((root_ / path).parent_path());
      EXPECT_TRUE(base::write_new_file(root_ / path, content));
    }
  }
  const std::filesystem::path& root() const { return root_.path(); }

 private:
  base::TestFolder root_;
};

}  // namespace muster::engine
