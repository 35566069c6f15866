// Follows a task of this node (engine/shim/follow.h) on a thread of its own, and tells its records
// on the loop's.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/shim/follow_wire.h"
#include "engine/shim/plan.h"

namespace muster::engine::slurm {

class RecordFollower {
 public:
  using Tell = std::function<void(FollowRecord)>;

  /// From these offsets on. `tell` may drop it.
  static base::Result<std::unique_ptr<RecordFollower>> start(base::EventLoop& loop,
                                                             const TaskFolder& folder,
                                                             uint64_t log_offset,
                                                             uint64_t metrics_offset, Tell tell);
  ~RecordFollower();

  /// Nothing is told meanwhile, and nothing lost.
  void pause(bool paused);

 private:
  RecordFollower(base::EventLoop& loop, Tell tell) : loop_(loop), tell_(std::move(tell)) {}
  void read();
  void tell_some();

  base::EventLoop& loop_;
  Tell tell_;
  FollowReader reader_;
  bool paused_ = false;
  std::thread thread_;
  base::UniqueFd hang_up_;  ///< the thread ends with it
  base::UniqueFd records_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  base::EventLoop::Interest readable_;  // after records_: it must go first
};

}  // namespace muster::engine::slurm
