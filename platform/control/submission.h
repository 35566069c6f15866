// The conditions on which the server accepts a new job: a valid spec, in a project that takes
// jobs, with every secret and file that it names, within the policies of this server.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/accounts.h"
#include "control/job_table.h"
#include "control/projects.h"
#include "engine/engine.h"
#include "job/machine_type.h"
#include "job/spec.h"

namespace muster::control {

/// The resources that jobs may use of the hosts that their containers run on.
///
/// A path of the host that is mounted into a container whose programs are root, and some
/// capabilities, make the submitter root on that host. The only user of a private server is root
/// there anyway; on a shared server the administrator decides about them.
struct ContainerPolicy {
  bool is_shared = false;  ///< false: jobs may use everything
  /// The paths that may be mounted. Paths below them may not: jobs can put links there.
  std::vector<std::string> host_paths;
  std::vector<std::string> capabilities;  ///< "SYS_PTRACE"
};

/// Which of Slurm's accounts and reservations a job may name.
///
/// For Slurm all jobs are jobs of the server's user, and each of them could use what that user may
/// use. On a shared server the account of another project is another project's money, and its
/// reservation another project's nodes. Slurm itself checks partitions and QOS by the account.
struct SlurmPolicy {
  bool is_shared = false;  ///< false: jobs may name any
  /// Accounts of projects: jobs of a project may name its own (job/slurm_account.h).
  std::map<std::string, std::string> accounts;
  std::string default_account;
  std::vector<std::string> job_accounts;      ///< every job may name these
  std::vector<std::string> job_reservations;  ///< and these
};

/// Which objects of Kubernetes a job may name. Pods use them with the rights of the server, and each
/// of them may belong to another project.
struct KubernetesPolicy {
  bool is_shared = false;  ///< false: jobs may name any
  std::vector<std::string> service_accounts;
  std::vector<std::string> priority_classes;
  std::vector<std::string> pull_secrets;
  std::vector<std::string> claims;
  std::vector<std::string> devices;  ///< no quota counts them
};

/// The reasons why a server cannot isolate the jobs of one project from those of another.
struct SeparationGaps {
  bool is_root = false;         ///< its tasks run as root, all under one account
  bool shares_network = false;  ///< its tasks share the machine's network

  bool any() const { return is_root || shares_network; }
};

/// This server's machine and its policies.
struct SiteFacts {
  std::string sshd = "/usr/sbin/sshd";
  std::string user;
  std::string programs;  ///< folder of the commands that users call; empty: unknown
  std::string rank_agent;
  std::string remote_shell;     ///< path of muster-rsh; empty: not installed
  job::ImageStandIns images;    ///< for engines that run no images
  ContainerPolicy containers;   ///< for engines that do
  SlurmPolicy slurm;            ///< for engines that submit to Slurm
  KubernetesPolicy kubernetes;  ///< for engines that run pods
  SeparationGaps gaps;          ///< if there are any, one project at a time has jobs
  /// Jobs of users are isolated from each other and from the server, as those of a server for a team.
  /// Otherwise jobs that users submitted earlier wait.
  bool isolates_users = true;
  /// Tasks run under the Unix accounts that users have (access::User::account).
  bool runs_as_accounts = false;
  /// Why jobs cannot run under a Unix account. Not set: no user can have an account.
  std::function<std::vector<base::Fault>(const std::string& account)> account_faults;
  /// Whether this tree of files was uploaded to the project. Not set: no tree was.
  std::function<bool(const std::string& project, const std::string& tree)> has_tree;
  /// Checks, before anything is recovered, that this server can take over these jobs, which run by
  /// the store. An error keeps the server from starting. Not set: it can.
  std::function<base::Result<void>(const std::vector<const job::Job*>& running)> check_running;
  /// Called for each deleted project: another project of its name must not get its files.
  std::function<void(const std::string& project)> project_gone;
};

/// kRefused, with a fault for each path and capability that is not allowed.
base::Result<void> check_container_policy(const job::JobSpec& spec, const ContainerPolicy& policy);

/// kRefused, with a fault for each account and reservation that is not allowed.
base::Result<void> check_slurm_policy(const job::JobSpec& spec, const SlurmPolicy& policy);

/// kRefused, with a fault for each object that is not allowed.
base::Result<void> check_kubernetes_policy(const job::JobSpec& spec,
                                           const KubernetesPolicy& policy);

/// Errors: kInvalid with every fault of the spec; kNotFound: an unknown project, secret or tree;
/// kConflict: the name is taken, or the project has projects below it; kRefused by a policy.
base::Result<void> check_submission(const job::JobSpec& spec, const JobTable& jobs,
                                    const Projects& projects, const engine::Engine& engine,
                                    const SiteFacts& site, const Accounts* accounts);

/// `given` is a submission with the idempotency key of `stored`, the spec of a job or an array.
/// Fields that may change after a submission are not compared (labels, the limits of an array), nor
/// are annotations, which may hold the commit of the submitter's files.
/// `is_renamed`: the server chooses the name.
///
/// Errors: kConflict with a fault for each field in which they differ.
base::Result<void> check_repetition(const job::JobSpec& given, const job::JobSpec& stored,
                                    bool is_renamed);

/// The same as check_submission() without the check of the name.
base::Result<void> check_content(const job::JobSpec& spec, const JobTable& jobs,
                                 const Projects& projects, const engine::Engine& engine,
                                 const SiteFacts& site, const Accounts* accounts);

}  // namespace muster::control
