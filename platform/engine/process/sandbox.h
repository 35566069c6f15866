// The bubblewrap command line of a task.
//
// Pure but for looking at which folders the machine has.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/folder/mounts.h"
#include "engine/shim/plan.h"
#include "launch/task_plan.h"

namespace muster::engine {

/// What a task of a server that several people share must not do to its machine.
enum class Confinement {
  kNone,
  /// Settings of the kernel are read-only. If this process is root, tasks lose the rights of root
  /// that reach beyond a sandbox.
  kRights,
  /// The same, and if this process is root, the machine is read-only.
  kMachine,
};

/// Everything up to the command: own hostname, process tree, /generated, /dev/shm, /etc/hosts, what
/// is mounted; the rest of the machine as it is, but for `hidden` (real_paths() of mounts.h): of
/// those folders it finds empty ones, of those files nothing. (One that is not there is left out:
/// to hide it would be to make it.) kNotFound where bubblewrap is not installed, with what to
/// install; kInvalid: as plan_mounts().
///
/// `secret`: real paths that stay hidden in mounts that the configuration shows.
///
/// `shared`: tasks are not to be trusted with what is hidden. They run as one account, so that one
/// may rename the machine's folders, or make a link of one, while a sandbox is being made for
/// another. Then no task can move a folder above what is hidden, and paths of the node are looked
/// up where that is hidden already.
///
/// `confinement`: see there.
base::Result<std::vector<std::string>> sandbox_command(
    const launch::TaskPlan& plan, const TaskFolder& folder, const std::vector<Mount>& mounts,
    const std::vector<std::filesystem::path>& hidden, bool shared = false,
    const std::vector<std::filesystem::path>& secret = {},
    Confinement confinement = Confinement::kNone);

/// What to do about a sandbox that could not be made.
std::string sandbox_advice();

}  // namespace muster::engine
