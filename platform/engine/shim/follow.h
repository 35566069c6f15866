// muster-shim --follow: tells what becomes of a task, from what its shim leaves in its folder
// (follow_wire.h). It only reads there, so any number may follow, and none of them is in the task's
// way: one whose reader is slow waits alone.
//
// Blocking; ends when the task has ended and everything was told, when nobody reads any more, or
// when `hang_up` tells of an end.
#pragma once

#include <cstdint>

#include "engine/shim/plan.h"

namespace muster::engine {

struct FollowPlan {
  TaskFolder folder;
  uint64_t log_offset = 0;
  uint64_t metrics_offset = 0;
  int output = 1;
  int hang_up = -1;  ///< its end ends this: a pipe or a socket
};

/// An exit code: 0 when all was told. REQUIRES: this process ignores SIGPIPE.
int follow(const FollowPlan& plan);

/// What the arguments behind "--follow" ask for, on this process's standard input and output.
int run_follow(char** arguments, int count);

}  // namespace muster::engine
