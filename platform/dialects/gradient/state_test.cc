#include "dialects/gradient/state.h"

#include <gtest/gtest.h>

#include <functional>

namespace muster::dialects::gradient {

namespace {

using job::Phase;
using job::TaskPhase;

/// Of a launcher and a worker.
job::Job mpi_job(Phase phase) {
  job::Job job;
  job.spec.kind = job::Kind::kMpi;
  job.spec.workers = 1;
  job.phase = phase;
  job.tasks = job::tasks_of(job.spec);
  return job;
}

struct Case {
  const char* expected;
  Phase phase;
  std::function<void(job::Job&)> change;
};

void nothing(job::Job&) {}

void start(job::Job& job) {
  job.attempt = 1;
  job.started = base::FakeClock().now();
}

const Case kCases[] = {
    {"created", Phase::kQueued, [](job::Job& job) { job.spec.held = job.suspended = true; }},
    // It was started, and waits for room.
    {"pending", Phase::kQueued, [](job::Job& job) { job.spec.held = true; }},
    {"pending", Phase::kQueued, nothing},
    // It ran, and was suspended since.
    {"pending", Phase::kQueued,
     [](job::Job& job) {
       job.spec.held = job.suspended = true;
       job.attempt = 1;
     }},
    {"provisioning", Phase::kStarting, nothing},
    {"network setup", Phase::kStarting,
     [](job::Job& job) { job.tasks[1].phase = TaskPhase::kRunning; }},
    {"network teardown", Phase::kStarting, [](job::Job& job) { job.stop_requested = true; }},
    {"running", Phase::kRunning, start},
    {"network teardown", Phase::kRunning,
     [](job::Job& job) { job.tasks[0].phase = TaskPhase::kEnded; }},
    // A worker that ends ends nothing.
    {"running", Phase::kRunning, [](job::Job& job) { job.tasks[1].phase = TaskPhase::kEnded; }},
    {"network teardown", Phase::kRunning,
     [](job::Job& job) { job.eviction = job::SuspendedByUser{}; }},
    {"stopped", Phase::kSucceeded, start},
    {"stopped", Phase::kStopped, start},
    {"canceled", Phase::kStopped, nothing},
    {"failed", Phase::kFailed, start},
    {"error", Phase::kFailed, nothing},
};

TEST(State, FollowsTheWayOfAJob) {
  for (const Case& one : kCases) {
    job::Job job = mpi_job(one.phase);
    one.change(job);
    EXPECT_EQ(state_of(job), one.expected) << job::to_string(one.phase);
  }
}

TEST(State, IsTheSameWithoutTasks) {
  EXPECT_EQ(state_of(job::Job{.phase = Phase::kRunning}), "running");
}

}  // namespace

}  // namespace muster::dialects::gradient
