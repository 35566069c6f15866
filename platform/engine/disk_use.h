// The disk space of a folder, measured by descriptors: a path of any length is found.
//
// I/O; thread-safe; blocks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace muster::engine {

/// Identifies a file while it exists: its device and its inode.
using FileId = std::pair<dev_t, ino_t>;

struct DiskUse {
  int64_t bytes = 0;
  /// Some folders are nested more than 256 deep; what is in them is not counted.
  bool is_too_deep = false;
};

/// The disk space that the content of a folder uses. Follows no link and enters no mount of
/// another file system. Entries that cannot be read are not counted; a file with two names is
/// counted twice. `met`: called for each entry that is counted.
DiskUse disk_use(const std::string& folder,
                 const std::function<void(const FileId&)>& met = nullptr);

}  // namespace muster::engine
