// Why a gang failed, told from how its tasks ended.
//
// failure_of() is pure; last_lines() reads a task's log.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"
#include "job/job.h"

namespace muster::control {

/// The last lines a task printed, as many as failure_of() looks through.
std::vector<std::string> last_lines(engine::Engine& engine, const engine::Gang& gang,
                                    const job::Task& task);

/// What the rank census says against a job whose launcher succeeded; empty where it agrees.
std::string census_fault(const job::Job& job, const std::vector<engine::RankPlace>& ranks);

/// A failure of `task`, by its exit and by what its last lines say: of those it keeps the few that
/// matter.
job::Failure failure_of(const job::Task& task, std::vector<std::string> lines);

}  // namespace muster::control
