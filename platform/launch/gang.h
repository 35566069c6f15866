// The values that the tasks of an attempt share during planning, derived from the job and the seed:
// the members, their addresses, their keys. Other folders use only takes_ranks().
//
// Pure. A GangContext lives as long as one call of plan_gang() or plan_growth(); its job and site
// must outlive it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/job.h"
#include "launch/mpi_hosts.h"
#include "launch/network.h"
#include "launch/plan.h"
#include "launch/ssh_files.h"

namespace muster::launch {

struct GangContext {
  const job::Job& job;
  const Site& site;
  std::vector<const job::Task*> tasks;  ///< the placed tasks
  GangNetwork network;                  ///< of these tasks
  GangNetwork everyone;                 ///< of every task of the job, placed or not
  SshKey client_key;
  SshKey host_key;
  std::string rsh_key;                 ///< hexadecimal
  std::string rendezvous_key;          ///< hexadecimal
  std::vector<ShellHost> shell_hosts;  ///< the tasks that answer a remote shell
  std::vector<SlotHost> slot_hosts;    ///< the tasks that run ranks
  size_t workers = 0;                  ///< of an MPI job
  bool own_rank_output = false;

  bool is_by_agent() const { return site.launch == job::LaunchBy::kAgent; }
  bool is_by_srun() const { return site.launch == job::LaunchBy::kSrun; }
};

/// The image of a task; nullptr: the engine does not run images.
const ImageFacts* image_of(const GangContext& gang, const job::Task& task);

/// The program of a task and its working folder.
std::vector<std::string> argv_of(const GangContext& gang, const job::Task& task);
std::string folder_of(const GangContext& gang, const job::Task& task);

/// The variables that override Muster's: the user's, and, in an image, the image's.
Variables set_variables_of(const GangContext& gang, const job::Task& task);

/// Empty if GPUs do not concern the job: none of its tasks claims a GPU, and its node has no GPU
/// that another job could claim.
Variables devices_of(const GangContext& gang, const job::Task& task);
std::vector<std::string> gpus_of(const GangContext& gang, const job::Task& task);

/// Whether ranks are started in tasks of this role by a remote shell.
bool takes_ranks(const job::JobSpec& spec, job::TaskRole role);

/// The tasks that were placed and have not left. Addresses and ports are chosen for all tasks that
/// the job has had in this attempt, so that joining and leaving tasks do not change those of
/// others. `job` and `site` must outlive the gang. Errors: as plan_gang().
base::Result<GangContext> gather_gang(const job::Job& job, const GangSeed& seed, const Site& site);

}  // namespace muster::launch
