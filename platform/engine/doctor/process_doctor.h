// Whether the process engine can run jobs on this machine: sandboxes, remote shells, MPI, GPUs.
//
// look_at_process() asks and blocks for some seconds at most; diagnose() is pure.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/doctor/programs.h"
#include "engine/process/cgroup_limits.h"
#include "engine/process/nvml.h"
#include "job/diagnosis.h"

namespace muster::engine::doctor {

/// What is looked at.
struct ProcessPlaces {
  std::vector<std::string> environment;  ///< of the server: NAME=value
  std::filesystem::path programs;        ///< the folder of muster-shim and its like
  std::filesystem::path sshd = "/usr/sbin/sshd";
  std::string nvml = "libnvidia-ml.so.1";
  std::string declared_gpus;     ///< as the server's configuration has it
  bool is_team = false;          ///< the server listens
  bool shares_network = false;   ///< as its configuration has it: tasks.network
  bool trusts_projects = false;  ///< trust_each_other
};

struct ProcessFacts {
  bool has_shim = false;
  bool has_remote_shell = false;
  std::filesystem::path programs;
  Answers answers;  ///< "bwrap", "sandbox", "ssh", "mpirun"
  bool has_sshd = false;
  std::filesystem::path sshd;
  base::Result<NvmlGpus> gpus = base::Error{};
  std::string declared_gpus;
  CgroupLimits limits;
  std::vector<GroupPlace> group_places;
  bool is_root = false;
  bool is_team = false;
  bool shares_network = false;
  bool trusts_projects = false;
  base::Result<void> network;  ///< whether a network for a job can be made
};

ProcessFacts look_at_process(const ProcessPlaces& places);
job::Diagnosis diagnose(const ProcessFacts& facts);

}  // namespace muster::engine::doctor
