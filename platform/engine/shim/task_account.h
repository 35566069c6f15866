// Whose ids the programs of a task have, where a server gives its users accounts of their own.
//
// The sandbox is made by a process that is privileged over these ids: root, or the server's account
// in its id space (id_space.h). The inner half of the shim is the sandbox's first process. Before
// anything of the task runs, it gives up these rights for good:
//
//   1. It mounts terminals (devpts) that only this sandbox has.
//   2. It makes a user namespace, and the outer half maps ids into it: a range of sub-ids, so that root
//      in it is nobody outside; or for a Unix account all ids as they are, so that the kernel counts
//      the processes of this task alone (RLIMIT_NPROC). The mounts, processes and network of the
//      sandbox belong to the namespace outside, so that no right in it reaches them.
//   3. It takes the ids and drops the rights, and loads the filter of system calls.
//
// The files that a task gets are handed over to its ids before that, by hand_over(), which follows
// no link and does not touch files of other users.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

/// A line of /proc/PID/uid_map.
struct IdMapping {
  uint32_t inside = 0;
  uint32_t outside = 0;
  uint32_t count = 0;

  bool operator==(const IdMapping&) const = default;
};

struct TaskAccount {
  // As the machine has them.
  uint32_t uid = 0;
  uint32_t gid = 0;
  // As the task sees them. For a Unix account they are the same.
  uint32_t inside_uid = 0;
  uint32_t inside_gid = 0;
  std::vector<uint32_t> groups;  ///< further groups
  /// Of the user namespace of the task; empty: it has no namespace, because it has a Unix account
  /// and the machine does not let root create a namespace for it.
  std::vector<IdMapping> uids;
  std::vector<IdMapping> gids;

  bool has_namespace() const { return !uids.empty(); }

  bool operator==(const TaskAccount&) const = default;
};

/// The files that are given to the account of a task before the task starts.
struct HandedFiles {
  std::vector<std::string> own;     ///< files and folders that get the ids of the account
  std::vector<std::string> shared;  ///< folders of which each user of `shared_gid` may write all
  uint32_t shared_gid = 0;
  /// Folders whose files the server reads when the task has ended.
  std::vector<std::string> collected;
  /// The server is an ordinary account: it reads the folders through their group.
  bool is_read_by_group = false;

  bool operator==(const HandedFiles&) const = default;
};

// --- the outer half

/// The new owner of the files below a folder.
struct NewOwner {
  std::optional<uint32_t> uid;  ///< nothing: the owner stays
  uint32_t gid = 0;
  mode_t more_for_folders = 0;  ///< bits of the mode that are set, too
  mode_t more_for_files = 0;
  bool is_for_all =
      false;  ///< new files in the folders can be written by the group, whatever umask
};

/// Gives a file, or a folder with all that is in it. Follows no link and no mount, and gives only
/// entries that belong to this process's account, to the owner of the folder itself, or to the new
/// owner. The folder itself changes last: if it has its new owner already, nothing is done.
base::Result<void> hand_over(const std::string& path, const NewOwner& owner);

/// All of `files`, to a task of `account`.
base::Result<void> hand_over(const HandedFiles& files, const TaskAccount& account);

/// After the end of the task: lets a server that is an ordinary account read and remove the files.
void let_the_server_collect(const HandedFiles& files, const std::string& generated);

/// Maps the ids into the user namespace of the inner half, which has asked for it (kNeedsIds).
base::Result<void> map_ids(pid_t inner, const TaskAccount& account);

// --- the inner half, and --exec

inline constexpr std::string_view kNeedsIds = "ids";       ///< inner: map my ids
inline constexpr std::string_view kHasIds = "mapped";      ///< shim: they are mapped
inline constexpr std::string_view kTerminal = "terminal";  ///< inner: with the program's terminal

/// Mounts terminals of the task's own over /dev/pts and /dev/ptmx, which belong to its ids whoever
/// opens them; and for a task that is its own root, the folder that its sshd needs.
base::Result<void> make_own_places(const TaskAccount& account);

/// Makes the user namespace of the task and waits until its ids are mapped. `control`: the socket to
/// the outer half.
base::Result<void> make_own_users(int control);

/// Takes the ids of the account and drops all rights but those that its root has in its namespace.
/// This is irreversible.
base::Result<void> take_ids(const TaskAccount& account);

/// Sends a descriptor with kTerminal.
base::Result<void> send_terminal(int control, const base::UniqueFd& terminal);

}  // namespace muster::engine
