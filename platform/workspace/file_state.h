// What tells whether a file is still the one that was looked at.
//
// A value.
#pragma once

#include <sys/stat.h>

#include <compare>
#include <cstdint>

namespace muster::workspace {

struct FileState {
  dev_t device = 0;
  ino_t inode = 0;
  int64_t bytes = 0;
  int64_t changed = 0;  ///< nanoseconds; every write moves it, and nobody can set it back

  FileState() = default;
  explicit FileState(const struct stat& status);
  auto operator<=>(const FileState&) const = default;
};

}  // namespace muster::workspace
