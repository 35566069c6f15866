// What every task of a gang shares while it is planned. Of plan.cc and its parts alone.
//
// Values; a Gang lives as long as one plan_gang() call, and so do the job and the site in it.
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
  std::vector<const job::Task*> tasks;  ///< those that were placed
  GangNetwork network;                  ///< of each of these
  GangNetwork everyone;                 ///< of every task of the job, placed or not
  SshKey client_key;
  SshKey host_key;
  std::string rsh_key;                 ///< hexadecimal
  std::string rendezvous_key;          ///< hexadecimal
  std::vector<ShellHost> shell_hosts;  ///< those that answer a remote shell
  std::vector<SlotHost> slot_hosts;    ///< those that take ranks
  size_t workers = 0;                  ///< of an MPI job
  bool own_rank_output = false;

  bool is_by_agent() const { return site.launch == job::LaunchBy::kAgent; }
  bool is_by_srun() const { return site.launch == job::LaunchBy::kSrun; }
};

/// Of the image that a task runs in; nullptr: the engine runs none.
const ImageFacts* image_of(const GangContext& gang, const job::Task& task);

/// What the task runs, and where.
std::vector<std::string> argv_of(const GangContext& gang, const job::Task& task);
std::string folder_of(const GangContext& gang, const job::Task& task);

/// What stands in the way of what Muster sets: the user's variables, and over an image those.
Variables set_variables_of(const GangContext& gang, const job::Task& task);

/// Empty where the job has nothing to do with GPUs: no task of it claims one, and its node has
/// none that anybody else could claim.
Variables devices_of(const GangContext& gang, const job::Task& task);
std::vector<std::string> gpus_of(const GangContext& gang, const job::Task& task);

/// Whether ranks are started in it by a remote shell.
bool takes_ranks(const job::JobSpec& spec, job::Role role);

// What the tasks of an attempt share, drawn from its job and its seed: who takes part, where each
// answers, by which keys.
//
// Pure. Of plan.cc, growth.cc and their parts alone.

/// The tasks that have a place and have not left. Their addresses and ports are chosen for all
/// tasks that the job has ever had in this attempt, so that who comes and goes changes nobody
/// else's. `job` and `site` outlive the gang. Errors: as plan_gang().
base::Result<GangContext> gather_gang(const job::Job& job, const GangSeed& seed, const Site& site);

}  // namespace muster::launch
