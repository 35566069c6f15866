// What is kept of ended jobs, and for how long. A job's own keep_for goes before keep_for of the
// rules; how many jobs there may be, and how much room of the disk they may take, is the server's
// word, and holds for all. Of what is too much, those go first that ended first.
//
// Pure. Whoever calls hands in ended jobs alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace muster::control {

/// Nothing: without a limit.
struct RetentionRules {
  std::optional<std::chrono::milliseconds> keep_for;  ///< after their end
  std::optional<int> keep_jobs;                       ///< of each project
  std::optional<int64_t> keep_bytes;                  ///< of all: logs, artifacts, copies of files

  bool operator==(const RetentionRules&) const = default;
};

struct EndedJob {
  std::string id;
  std::string project;
  base::Time ended;
  std::optional<std::chrono::milliseconds> keep_for;  ///< its own
  std::optional<int64_t> bytes;                       ///< nothing: not measured yet, not counted
};

/// When its time is over; nothing: it has no end.
std::optional<base::Time> kept_until(base::Time ended, std::optional<std::chrono::milliseconds> own,
                                     const RetentionRules& rules);

struct Removal {
  std::string id;
  std::string rule;  ///< "keep_jobs_for=30d"

  bool operator==(const Removal&) const = default;
};

/// Those that are to go now, the first that ended first.
std::vector<Removal> removals(std::vector<EndedJob> jobs, const RetentionRules& rules,
                              base::Time now);

/// When the next of them has to go, though nothing else happens.
std::optional<base::Time> next_removal(const std::vector<EndedJob>& jobs,
                                       const RetentionRules& rules);

}  // namespace muster::control
