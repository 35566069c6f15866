// Tar archives in memory: how files get into containers and out of them.
//
// Thread-safe (no state).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::workspace {

struct ArchiveEntry {
  std::string path;     ///< relative, without ".."
  std::string content;  ///< of a file
  mode_t mode = 0600;
  bool is_folder = false;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string link;  ///< where it leads; not empty: it is a symbolic link

  bool operator==(const ArchiveEntry&) const = default;
};

/// In memory: what goes into a container is small, but for workspaces, which are sent in pieces.
std::string make_archive(const std::vector<ArchiveEntry>& entries);

/// Those of its regular files, folders and links; others are left out. `most`: bytes of content,
/// kExhausted beyond.
base::Result<std::vector<ArchiveEntry>> read_archive(std::string_view tar, size_t most);

}  // namespace muster::workspace
