// The files in a task's folder before its shim starts: the generated files, the log, /etc/hosts, the
// user database, and the shim's plan (shim/plan.h).
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
// The user database as a task that answers ssh should see it. sshd runs every command through the
// user's login shell and asks whether the account is locked; neither must decide whether a job
// runs.
//
// Pure.

/// `passwd` with /bin/sh as the shell of `user`: a service account's nologin would refuse every
/// rank, and bash would read the user's .bashrc first, which takes its time and may print.
std::string with_plain_shell(std::string_view passwd, std::string_view user);

/// A shadow file in which `user` has no password and is not locked either. Without PAM, sshd
/// refuses an account whose password begins with '!', as root's does on many machines.
std::string unlocked_shadow(std::string_view user);

// --- /etc/hosts
//
// The /etc/hosts of a task in a sandbox. It is a file of the task's folder on this machine, out of
// the task's reach, and mounted over the machine's own: the mount is of that very file, so it can
// grow but not be replaced.
//
// I/O; blocking.

using HostNames = std::vector<std::pair<std::string, std::string>>;  ///< name -> address

/// The machine's /etc/hosts with these names in front.
std::string hosts_file(const HostNames& names);

/// Adds those that it lacks, at its end. Whoever reads meanwhile finds whole lines. kConflict: the
/// file has a name under another address, which stands before; nothing was added.
base::Result<void> add_hosts(const std::filesystem::path& file, const HostNames& names);

// --- all of it
//
// What lies in a task's folder before its shim is started: what is generated for it, its log, and
// the shim's plan (shim/plan.h).
//
// I/O.

/// Makes the folder. What was made stays where something cannot be: errors name it. `cpus`: to
/// which the task is bound; empty: to none.
base::Result<void> lay_out_task(const launch::TaskPlan& plan, const TaskFolder& folder,
                                const VolumeFolders& volumes, const ProcessEngineOptions& options,
                                const std::vector<int>& cpus = {});

}  // namespace muster::engine
