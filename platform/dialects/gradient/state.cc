#include "dialects/gradient/state.h"

#include <algorithm>

namespace muster::dialects::gradient {

namespace {

bool is_ending(const job::Job& job) {
  return job.stop_requested || job.eviction.has_value();
}

std::string_view state_in_queue(const job::Job& job) {
  const bool never_released = job.spec.held && job.suspended && job.attempt == 0;
  return never_released ? "created" : "pending";
}

std::string_view state_at_start(const job::Job& job) {
  if (is_ending(job)) return "network teardown";
  const bool some_run = std::any_of(job.tasks.begin(), job.tasks.end(), [](const job::Task& task) {
    return task.phase == job::TaskPhase::kRunning;
  });
  return some_run ? "network setup" : "provisioning";
}

std::string_view state_while_running(const job::Job& job) {
  const bool leader_ended =
      !job.tasks.empty() && job::deciding_task(job).phase == job::TaskPhase::kEnded;
  return leader_ended || is_ending(job) ? "network teardown" : "running";
}

}  // namespace

std::string_view state_of(const job::Job& job) {
  switch (job.phase) {
    case job::Phase::kQueued:
      return state_in_queue(job);
    case job::Phase::kStarting:
      return state_at_start(job);
    case job::Phase::kRunning:
      return state_while_running(job);
    case job::Phase::kSucceeded:
      return "stopped";
    case job::Phase::kFailed:
      return has_started(job) ? "failed" : "error";
    case job::Phase::kStopped:
      return has_started(job) ? "stopped" : "canceled";
  }
  return "undefined";
}

bool has_started(const job::Job& job) {
  return job.started.has_value();
}

}  // namespace muster::dialects::gradient
