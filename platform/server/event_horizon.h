// Up to which time all events of jobs are known and kept.
//
// Events are noted one after the other, each with a later time than all before, and are told once
// they are committed, by the feed of changes, job by job. Whoever reads them in between could see a
// job's newest before an older one of another job that is yet to be told; so nobody reads past this
// time.
//
// On the EventLoop's thread. One for all watchers, made before them: the feed calls it first.
#pragma once

#include <memory>

#include "base/clock.h"
#include "control/controller.h"

namespace muster::server {

class EventHorizon {
 public:
  /// The controller must outlive it.
  explicit EventHorizon(control::Controller& controller);

  /// Of the events there are, the last that may be read.
  base::Time time();

 private:
  void look_at_all();
  void look_at_changes();

  control::Controller& controller_;
  control::FeedPosition at_;
  base::Time time_{};
  bool known_ = false;  ///< asked for at all
  std::shared_ptr<void> feed_watch_;
};

}  // namespace muster::server
