// The scheduler, and how jobs and the time are shown to it.
//
// On the EventLoop's thread; the clock and the nodes must outlive it.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "control/job_table.h"
#include "control/node_table.h"
#include "schedule/scheduler.h"

namespace muster::control {

/// A clock that never goes back: if the machine's clock is set back, waiting gangs must not wait
/// longer by that much.
class ForwardClock : public base::Clock {
 public:
  /// `clock` must outlive it.
  explicit ForwardClock(const base::Clock& clock) : clock_(clock), last_seen_(clock.now()) {}

  /// Stands still while the clock beneath goes back, and continues with it from there.
  base::Time now() const override {
    const base::Time seen = clock_.now();
    if (seen < last_seen_) lead_ += last_seen_ - seen;
    last_seen_ = seen;
    return seen + lead_;
  }

  /// A time of the clock beneath as a time of this clock; never later than now.
  base::Time of(base::Time time) const {
    const base::Time present = now();
    return std::min(time + lead_, present);
  }

 private:
  const base::Clock& clock_;
  mutable base::Time last_seen_;
  mutable std::chrono::nanoseconds lead_{0};
};

/// How a running gang differs from its spec.
struct GangShape {
  /// For the scheduler, the gang has this many workers, which were placed; nothing: by all workers
  /// of the spec.
  std::optional<int> workers;
  std::vector<std::string> excluded_nodes;  ///< beside the nodes that the job avoids
  /// Places that the scheduler has offered, by seat, and to which no worker was sent.
  std::map<int, schedule::TaskPlace> offered;
  std::vector<int> leaving;  ///< seats whose tasks were evicted, and have not ended
  bool all_leave = false;    ///< all tasks end, and none keeps its place
};

class SchedulerBook {
 public:
  /// `runs_pods`: as Engine::runs_pods().
  SchedulerBook(const schedule::Options& options, const base::Clock& clock, const NodeTable& nodes,
                bool runs_pods = false)
      : clock_(clock), scheduler_(options), nodes_(nodes), runs_pods_(runs_pods) {}

  schedule::Scheduler& scheduler() { return scheduler_; }
  const schedule::Scheduler& scheduler() const { return scheduler_; }
  base::Time now() const { return clock_.now(); }
  const ForwardClock& clock() const { return clock_; }
  /// For a timer that waits for `time`. A minute at most, for the clock may be set back meanwhile.
  std::chrono::nanoseconds delay_until(base::Time time) const;

  /// When the job started, as a time of clock(); never in the future.
  base::Time start_of(const job::Job& job) const {
    return job.started ? clock_.of(*job.started) : clock_.now();
  }

  schedule::Gang gang_of(const job::Job& job, uint64_t sequence) const;
  schedule::Gang gang_of(const JobEntry& entry, const GangShape& shape = {}) const;

  /// NodeTable::has(); and the tasks on these nodes hold no more GPUs together than there are. A
  /// gang that holds these places must not start otherwise.
  bool still_has(const SeatPlaces& places) const;

  /// The gang runs on the places of its tasks. If the scheduler has the gang already, it keeps what
  /// it was promised.
  void adopt(const JobEntry& entry, const GangShape& shape);
  /// The same for a gang that the scheduler has already, with other places or seats: it keeps no
  /// promise.
  void replace(const JobEntry& entry, const GangShape& shape);
  /// All tasks of a running gang are being stopped. The scheduler expects their end after the grace
  /// of the job, or after a minute if the grace is longer, with a minute to spare.
  void leaves(const job::Job& job);
  /// Gives these seats of a running gang back.
  void free_seats(const std::string& id, const std::vector<int>& seats);

 private:
  schedule::Gang gang_with_options(const job::Job& job, uint64_t sequence,
                                   std::optional<int> workers) const;

  ForwardClock clock_;
  schedule::Scheduler scheduler_;
  const NodeTable& nodes_;
  const bool runs_pods_;
};

}  // namespace muster::control
