// From the volumes of a task to the folders of this machine that they are.
//
// Makes the folders that are Muster's; thread-safe as files are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/process/mounts.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// One name of a folder, none that leads elsewhere: names of storage mean the same to all engines.
bool is_folder_name(const std::string& text);

/// Where volumes lie.
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

/// Where each volume comes from. The folder of a kTree with a source is only named: whoever unpacks
/// it makes it.
///
/// kInvalid: a kHostPath that is not there or may not be shown; the name of a storage that is none;
/// volumes without a sandbox.
base::Result<std::vector<Mount>> find_volumes(const launch::TaskPlan& plan,
                                              const VolumeFolders& folders);

/// Whether a kHostPath may be shown as it is, with all that is in it, where nothing in it can be
/// hidden. kInvalid: it is not there, is hidden (`hidden`: real paths), or holds something that is.
base::Result<void> check_host_path(const job::Volume& volume,
                                   const std::vector<std::filesystem::path>& hidden);

}  // namespace muster::engine
