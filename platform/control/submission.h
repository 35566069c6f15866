// What jobs may ask of the hosts that their containers run on.
//
// A path of a host, mounted into a container whose programs are root, and some rights of root make
// whoever submits root on that host. The one user of a server of their own is that by its engine
// anyway; of a server that is shared an administrator says what its jobs may.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/spec.h"

namespace muster::control {

struct ContainerPolicy {
  bool is_shared = false;  ///< false: jobs may ask for all there is
  /// The paths that may be mounted, each by itself: what is below one of them was left there by
  /// jobs, and may lead elsewhere.
  std::vector<std::string> host_paths;
  std::vector<std::string> capabilities;  ///< "SYS_PTRACE"
};

/// kRefused, with a fault for each that is not allowed.
base::Result<void> check_container_policy(const job::JobSpec& spec, const ContainerPolicy& policy);

// Which of Slurm's accounts and reservations a job may name.
//
// To Slurm all jobs are one user's, the server's: what that user may use, each of them could. On a
// server that is shared another project's account is another's money, and a reservation another's
// nodes. An account, once it is settled, is what Slurm itself judges partitions and QOS by.
//
// Pure.

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
