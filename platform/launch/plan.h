// Expands a job into the plans of its tasks: who is called what, where each answers, which keys,
// hostfile and variables it finds.
//
// Pure: every random byte comes in as a GangSeed, so the same arguments give the same plan.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "job/job.h"
#include "job/machine_type.h"
#include "launch/choose_launch.h"
#include "launch/task_plan.h"

namespace muster::launch {

/// The randomness of one attempt. Never stored: a new attempt has new keys, addresses and ports.
struct GangSeed {
  std::array<uint8_t, 32> client_key{};
  std::array<uint8_t, 32> host_key{};
  std::array<uint8_t, 32> rendezvous_key{};
  std::array<uint8_t, 8> network{};
  std::array<uint8_t, 32> rsh_key{};

  bool operator==(const GangSeed&) const = default;
};

GangSeed make_seed(base::RandomSource& random);

/// As text, for keeping one (sealed) while its gang runs; nothing where the text is no seed.
std::string to_text(const GangSeed& seed);
std::optional<GangSeed> seed_of(std::string_view text);

/// What the plan needs to know of the place where the tasks will run.
struct Site {
  std::string sshd = "/usr/sbin/sshd";
  std::string user;        ///< who the tasks run as
  std::string programs;    ///< folder of Muster's programs on the machine; empty: unknown
  std::string rank_agent;  ///< `RANK_AGENT --rank PROGRAM...` diverts a rank's output; empty: none
  /// The folder that a task sees as its own generated one: /generated, or a path of the host where
  /// nothing is sandboxed.
  std::function<std::string(std::string_view task)> generated_folder;
  /// What CUDA_VISIBLE_DEVICES calls each GPU of a node; empty where the node has none. Not set: no
  /// node has any.
  std::function<std::vector<std::string>(const std::string& node)> gpus_of;
  job::ImageStandIns images;  ///< for an engine that runs none
  Reach reach = Reach::kLoopback;
  /// kHosts: the address of a node, by its name.
  std::function<std::string(const std::string& node)> address_of;
  /// For an engine that runs images: those of the gang's tasks, by the task's name.
  std::map<std::string, ImageFacts> image_facts;
  /// `REMOTE_SHELL HOST COMMAND...` is Muster's own remote shell (engine/rsh/), as the tasks see
  /// it; empty: there is none.
  std::string remote_shell;
  /// Where a cluster starts ranks (job::LaunchBy::kSrun): its srun, as a launcher sees it, and
  /// `JOINER --join TASKS PROGRAM...`, as the nodes have it, which brings such a rank into its
  /// task. Empty: there is none.
  std::string srun;
  std::string joiner;
  job::LaunchBy launch = job::LaunchBy::kSsh;  ///< what choose_launch() came to
  std::map<std::string, std::string> secrets;  ///< name -> value, of those that the job uses
};

/// How the ranks of a job are to be started, and why, for people: by what the spec asks for, and by
/// what the images have; an engine that runs none has what the machine has. kRefused: what is asked
/// for cannot be had ("--launch ssh" of an image without sshd, "--launch srun" without Slurm).
base::Result<job::LaunchFacts> choose_launch(const job::Job& job, const Site& site);

/// (What each task runs: launch/program.h.)
///
/// Plans the tasks that were placed. An elastic gang may have fewer workers than its spec asks for:
/// the others are in no hostfile, and nobody is told of them. kInternal where the task that decides
/// has no place; kNotFound where the site lacks a secret of the job; kInvalid where a secret cannot
/// be the variable that it should be.
base::Result<GangPlan> plan_gang(const job::Job& job, const GangSeed& seed, const Site& site);

/// Workers that join a gang that runs, in two steps: those that are there learn their names and
/// where they answer; the new ones start.
struct Growth {
  std::vector<FileChange> before;
  std::vector<TaskPlan> joining;
};

/// `joining`: names of tasks of the job that have a place and were never started. The seed is that
/// of the attempt: keys, addresses and ports of the tasks that run are those that plan_gang() gave
/// them. Errors as there.
base::Result<Growth> plan_growth(const job::Job& job, const std::set<std::string>& joining,
                                 const GangSeed& seed, const Site& site);

/// What the tasks that run and have not left are told of who takes part from now on: hostfile and
/// discover_hosts.sh of a kMpi job; nothing for the other kinds, whose programs ask each other.
/// `members`: the names of the workers that answer and stay. kInternal where the job has no such
/// worker.
base::Result<std::vector<FileChange>> plan_membership(const job::Job& job,
                                                      const std::set<std::string>& members);

}  // namespace muster::launch
