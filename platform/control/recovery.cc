// How a new server takes up what an earlier one left, at whatever point that one died.
//
// What was committed says how far a job had come; the engine says what of it is there. A launcher
// that was ever started is taken up and never started again; a gang that had not come so far starts
// anew, as another attempt with new keys.
#include "control/controller.h"
#include "control/run.h"

namespace muster::control {

using engine::Found;
using engine::StopMode;
using engine::TaskEnded;
using job::Job;
using job::Phase;
using job::Task;
using job::TaskPhase;

Result<void> Controller::recover() {
  MUSTER_TRY(const std::vector<Job> stored, parts_.store.load());
  for (const Job& job : stored) jobs_.push_back(std::make_unique<Job>(job));
  for (const auto& job : jobs_) {
    if (job->phase == Phase::kStarting || job->phase == Phase::kRunning) take_up(*job);
  }
  wake();
  return {};
}

void Controller::take_up(Job& job) {
  Run& run = *(runs_[job.id] = std::make_unique<Run>());
  note(job, "taken up by a new server");
  for (Task& task : job.tasks) take_up_task(job, task);
  const Task& deciding = job::deciding_task(job);
  if (deciding.phase == TaskPhase::kPending) {
    // The keys and the plan of the launcher died with the server: a new attempt makes new ones.
    run.requeue = "the server was restarted while the job was starting; it starts again";
    end_gang(job, StopMode::kNow);
    return parts_.loop.post([this, id = job.id] {
      if (Job* late = by_id(id); late != nullptr && runs_.count(id) > 0) finish_if_over(*late);
    });
  }
  if (job.phase == Phase::kStarting) {
    job.phase = Phase::kRunning;
    job.started = deciding.started;
    job.reason = "runs";
  }
  commit(job);
  if (job.stop_requested) end_gang_gently(job);
}

void Controller::take_up_task(Job& job, Task& task) {
  if (task.phase == TaskPhase::kEnded) return;
  switch (parts_.engine.adopt(gang_of(job), task.name)) {
    case Found::kRunning:
    case Found::kEnded:
      task.phase = TaskPhase::kRunning;
      if (!task.started) task.started = parts_.clock.now();
      return;
    case Found::kNothing:
      if (job.phase == Phase::kStarting) {
        task.phase = TaskPhase::kPending;
        return;
      }
      task.phase = TaskPhase::kRunning;
      parts_.loop.post([this, gang = gang_of(job), name = task.name] {
        hear({.gang = gang,
              .task = name,
              .what = TaskEnded{.status = {.lost = true}, .time = parts_.clock.now()}});
      });
  }
}

}  // namespace muster::control
