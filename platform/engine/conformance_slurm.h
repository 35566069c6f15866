// For tests: the common parts of the tests of the Slurm engine on a real cluster. SLURM_CONF names
// the cluster, MUSTER_SLURM_REST its slurmrestd if that is to be used, MUSTER_ENGINE_CONTROL a
// socket by which its daemons are killed and started (tests/slurm_engine.py).
#pragma once

#include <filesystem>
#include <string>

#include "engine/conformance.h"
#include "engine/slurm/options.h"

namespace muster::engine {

/// The name of a test's server, which is part of the names of its jobs.
std::string test_owner(const std::filesystem::path& jobs_folder);

slurm::SlurmEngineOptions test_options(BenchOptions options, node::Sharing sharing);

/// Cancels all jobs of that server and waits until they are over.
void clear_slurm(const std::filesystem::path& jobs_folder);

/// Has something done to the cluster: "kill_controller", "kill_node n2", "cancel 17".
void control_cluster(const std::string& what);

}  // namespace muster::engine
