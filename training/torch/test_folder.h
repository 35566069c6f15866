// A temporary folder for a test, removed with this object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace muster::training {

class TestFolder {
 public:
  TestFolder() {
    path_ = (std::filesystem::temp_directory_path() / "training-test-XXXXXX").string();
    path_ = ::mkdtemp(path_.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace muster::training
