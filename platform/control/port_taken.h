// A port that was chosen for a program of a job, and that somebody else took between then and when
// the program bound it: bad luck, and no fault of the job's. The engine sees it where it happens
// before the program starts; later the program fails by it, and only its words tell.
//
// Pure.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "job/job.h"

namespace muster::control {

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
