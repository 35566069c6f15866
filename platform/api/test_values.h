// Values for tests in which no field has its default, so that a forgotten field is noticed.
#pragma once

#include "job/forecast.h"
#include "job/log_record.h"
#include "job/node.h"
#include "job/project.h"
#include "job/test_specs.h"

namespace muster::api {

using job::full_job;
using job::full_spec;
using job::kBinary;
using job::time_at;

/// Not a whole microsecond.
inline constexpr base::Time kTime{std::chrono::nanoseconds(1'700'000'000'123'456'789)};

inline job::LogRecord full_record() {
  return {.time = time_at(1'767'225'600'123'456'789),
          .task = "worker-0",
          .attempt = 2,
          .host = "dist-worker-0",
          .rank = 3,
          .stream = job::LogStream::kError,
          .text = "loss \"0.5\"\t\x1B[31mréd\\",
          .continues = true};
}

// Projects, nodes and forecasts for tests; no field has its default, so that a forgotten field is
// noticed.

inline job::Quota full_quota(int64_t gpu_milli) {
  return {.deserved = {.gpu_milli = gpu_milli, .cpu_milli = 1'500, .memory_bytes = 1},
          .limit = {.gpu_milli = gpu_milli + 1},
          .weight = 0.1};
}

inline job::ProjectStatus full_project() {
  return {.project = {.name = "team-a",
                      .parent = "lab",
                      .quota = full_quota(2'500),
                      .pools = {{"a100", full_quota(1)}, {"Odd \"pool\"", job::Quota{}}},
                      .priority = 200,
                      .reclaim_min_runtime = std::chrono::milliseconds(1),
                      .preempt_min_runtime = std::chrono::milliseconds(2),
                      .takes_the_rest = true,
                      .sequence = 7,
                      .created = time_at(5)},
          .deserved = {.gpu_milli = 3'000},
          .allocated = {.gpu_milli = 4'000, .cpu_milli = 500, .memory_bytes = 6},
          .allocated_non_preemptible = {.gpu_milli = 1, .cpu_milli = 2, .memory_bytes = 3},
          .requested = {.gpu_milli = 9'000, .cpu_milli = 8, .memory_bytes = 7},
          .fair_share = {.gpu_milli = 3'500, .memory_bytes = 9},
          .running = 4,
          .waiting = 5};
}

inline job::Node full_node() {
  return {.name = "n1.lab",
          .pool = "a100",
          .state = "draining",
          .cpu_milli = 16'000,
          .cpu_milli_free = 15'500,
          .memory_bytes = int64_t{64} << 30,
          .memory_bytes_free = 1,
          .devices = {{.index = 1,
                       .model = "NVIDIA A100",
                       .memory_bytes = int64_t{80} << 30,
                       .free_milli = 250,
                       .jobs = {"dist", "notebook"}},
                      {.index = 2, .free_milli = 0}},
          .jobs = {"dist", "notebook", "prep"},
          .topology = {{"rack", "r1"}},
          .labels = {{"zone", "east"}}};
}

inline job::Forecast full_forecast() {
  return {
      .starts_now = true,
      .placing = {{.task = "worker-0", .node = "n1", .devices = {0, 3}, .gpu_share_milli = 1000},
                  {.task = "worker-1", .node = "n2", .gpu_share_milli = 500}},
      .evictions = {{.job = {"id-prep", "prep", "team-a"},
                     .why = job::Preempted{.by = {"id-x", "x", "team-a"}, .expected = true}}},
      .hides_evictions = true,
      .reason = {job::NoRoom{.tasks = 1, .claim = {.gpus = 2}, .nodes = 1, .lack_gpu = 1},
                 {job::HeldByOthers{.holders = {.named = {{.project = "lab", .amount = 1000}}}}}},
      .may_start = time_at(11),
      .before = full_project(),
      .after = {.project = {.name = "team-a"}, .waiting = 6}};
}

inline job::Explanation full_explanation() {
  return {.name = "dist",
          .phase = job::Phase::kStarting,
          .constraint = "room",
          .reason = {job::NoRoom{.tasks = 1, .claim = {.gpus = 2}, .nodes = 1, .lack_gpu = 1},
                     {job::Remark{"'prep' holds 1 GPU"}}},
          .may_start = time_at(12),
          .position = 3,
          .events = {{.time = time_at(13), .what = job::Evicted{.why = job::NodeDrained{"n1"}}}}};
}

}  // namespace muster::api
