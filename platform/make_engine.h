// How main.cc makes engines of what a server was told, and where Muster's own programs are.
//
// Blocking: files of the configuration are read, hosts and clusters are met.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "config/serve_options.h"
#include "engine/container/options.h"
#include "engine/engine.h"
#include "engine/kubernetes/options.h"
#include "engine/process/accounts.h"
#include "engine/process/way_out.h"
#include "engine/slurm/options.h"

namespace muster {

/// The folder of this program, and of what else users call: runai, gradient, horovodrun.
std::filesystem::path programs_folder();

/// The shim stands beside this program where it was built, and in ../libexec where it is installed.
std::filesystem::path shim_path();

/// Muster's own remote shell; empty: it was left out.
std::string remote_shell_path();

/// The engine that the options name.
///
/// Errors: kInvalid: a text of the options cannot be read; those of the engine.
base::Result<std::unique_ptr<engine::Engine>> make_engine(base::EventLoop& loop,
                                                          const std::filesystem::path& jobs_folder,
                                                          const config::ServeOptions& options);

/// Where a server that listens takes the ids of its users from. Tries it out, which takes some
/// milliseconds.
///
/// kUnavailable, or kInvalid: why all tasks run under the account of the server.
base::Result<engine::AccountSource> account_source(const config::ServeOptions& options);

/// The hosts that containers run on.
base::Result<std::vector<engine::ContainerHostOptions>> container_hosts(
    const config::ServeOptions& options);

/// What the way out of jobs' networks is made of.
///
/// kInvalid: an address or a network of the options cannot be read.
base::Result<engine::WayOutOptions> way_out_options(const config::ServeOptions& options,
                                                    const std::filesystem::path& jobs_folder);

/// How Slurm is asked and where nodes call back; nothing of the folder of the jobs.
engine::slurm::SlurmEngineOptions slurm_options(const config::ServeOptions& options);

/// How the cluster of Kubernetes is reached, and its pods are made; nothing of the folder of the jobs.
///
/// kInvalid: options that contradict each other.
base::Result<engine::kubernetes::KubernetesOptions> kubernetes_options(
    const config::ServeOptions& options);

}  // namespace muster
