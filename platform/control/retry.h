// Whether a failed job starts again, at whose cost, and after which pause.
//
// Pure.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "job/job.h"

namespace muster::control {

/// The retry of a failed job; nothing: the job ends as failed. `culprit` is the task at fault, with
/// its exit, and `lines` are the last lines that it printed.
///
/// The job's rules come first, in their order. If no rule matches, the loss of a machine or of a
/// supervisor costs no retry, and any other fault costs one. A job with no retries at all is never
/// started again: its user has not allowed it to run twice.
std::optional<job::Retry> retry_of(const job::Job& job, const job::Task& culprit,
                                   const std::vector<std::string>& lines);

/// The same, but if no rule matches, the job ends as failed.
std::optional<job::Retry> retry_by_rules(const job::Job& job, const job::Task& culprit,
                                         const std::vector<std::string>& lines);

/// The retry rules of the job that match nothing, because their pattern is refused. Such a rule is in
/// a job that an earlier version accepted.
std::vector<base::Fault> refused_rules(const job::Job& job);

/// The pause before restart number `restarts` (1: the first): none before the first, then `first`,
/// doubled each time up to 60 times that.
std::chrono::milliseconds backoff(
    int restarts, std::chrono::milliseconds first = std::chrono::milliseconds(1000));

/// The pause before another try to start a gang, after the engine of a node did not answer. Counts
/// the try in `unanswered_starts`; nothing: there were enough tries in a row.
std::optional<std::chrono::milliseconds> pause_before_another_start(int& unanswered_starts);

/// How often a job is started under other ports and addresses, until the conflict counts as the
/// job's own fault.
inline constexpr int kStartAttempts = 3;

// A port that Muster chose for a program, and that another process took before the program bound
// it, is not a fault of the job. If that happens before the program starts, the engine reports it;
// later only the last lines of the program reveal it.

struct RefusedPort {
  std::set<int> named;  ///< the ports that the lines name
  size_t line = 0;      ///< the last line about a refused port
};
/// The port that a program could not bind, by its last lines.
std::optional<RefusedPort> refused_port_in(const std::vector<std::string>& lines);

/// The reason to start the job again under other ports, without counting a retry. Nothing if the
/// program ran for long, if it names a port that is not among the `chosen` ones (a port of its own
/// choice would be taken again), or if the job was started often enough.
std::optional<job::AttemptAbandoned> start_under_other_ports(const job::Job& job,
                                                             const job::Task& culprit,
                                                             const std::vector<std::string>& lines,
                                                             const std::set<int>& chosen);

}  // namespace muster::control
