// Creates the process engine from the settings of a server, and finds Muster's own programs. The
// other engines are in make_other_engines.h.
//
// Blocking: reads files of the configuration, and connects to hosts and clusters.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "cli/connection/connection.h"
#include "config/serve_options.h"
#include "engine/engine.h"
#include "engine/process/accounts.h"
#include "engine/process/egress.h"

namespace muster {

/// The folder of this program and of the other programs that users call: runai, gradient,
/// horovodrun.
std::filesystem::path programs_folder();

/// The shim stands beside this program where it was built, and in ../libexec where it is installed.
std::filesystem::path shim_path();

/// Muster's own remote shell; empty: it was left out.
std::string remote_shell_path();

/// The engine for processes of this machine.
///
/// Errors: kInvalid: a text of the options cannot be read; those of the engine.
base::Result<std::unique_ptr<engine::Engine>> make_process_engine(
    base::EventLoop& loop, const std::filesystem::path& jobs_folder,
    const config::ServeOptions& options);

job::Diagnosis examine_process_engine(const cli::DoctorInput& input);

/// The source of the ids of a shared server's users. Tests the source, which takes some
/// milliseconds.
///
/// kUnavailable, or kInvalid: why all tasks run under the account of the server.
base::Result<engine::AccountSource> account_source(const config::ServeOptions& options);

/// The options of the Internet access of jobs' networks.
///
/// kInvalid: an address or a network of the options cannot be read.
base::Result<engine::EgressOptions> egress_options(const config::ServeOptions& options,
                                                   const std::filesystem::path& jobs_folder);

// The settings of all engines.

/// The files that the jobs of a shared server must not reach: with the unix socket, the key or the
/// database they could do everything that the server can. On a server for one user nothing is
/// hidden, because that user has these rights anyway, and jobs may submit other jobs.
base::Result<std::vector<std::filesystem::path>> hidden_from_jobs(
    const std::filesystem::path& jobs_folder, const config::ServeOptions& options);

/// Unpacks uploaded files of a project into a folder.
using UnpackTree = std::function<base::Result<void>(
    const std::string& project, const std::string& tree, const std::filesystem::path& folder)>;
UnpackTree tree_unpacker(const std::filesystem::path& jobs_folder);

engine::TaskLimits task_limits(const config::ServeOptions& options);

}  // namespace muster
