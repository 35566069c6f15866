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
// The root of a sandbox: a fresh one with the machine's entries in it. Only so can /generated and
// /storage exist without anything being made in the machine's own root. The same is done for every
// folder below it in which something is shown that the machine lacks.
//
// Pure but for looking at which entries folders have.

using BubblewrapWords = std::vector<std::string>;

inline void append_words(BubblewrapWords& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

/// The words for bubblewrap that make the root and the other fresh folders of `plan`, hide what is
/// `hidden`, and show the mounts. `places`: more paths that something will be mounted at. `held`:
/// folders of the machine that a task must not be able to move. `secret`: hidden in what the
/// configuration shows, too.
BubblewrapWords root_words(const MountPlan& plan, const std::vector<std::filesystem::path>& hidden,
                           const std::vector<std::filesystem::path>& places,
                           const std::vector<std::filesystem::path>& held,
                           const std::vector<std::filesystem::path>& secret = {},
                           const BubblewrapWords& devices = {});

/// The words that show what the configuration shows, but for what is `secret`.
void show_configured(const Mount& mount, const std::vector<std::filesystem::path>& secret,
                     BubblewrapWords& words);

/// Gives the places for temporary files that the sandbox makes a size of `bytes` each.
void limit_temporary_places(int64_t bytes, BubblewrapWords& words);

/// The words that hide this where the machine's root is shown as it is, and hold the folders above.
void hold_and_hide(const std::vector<std::filesystem::path>& hidden, BubblewrapWords& words);

// --- the whole command

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
/// `is_team`: settings of the kernel are read-only. If this process is root, so is the machine
/// itself, and tasks lose the rights of root that reach beyond a sandbox.
///
/// `devices`: make a /dev in which devices are closed (device_files.h); empty: all are open.
base::Result<std::vector<std::string>> sandbox_command(
    const launch::TaskPlan& plan, const TaskFolder& folder, const std::vector<Mount>& mounts,
    const std::vector<std::filesystem::path>& hidden, bool shared = false,
    const std::vector<std::filesystem::path>& secret = {}, bool is_team = false,
    const BubblewrapWords& devices = {});

/// What to do about a sandbox that could not be made.
std::string sandbox_advice();

}  // namespace muster::engine
