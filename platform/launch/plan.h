// Expands a job into the plans of its tasks: their names, addresses, keys, hostfile and variables.
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

/// The text form, stored (sealed) while the gang runs. Parsing returns nothing if the text is not a
/// seed.
std::string to_text(const GangSeed& seed);
std::optional<GangSeed> seed_of(std::string_view text);

/// Facts about the place where the tasks will run.
struct Site {
  std::string sshd = "/usr/sbin/sshd";
  std::string user;        ///< the user of the tasks
  std::string programs;    ///< folder of Muster's programs on the machine; empty: unknown
  std::string rank_agent;  ///< `RANK_AGENT --rank PROGRAM...` diverts a rank's output; empty: none
  /// The folder that a task sees as its own generated one: /generated, or a path of the host
  /// without a sandbox.
  std::function<std::string(std::string_view task)> generated_folder;
  /// The names of a node's GPUs for CUDA_VISIBLE_DEVICES; empty if the node has none. A GPU without
  /// a name, or behind the last one, is identified by its number. Not set: no node has GPUs.
  std::function<std::vector<std::string>(const std::string& node)> gpus_of;
  job::ImageStandIns images;  ///< for an engine that does not run images
  Reach reach = Reach::kLoopback;
  /// kHosts: the address of a node, by the node's name.
  std::function<std::string(const std::string& node)> address_of;
  /// For an engine that runs images: the images of the gang's tasks, by task.
  std::map<std::string, ImageFacts> image_facts;
  /// `REMOTE_SHELL HOST COMMAND...` is Muster's own remote shell (engine/rsh/), as the tasks see
  /// it; empty: none.
  std::string remote_shell;
  /// If a cluster starts ranks (job::LaunchBy::kSrun): its srun as a launcher sees it, and `JOINER
  /// --join TASKS PROGRAM...` as the nodes see it, which moves such a rank into its task. Empty:
  /// none.
  std::string srun;
  std::string joiner;
  job::LaunchBy launch = job::LaunchBy::kSsh;  ///< the result of choose_launch()
  std::map<std::string, std::string> secrets;  ///< name -> value, of the job's secrets
};

/// How the ranks of a job are started, and why, for people: according to the spec and to what the
/// images have; without images, to what the machine has. kRefused: the requested way is impossible
/// ("--launch ssh" with an image without sshd, "--launch srun" without Slurm, a generated folder with a
/// blank in its path).
base::Result<job::LaunchFacts> choose_launch(const job::Job& job, const Site& site);

/// Plans the placed tasks (the program of a task: plan_task.h). An elastic gang may have fewer
/// workers than its spec requests: the others are not in any hostfile. kInternal: the deciding task
/// was not placed; kNotFound: the site lacks a secret of the job; kInvalid: the value of a secret
/// cannot be a variable.
base::Result<GangPlan> plan_gang(const job::Job& job, const GangSeed& seed, const Site& site);

/// Workers that join a running gang, in two steps: running tasks get the names and addresses of the
/// new ones; the new ones start.
struct Growth {
  std::vector<FileChange> before;
  std::vector<TaskPlan> joining;
};

/// `joining`: names of tasks of the job that were placed and never started. `seed` is the seed of
/// the attempt, so the running tasks keep the keys, addresses and ports of plan_gang(). Errors: as
/// plan_gang().
base::Result<Growth> plan_growth(const job::Job& job, const std::set<std::string>& joining,
                                 const GangSeed& seed, const Site& site);

/// The new lists of members for the running tasks: hostfile and discover_hosts.sh of a kMpi job;
/// nothing for the other kinds, whose programs find each other. `members`: the names of the workers
/// that answer and stay. kInternal: the job has no such worker.
base::Result<std::vector<FileChange>> plan_membership(const job::Job& job,
                                                      const std::set<std::string>& members);

}  // namespace muster::launch
