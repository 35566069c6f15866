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

/// A file or folder that is mounted at a path of the task.
struct Mount {
  std::filesystem::path source;
  std::filesystem::path target;
  bool read_only = false;
  bool own = false;  ///< the source is a folder of Muster, in which mount points may be created
  /// The target is a link to `source`, a path of the sandbox. If a file there is replaced, the task
  /// sees the new file here.
  bool is_link = false;
  /// A path of the node that the server's configuration makes visible, possibly in a hidden folder.
  bool is_configured = false;

  bool operator==(const Mount&) const = default;
};

struct MountPlan {
  bool is_read_only = false;  ///< the machine's files are mounted read-only
  /// Folders that are created for the sandbox, each with the names that are not taken over from the
  /// machine's folder.
  std::map<std::filesystem::path, std::set<std::string>> fresh;
  /// In the order in which they must be mounted; targets are real paths.
  std::vector<Mount> mounts;
};

/// The real paths of those `paths` that exist, without paths inside another.
std::vector<std::filesystem::path> real_paths(const std::vector<std::filesystem::path>& paths);

/// All folders above `paths`, which are real paths; outermost first, without the root.
std::vector<std::filesystem::path> folders_above(const std::vector<std::filesystem::path>& paths);

/// Whether `path` is `folder` or is inside it. Both are real paths, or neither is.
bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder);

/// `hidden`: real paths. The task sees a hidden folder empty, and does not see a hidden file.
/// kInvalid: a target in a reserved folder of the sandbox, below a file, or missing in a folder of
/// the user.
base::Result<MountPlan> plan_mounts(std::vector<Mount> mounts,
                                    const std::vector<std::filesystem::path>& hidden);

// --- volumes

/// Whether `text` is the name of one folder, without a path. All engines name storage in this way.
bool is_folder_name(const std::string& text);

/// The folders from which volumes come.
struct VolumeFolders {
  std::filesystem::path job;      ///< of the job: its trees, its artifacts
  std::filesystem::path storage;  ///< PROJECT/NAME of each project
  /// Real paths that no kHostPath volume may contain.
  std::vector<std::filesystem::path> hidden;
  /// Real paths that are hidden even in shared folders. Each is in `hidden`, or inside one of its
  /// paths.
  std::vector<std::filesystem::path> secret;
  /// Real paths of folders that are visible although they may be inside hidden ones.
  std::vector<std::filesystem::path> shared;

  std::filesystem::path tree(size_t volume) const { return job / "trees" / std::to_string(volume); }
  std::filesystem::path artifacts() const { return job / "artifacts"; }
};

/// The mount of each volume. The folder of a kTree with a source is not created here: JobTrees
/// creates it.
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
