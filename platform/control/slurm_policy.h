// Which of Slurm's accounts and reservations a job may name.
//
// To Slurm all jobs are one user's, the server's: what that user may use, each of them could. On a
// server that is shared another project's account is another's money, and a reservation another's
// nodes. An account, once it is settled, is what Slurm itself judges partitions and QOS by.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/spec.h"

namespace muster::control {

struct SlurmPolicy {
  bool is_shared = false;  ///< false: jobs may name all there is
  /// Those of the projects: each may name its own (job/slurm_account.h).
  std::map<std::string, std::string> accounts;
  std::string default_account;
  // What every job may name.
  std::vector<std::string> job_accounts;
  std::vector<std::string> job_reservations;
};

/// kRefused, with a fault for each that is not allowed.
base::Result<void> check_slurm_policy(const job::JobSpec& spec, const SlurmPolicy& policy);

}  // namespace muster::control
