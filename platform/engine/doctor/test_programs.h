// For tests: a folder of fake programs.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/test_folder.h"

namespace muster::engine::doctor {

class StandIns {
 public:
  /// Adds a shell script as a program.
  void add(const std::string& name, const std::string& script) {
    const std::filesystem::path file = folder_ / name;
    std::ofstream(file) << "#!/bin/sh\nPATH=/usr/bin:/bin\n" << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  const std::filesystem::path& folder() const { return folder_.path(); }

  /// An environment in which only these programs are found.
  std::vector<std::string> environment(std::vector<std::string> more = {}) const {
    more.push_back("PATH=" + folder_.path().string());
    return more;
  }

 private:
  base::TestFolder folder_;
};

}  // namespace muster::engine::doctor
