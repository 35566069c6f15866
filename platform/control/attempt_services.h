// The objects that the parts of one attempt (Attempt, GangStart, RankWatch, Resizing, Joining) use.
// No other part of the controller uses it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/event_loop.h"
#include "control/job_table.h"
#include "control/journal.h"
#include "control/launch_planner.h"
#include "control/metrics.h"
#include "control/node_table.h"
#include "control/scheduler_book.h"
#include "engine/engine.h"

namespace muster::control {

/// How fast, and how often, gangs that resize while they run do so.
struct ResizePace {
  /// Between the time that the members learn that a worker leaves and the time that it is stopped:
  /// programs that use discover_hosts.sh run it once a second.
  std::chrono::milliseconds notice{2'000};
  /// After a worker was lost soon after its start, or could not join: before the next worker joins.
  /// Doubled each time, up to 60 times this.
  std::chrono::milliseconds rest{1'000};
  /// The most workers that may join one attempt, beside the workers that it began with: each has a
  /// name, a port and a log until the attempt ends.
  size_t most_joiners = 1'000;
};

struct AttemptServices {
  base::EventLoop& loop;
  engine::Engine& engine;
  const base::Clock& clock;
  JobTable& jobs;
  Journal& journal;
  Metrics& metrics;
  const NodeTable& nodes;
  SchedulerBook& book;
  const LaunchPlanner& planner;
  ResizePace pace;
  /// Which cluster allocates the nodes of gangs ("Slurm"); empty: Muster's scheduler places them.
  std::string cluster;
};

/// One attempt as its parts see it.
struct AttemptContext {
  const AttemptServices& services;
  JobEntry& entry;
  std::weak_ptr<bool> alive;  ///< expires when the attempt is over

  job::Job& job() const { return entry.job; }
  engine::GangId gang() const { return {entry.job.id, entry.job.attempt}; }

  /// `action`, unless the attempt is over by the time that it is called.
  template <class Action>
  auto guarded(Action action) const {
    return [known = alive, action = std::move(action)](auto&&... arguments) mutable {
      if (!known.expired()) action(std::forward<decltype(arguments)>(arguments)...);
    };
  }
  void soon(std::function<void()> action) const { services.loop.post(guarded(std::move(action))); }
  void once_committed(std::function<void()> action) const {
    services.journal.once_committed(guarded(std::move(action)));
  }
  [[nodiscard]] base::EventLoop::Interest after(std::chrono::nanoseconds delay,
                                                std::function<void()> action) const {
    return services.loop.after(delay, guarded(std::move(action)));
  }
  void change() const { services.jobs.change(entry); }
  void note(job::Fact what) const { services.jobs.note(entry.job, std::move(what)); }
};

}  // namespace muster::control
