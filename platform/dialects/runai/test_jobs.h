// Jobs for tests of the views and commands.
#pragma once

#include <chrono>
#include <string>

#include "job/job.h"

namespace muster::dialects::runai {

inline constexpr base::Time kNow{std::chrono::seconds{1'700'000'000}};

/// A running MPI job with a launcher and `workers` workers with one GPU each, all on gpu-7.
inline job::Job mpi_job(const std::string& name, int workers) {
  job::Job job;
  job.id = "id-" + name;
  job.spec = {.name = name,
              .project = "team-a",
              .kind = job::Kind::kMpi,
              .image = "demo/quickstart",
              .command = {"true"},
              .workers = workers,
              .resources = {.gpus = 1}};
  job.owner = "ada";
  job.phase = job::Phase::kRunning;
  job.attempt = 1;
  job.submitted = kNow - std::chrono::minutes(5);
  job.started = kNow - std::chrono::minutes(4);
  job.tasks = job::tasks_of(job.spec);
  int device = 0;
  for (job::Task& task : job.tasks) {
    task.phase = job::TaskPhase::kRunning;
    task.node = "gpu-7";
    task.started = kNow - std::chrono::minutes(4);
    if (task.role != job::TaskRole::kWorker) continue;
    task.devices = {device++};
    task.gpu_share_milli = 1000;
  }
  return job;
}

/// The same job before it was placed.
inline job::Job waiting_job(const std::string& name, int workers) {
  job::Job job = mpi_job(name, workers);
  job.phase = job::Phase::kQueued;
  job.attempt = 0;
  job.started.reset();
  job.tasks = job::tasks_of(job.spec);
  job.reason = job::Remark{"needs 2 GPUs; 1 is free"};
  return job;
}

/// The same job after its end: the launcher exited with `code`, and the workers were stopped.
inline job::Job ended_job(const std::string& name, int workers, job::Phase phase, int code = 0) {
  job::Job job = mpi_job(name, workers);
  job.phase = phase;
  job.ended = kNow - std::chrono::minutes(1);
  for (job::Task& task : job.tasks) {
    task.phase = job::TaskPhase::kEnded;
    task.exit = job::ExitStatus{.signal = 9, .stopped = true};
  }
  job.tasks.front().exit = job::ExitStatus{.code = code};
  return job;
}

}  // namespace muster::dialects::runai
