// Values for tests in which no field has its default, so that a field that is forgotten shows.
#pragma once

#include <string>
#include <utility>

#include "job/job.h"
#include "job/project.h"

namespace muster::store {

inline constexpr base::Time kTime{std::chrono::nanoseconds(1'700'000'000'123'456'789)};

inline job::Scheduling full_scheduling() {
  return {
      .purpose = job::Purpose::kInference,
      .priority = 7,
      .preemptible = false,
      .min_workers = 1,
      .node_pools = {"a100", "\xff"},
      .gpu_models = {"NVIDIA A100"},
      .packing = job::Packing::kSpread,
      .required_topology = "rack",
      .preferred_topology = "block",
      .time_limit = std::chrono::milliseconds(3'600'000),
      .retries = 3,
      .retry_rules = {{.exit_code = 42, .action = job::RetryRule::Action::kFail},
                      {.log_pattern = "CUDA \xff", .action = job::RetryRule::Action::kAvoidNode}}};
}

/// A job with every field set, bytes that are no UTF-8 among them.
inline job::Job full_job(std::string id, std::string name) {
  job::Job job{
      .id = std::move(id),
      .spec = {.name = std::move(name),
               .project = "team-a",
               .kind = job::Kind::kMpi,
               .command = {"mpirun", "\xff\xfe"},
               .workers = 1,
               .slots_per_worker = 4,
               .resources = {.gpus = 1,
                             .gpu_share_milli = 500,
                             .gpu_memory_bytes = int64_t{8} << 30,
                             .cpu_milli = 2500,
                             .memory_bytes = 3},
               .scheduling = full_scheduling(),
               .environment = {{"A", "b\nc\xff"}},
               .folder = "/tmp",
               .sandbox = job::Sandbox::kNone},
      .phase = job::Phase::kFailed,
      .reason = "why",
      .reason_details = {"because", "\xff"},
      .may_start = kTime,
      .attempt = 2,
      .restarts = 1,
      .retries_used = 1,
      .avoided_nodes = {"n2"},
      .suspended = true,
      .stop_requested = true,
      .eviction = "preempted by 'b'",
      .submitted = kTime,
      .started = kTime,
      .ended = kTime,
      .exit_code = 137,
      .failure = job::Failure{.task = "worker-0",
                              .cause = "was killed",
                              .advice = "try again",
                              .last_lines = {"a", "\xff"}},
      .events = {{.time = kTime, .text = "submitted"}, {.time = base::Time(), .text = ""}}};
  job.tasks = job::tasks_of(job.spec);
  job.tasks[1].node = "n1";
  job.tasks[1].devices = {0, 300};
  job.tasks[1].gpu_share_milli = 1000;
  job.tasks[1].exit = job::ExitStatus{.code = -1, .signal = 9, .out_of_memory = true, .error = "e"};
  job.tasks[1].phase = job::TaskPhase::kEnded;
  job.tasks[1].started = kTime;
  job.tasks[1].ended = kTime;
  return job;
}

inline job::Project full_project(std::string name, uint64_t sequence) {
  return {.name = std::move(name),
          .parent = "lab",
          .quota = {.deserved = {.gpu_milli = 2500, .cpu_milli = 0, .memory_bytes = 1},
                    .limit = {.gpu_milli = int64_t{1} << 40},
                    .weight = 0.1},
          .pools = {{"a100", {.deserved = {}, .limit = {.gpu_milli = 1}, .weight = 0}}},
          .priority = 200,
          .reclaim_min_runtime = std::chrono::milliseconds(1),
          .preempt_min_runtime = std::chrono::milliseconds(2),
          .takes_the_rest = true,
          .sequence = sequence,
          .created = kTime};
}

}  // namespace muster::store
