// What the controller knows of a gang only while it holds room. Private to the controller's own
// files.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/event_loop.h"
#include "control/controller.h"
#include "launch/task_plan.h"

namespace muster::control {

/// Never stored: a restarted server does without it.
struct Controller::Run {
  launch::GangPlan plan;
  std::set<std::string> unanswered;    ///< workers whose sshd has not greeted
  bool stage_under_way = false;        ///< engine.start() has not reported yet
  bool ending = false;                 ///< everything was told to stop
  std::optional<std::string> requeue;  ///< why a new attempt follows when all has ended
  base::EventLoop::Interest start_timer;
  base::EventLoop::Interest last_words_timer;
};

}  // namespace muster::control
