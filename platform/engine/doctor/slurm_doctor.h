// Whether the Slurm engine can run jobs: Slurm's programs, its controller, what its nodes are,
// slurmrestd, the accounting database, PMIx, and whether nodes can call back here.
//
// look_at_slurm() (slurm_look.cc) asks and blocks for some seconds at most; diagnose() is pure.
// Nothing that is secret is among the facts: no token, no credential of munge.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/doctor/programs.h"
#include "engine/slurm/options.h"
#include "engine/slurm/slurm_client.h"
#include "job/diagnosis.h"

namespace muster::engine::doctor {

struct SlurmPlaces {
  slurm::SlurmEngineOptions options;     ///< what of them is about asking and being called back
  std::vector<std::string> environment;  ///< of the server: NAME=value
  std::filesystem::path jobs_folder;     ///< need not be there yet
  bool server_runs = false;              ///< which has the port then, perhaps
  /// Where configurations and sockets of Slurm are looked for, for tests.
  std::filesystem::path root = "/";
};

/// A slurmrestd, or why it does not answer.
struct RestFacts {
  std::string place;
  bool is_configured = false;
  base::Result<slurm::ClientFacts> answer = base::Error{};
};

struct SlurmFacts {
  /// Of sbatch, srun, squeue, scontrol, scancel, sinfo: their versions. "ping", "config", "nodes",
  /// "mpi", "munge", "dbd".
  Answers answers;
  std::string config_file;  ///< empty: none was found
  std::optional<RestFacts> rest;
  bool has_node_program = false;
  std::filesystem::path programs;
  std::string programs_on_nodes;  ///< empty: as here

  std::string bind;
  uint16_t port = 0;  ///< that nodes call; 0: none is chosen yet
  bool server_runs = false;
  std::optional<base::Error> cannot_bind;
  std::vector<std::string> hosts;  ///< that nodes are given

  node::Sharing sharing = node::Sharing::kAuto;
  std::filesystem::path folder;  ///< of the jobs
  std::string file_system;       ///< that it is on: "nfs", "ext4"; empty: not known
};

SlurmFacts look_at_slurm(const SlurmPlaces& places);
job::Diagnosis diagnose(const SlurmFacts& facts);

/// Whether the machines of a cluster see one file system of this type. nullopt: it may be.
std::optional<bool> is_shared_type(const std::string& file_system);

}  // namespace muster::engine::doctor
