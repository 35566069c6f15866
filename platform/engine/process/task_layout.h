// The files in a task's folder before its shim starts: the generated files, the log, /etc/hosts,
// the user database, and the shim's plan (shim/plan.h).
//
// I/O; blocking.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/folder/mounts.h"
#include "engine/process/options.h"
#include "engine/shim/plan.h"
#include "launch/task_plan.h"

namespace muster::engine {

// --- the user database
//
// sshd runs every command through the user's login shell, and refuses a locked account. A task that
// answers ssh gets its own user database, so that a job does not depend on either.

/// `passwd` with /bin/sh as the shell of `user`. The shell nologin of a service account would
/// refuse every rank; bash would read the user's .bashrc, which takes time and may print. Pure.
std::string with_plain_shell(std::string_view passwd, std::string_view user);

/// A shadow file in which `user` has no password and is not locked. Without PAM, sshd refuses an
/// account whose password begins with '!', such as root on many machines. Pure.
std::string unlocked_shadow(std::string_view user);

// --- /etc/hosts
//
// The /etc/hosts of a sandboxed task is a file of the task's folder, mounted over the machine's
// file. The task cannot write to it. The mount refers to the file itself, so the file can grow, but
// it cannot be replaced by another file.

using HostNames = std::vector<std::pair<std::string, std::string>>;  ///< name -> address

/// The machine's /etc/hosts, with these names before its lines.
std::string hosts_file(const HostNames& names);

/// Appends the names that the file lacks. A reader sees only whole lines at any time. kConflict:
/// the file has one of the names with another address, which would win; nothing was added.
base::Result<void> add_hosts(const std::filesystem::path& file, const HostNames& names);

// --- the whole folder

/// Makes the task's folder and all its files. After an error, the files made so far stay; the error
/// names the file that could not be made. `cpus`: the CPUs that the
/// task is bound to; empty: any.
base::Result<void> lay_out_task(const launch::TaskPlan& plan, const TaskFolder& folder,
                                const VolumeFolders& volumes, const ProcessEngineOptions& options,
                                const std::vector<int>& cpus = {});

}  // namespace muster::engine
