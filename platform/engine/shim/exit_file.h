// The exit record on disk. Its room is taken before the task starts, so that a full disk cannot
// swallow how the task ended.
//
// Not thread-safe.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/shim/plan.h"

namespace muster::engine {

class ExitFile {
 public:
  /// Makes it, blank.
  base::Result<void> reserve(const std::filesystem::path& path);

  /// REQUIRES: reserve() went well. Words that find no room in it are left out.
  void write(ExitRecord record) const;

 private:
  base::UniqueFd file_;
};

}  // namespace muster::engine
