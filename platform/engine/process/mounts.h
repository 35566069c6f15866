// What a task finds in its root besides the machine's own entries, and how room is made for it: a
// place that the machine lacks must not be made in the machine's folders, so the folder above it is
// a fresh one with the same entries.
//
// Looks at which files the machine has; makes none, but for places within folders of the job's own.
// Thread-safe: no state.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::engine {

/// A file or folder that is shown at a path of the task's.
struct Mount {
  std::filesystem::path source;
  std::filesystem::path target;
  bool read_only = false;
  bool own = false;  ///< the source is Muster's, so places may be made in it
  /// The target is a link to `source`, a path of the sandbox: what is replaced there is seen here.
  bool is_link = false;
  /// A path of the node that the server's configuration shows, be it in a hidden folder.
  bool is_configured = false;

  bool operator==(const Mount&) const = default;
};

struct MountPlan {
  bool is_read_only = false;  ///< the machine's entries can be read only
  /// Folders that are the sandbox's own, with the names that are not taken over from the machine's.
  std::map<std::filesystem::path, std::set<std::string>> fresh;
  /// In the order they are to be made, by the targets' real names.
  std::vector<Mount> mounts;
};

/// The real names of what there is of these, without those that lie in another.
std::vector<std::filesystem::path> real_paths(const std::vector<std::filesystem::path>& paths);

/// The folders that these lie in, outermost first, without the root. For real paths.
std::vector<std::filesystem::path> folders_above(const std::vector<std::filesystem::path>& paths);

/// Whether `path` is `folder` or lies in it. Both real, or both plain.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder);

/// `hidden`: real paths, of which the task finds folders empty and files not at all.
///
/// kInvalid: a target in a place that is the sandbox's own, below a file, or in a folder of the
/// user's that has no place for it.
base::Result<MountPlan> plan_mounts(std::vector<Mount> mounts,
                                    const std::vector<std::filesystem::path>& hidden);

}  // namespace muster::engine
