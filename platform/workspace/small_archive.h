// Tar archives in memory: how small files get into containers and out of them.
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
  std::string link;  ///< target of a symbolic link; empty: the entry is a file or a folder

  bool operator==(const ArchiveEntry&) const = default;
};

/// The tar of `entries`. All files that a container gets are small, except workspaces, which are
/// sent in pieces instead (tar_pack.h).
std::string make_archive(const std::vector<ArchiveEntry>& entries);

/// The regular files, folders and symbolic links of `tar`; other entries are left out. kExhausted:
/// the content has more than `most` bytes.
base::Result<std::vector<ArchiveEntry>> read_archive(std::string_view tar, size_t most);

}  // namespace muster::workspace
