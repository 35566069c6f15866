// Whether a job that failed starts again, and at whose cost.
//
// Pure.
#pragma once

#include <chrono>
#include <optional>
#include <set>
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

// A port that was chosen for a program of a job, and that somebody else took between then and when
// the program bound it: bad luck, and no fault of the job's. The engine sees it where it happens
// before the program starts; later the program fails by it, and only its words tell.
//
// Pure.

/// So often a job is started under other ports and addresses, before it is taken for its own fault.
inline constexpr int kStartAttempts = 3;

/// What the last lines of a program say of a port that it could not have.
struct RefusedPort {
  std::set<int> named;  ///< as far as it says which; of the addresses it tried, each may have one
  size_t line = 0;      ///< the last that says so
};
std::optional<RefusedPort> refused_port_in(const std::vector<std::string>& lines);

/// Why the job starts again, under other ports and without a retry being counted; nothing where it
/// does not: the program ran for long, names a port that is none of those `chosen` for it (one of
/// its own choice would be taken again), or the job was started often enough.
std::optional<job::AttemptAbandoned> start_under_other_ports(const job::Job& job,
                                                             const job::Task& culprit,
                                                             const std::vector<std::string>& lines,
                                                             const std::set<int>& chosen);

}  // namespace muster::control
