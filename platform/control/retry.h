// Whether a job that failed starts again, and at whose cost.
//
// Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "job/job.h"

namespace muster::control {

/// Nothing: it has failed for good. `culprit` is the task at fault, with its exit, and `lines` what
/// it printed last.
///
/// The job's rules come first, in their order. Where none matches, a fault that is not the user's
/// (a machine or a supervisor that was lost) starts again without a price, and any other as long as
/// there are retries; a job that was given none has failed either way, for nobody has said that it
/// may run twice.
std::optional<job::Retry> retry_of(const job::Job& job, const job::Task& culprit,
                                   const std::vector<std::string>& lines);

/// The same by its rules alone: where none matches, it has failed for good.
std::optional<job::Retry> retry_by_rules(const job::Job& job, const job::Task& culprit,
                                         const std::vector<std::string>& lines);

/// How long to wait before restart number `restarts` (1: the first): nothing, then `first`, doubled
/// each time up to 60 times that.
std::chrono::milliseconds backoff(
    int restarts, std::chrono::milliseconds first = std::chrono::milliseconds(1000));

}  // namespace muster::control
