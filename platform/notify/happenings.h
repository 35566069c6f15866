// What has happened to a job between two commits, told from how it was and how it is.
//
// Pure; thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "job/job.h"
#include "job/notification.h"

namespace muster::notify {

/// As much of a job as has to be remembered.
struct Standing {
  job::Phase phase = job::Phase::kQueued;
  std::optional<base::Time> started;

  bool operator==(const Standing&) const = default;
};
Standing standing_of(const job::Job& job);

/// In the order in which it happened. A job may have begun and ended since, but it has no two ends.
std::vector<job::Happening> happenings_between(const Standing& before, const job::Job& now);

}  // namespace muster::notify
