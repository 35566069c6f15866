// Values for tests in which no field has its default, so that a field that is forgotten shows.
#pragma once

#include <string>
#include <utility>

#include "job/project.h"
#include "job/test_values.h"

namespace muster::store {

inline constexpr base::Time kTime{std::chrono::nanoseconds(1'700'000'000'123'456'789)};

/// With numbers of more than one byte and below zero, which the documents write otherwise.
inline job::Job full_job(std::string id, std::string name) {
  job::Job job = job::full_job();
  job.id = std::move(id);
  job.spec.name = std::move(name);
  job.tasks[0].devices = {0, 300};
  job.tasks[0].exit->code = -1;
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
