// What a Controller is made of and told before it begins.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/random.h"
#include "control/accounts.h"
#include "control/submission.h"
#include "engine/engine.h"
#include "job/machine_type.h"
#include "store/store.h"

namespace muster::control {

struct Parts {
  base::EventLoop& loop;
  store::Store& store;
  engine::Engine& engine;
  const base::Clock& clock;
  base::RandomSource& random;
  /// Loaded by recover(), asked for the secrets of jobs. nullptr: there are none.
  Accounts* accounts = nullptr;
};

/// What the machine's side of launch::Site is.
struct SiteFacts {
  std::string sshd = "/usr/sbin/sshd";
  std::string user;
  std::string programs;  ///< folder of what users call; empty: unknown
  std::string rank_agent;
  std::string remote_shell;    ///< path of muster-rsh; empty: there is none
  job::ImageStandIns images;   ///< where the engine runs none
  ContainerPolicy containers;  ///< where it does
  SlurmPolicy slurm;           ///< where jobs are jobs of Slurm
  /// Whether these files were sent for the project. Not set: none ever were.
  std::function<bool(const std::string& project, const std::string& tree)> has_tree;
  /// Told of each project that is no more: what was its own must not become another's of that name.
  std::function<void(const std::string& project)> project_gone;
};

/// How fast jobs that resize while they run do so, and how often.
struct ResizePace {
  /// Between telling those who stay that a worker leaves, and stopping it: programs that look at
  /// discover_hosts.sh do so each second.
  std::chrono::milliseconds notice{2'000};
  /// After a worker that was lost soon after its start, or could not join: before the next one
  /// joins. Doubled each time, up to 60 times this.
  std::chrono::milliseconds rest{1'000};
  /// To one attempt, beside those whom it began with: it knows the names and ports of all of them,
  /// and of each there is a log.
  size_t most_joiners = 1'000;
};

}  // namespace muster::control
