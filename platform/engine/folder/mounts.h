// The mounts of a task: which folders of this machine its volumes are, and how they are mounted in
// its sandbox. A mount point that the machine lacks must not be created in the machine's folders,
// so the folder above it is replaced by a fresh one with the same entries.
//
// Reads which files exist; creates none, except for Muster's own folders and mount points within
// the job's own folders. Thread-safe: no state.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/task_plan.h"

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

// --- volumes

/// Whether `text` is the name of one folder, without a path. All engines name storage in this way.
bool is_folder_name(const std::string& text);

/// The folders that volumes are taken from.
struct VolumeFolders {
  std::filesystem::path job;      ///< of the job: its trees, its artifacts
  std::filesystem::path storage;  ///< PROJECT/NAME of each project
  /// Real paths that no volume of a kHostPath may show.
  std::vector<std::filesystem::path> hidden;
  /// Real paths of what is hidden in shared folders, too. Each is one of `hidden` or lies in one.
  std::vector<std::filesystem::path> secret;
  /// Real paths of folders that may lie in hidden ones, and are shown all the same.
  std::vector<std::filesystem::path> shared;

  std::filesystem::path tree(size_t volume) const { return job / "trees" / std::to_string(volume); }
  std::filesystem::path artifacts() const { return job / "artifacts"; }
};

/// The mount of each volume. The folder of a kTree with a source is named, not made: JobTrees makes
/// it.
///
/// kInvalid: a kHostPath does not exist or may not be mounted; the name of a storage is invalid; a
/// task without a sandbox has volumes.
base::Result<std::vector<Mount>> find_volumes(const launch::TaskPlan& plan,
                                              const VolumeFolders& folders);

/// Makes a folder for tasks to write to. A folder that was handed over to the account of a task
/// stays as it is. The folder above it must be Muster's, so that no task can replace it by a link.
base::Result<void> make_folder_of_tasks(const std::filesystem::path& path);

/// Whether a kHostPath may be mounted with everything in it, by an engine that cannot hide parts of
/// it. kInvalid: it does not exist, is hidden (`hidden`: real paths), or contains a hidden path.
base::Result<void> check_host_path(const job::Volume& volume,
                                   const std::vector<std::filesystem::path>& hidden);

}  // namespace muster::engine
