// How much of the cluster each project has used of late, with what is longer ago counting less:
// half as much every half-life. A project that held a quarter of the GPUs all along comes to 250.
//
// Told from the jobs that are known, so nothing is kept beside them, and a restarted server knows
// what the one before knew. Of a job that started again only the last run counts. Pure.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "job/job.h"
#include "schedule/model.h"

namespace muster::control {

inline constexpr std::chrono::hours kUseHalfLife{7 * 24};

/// By project, in thousandths of `total`. Projects that used nothing are not in it.
std::map<std::string, schedule::Amounts> past_use(const std::vector<const job::Job*>& jobs,
                                                  const schedule::Amounts& total, base::Time now,
                                                  std::chrono::nanoseconds half_life);

}  // namespace muster::control
