// Expands a job into the plans of its tasks: who is called what, where each answers, which keys,
// hostfile and variables it finds.
//
// Pure: every random byte comes in as a GangSeed, so the same arguments give the same plan.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "job/job.h"
#include "job/machine_type.h"
#include "launch/task_plan.h"

namespace muster::launch {

/// The randomness of one attempt. Never stored: a new attempt has new keys, addresses and ports.
struct GangSeed {
  std::array<uint8_t, 32> client_key{};
  std::array<uint8_t, 32> host_key{};
  std::array<uint8_t, 32> rendezvous_key{};
  std::array<uint8_t, 8> network{};
};

GangSeed make_seed(base::RandomSource& random);

/// What the plan needs to know of the place where the tasks will run.
struct Site {
  std::string sshd = "/usr/sbin/sshd";
  std::string user;        ///< who the tasks run as
  std::string rank_agent;  ///< `RANK_AGENT --rank PROGRAM...` diverts a rank's output; empty: none
  /// The folder that a task sees as its own generated one: /generated, or a path of the host where
  /// nothing is sandboxed.
  std::function<std::string(std::string_view task)> generated_folder;
  /// What CUDA_VISIBLE_DEVICES calls each GPU of a node; empty where the node has none. Not set: no
  /// node has any.
  std::function<std::vector<std::string>(const std::string& node)> gpus_of;
  job::ImageStandIns images;                   ///< for an engine that runs none
  std::map<std::string, std::string> secrets;  ///< name -> value, of those that the job uses
};

/// (What each task runs: launch/program.h.)
///
/// Plans the tasks that were placed. An elastic gang may have fewer workers than its spec asks for:
/// the others are in no hostfile, and nobody is told of them. kInternal where the task that decides
/// has no place; kNotFound where the site lacks a secret of the job; kInvalid where a secret cannot
/// be the variable that it should be.
base::Result<GangPlan> plan_gang(const job::Job& job, const GangSeed& seed, const Site& site);

}  // namespace muster::launch
