// The bubblewrap command line of a task.
//
// Pure, except that it reads which folders the machine has and which entries they have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/folder/mounts.h"
#include "engine/shim/plan.h"
#include "launch/task_plan.h"

namespace muster::engine {

// --- the root of a sandbox
//
// A sandbox gets a new, empty root folder, and the machine's entries are mounted into it one by
// one. Otherwise /generated and /storage would have to be made in the machine's own root. The same
// is done for each folder below the root in which a mount needs an entry that the machine lacks.

/// Arguments for bubblewrap.
using BubblewrapWords = std::vector<std::string>;

inline void append_words(BubblewrapWords& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

/// The arguments that make the root and the other new folders of `plan`, hide `hidden`, and mount
/// the mounts. `places`: further paths at which something will be mounted. `held`: folders of the
/// machine that a task must not be able to rename. `secret`: paths that are hidden even within
/// mounts of the configuration.
BubblewrapWords root_words(const MountPlan& plan, const std::vector<std::filesystem::path>& hidden,
                           const std::vector<std::filesystem::path>& places,
                           const std::vector<std::filesystem::path>& held,
                           const std::vector<std::filesystem::path>& secret = {},
                           const BubblewrapWords& devices = {});

/// Adds the arguments for a mount of the configuration, without `secret`.
void show_configured(const Mount& mount, const std::vector<std::filesystem::path>& secret,
                     BubblewrapWords& words);

/// Limits the size of each folder for temporary files that `words` makes to `bytes`.
void limit_temporary_places(int64_t bytes, BubblewrapWords& words);

/// Adds the arguments that hide `hidden` in a sandbox that sees the machine's root itself, and that
/// keep a task from renaming the folders above.
void hold_and_hide(const std::vector<std::filesystem::path>& hidden, BubblewrapWords& words);

// --- the whole command

/// The restrictions of tasks on a shared server.
enum class Confinement {
  kNone,
  /// Settings of the kernel are read-only. If this process is root, tasks lose the rights of root
  /// that reach beyond a sandbox.
  kRights,
  /// The same, and if this process is root, the machine is read-only.
  kMachine,
};

/// A state of a file: another one if another program replaces or changes the file.
struct FileState {
  uint64_t device = 0;
  uint64_t inode = 0;  ///< 0: there is no file
  int64_t changed =
      0;  ///< the time of its last change in nanoseconds since 1970, since inodes are reused

  bool operator==(const FileState&) const = default;
};

/// The machine's files that a task has its own version of, such as /etc/hosts. Root's sandboxes mount
/// over these files, so bubblewrap fails if another program replaces one of them in that moment. I/O.
std::vector<FileState> machine_files();

/// The bubblewrap command up to the task's own command. The task gets its own hostname, process
/// tree, /generated, /dev/shm and /etc/hosts, and the mounts. It sees the rest of the machine as it
/// is, except `hidden` (real_paths() of mounts.h): hidden folders are empty, hidden files are
/// absent. A hidden path that does not exist is ignored, since hiding it would create it.
/// kNotFound: bubblewrap is not installed; kInvalid: see plan_mounts().
///
/// `secret`: real paths that are hidden even within mounts of the configuration.
///
/// `shared`: protects hidden paths from other tasks. All tasks run as one account, so a task could
/// rename a folder of the machine, or replace it by a link, while a sandbox is being made for
/// another task. With `shared`, no task can rename a folder above a hidden path, and bubblewrap
/// resolves paths of the node where they are hidden already.
///
/// `confinement`: see Confinement. `has_account`: the inner half of the shim drops the capabilities
/// instead, once it has the ids of the task (shim/task_account.h).
///
/// `devices`: make a /dev in which devices are closed (device_files.h); empty: all are open.
base::Result<std::vector<std::string>> sandbox_command(
    const launch::TaskPlan& plan, const TaskFolder& folder, const std::vector<Mount>& mounts,
    const std::vector<std::filesystem::path>& hidden, bool shared = false,
    const std::vector<std::filesystem::path>& secret = {},
    Confinement confinement = Confinement::kNone, bool has_account = false,
    const BubblewrapWords& devices = {});

/// Advice for an error: bubblewrap could not make a sandbox on this machine. `settings`: see
/// needed_namespace_settings().
std::string sandbox_advice(bool has_bubblewrap, const std::vector<std::string>& settings);
std::string sandbox_advice();

}  // namespace muster::engine
