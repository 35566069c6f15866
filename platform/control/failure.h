// Why a gang failed, told from how its tasks ended.
//
// failure_of() is pure; last_lines() reads a task's log.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"
#include "job/job.h"

namespace muster::control {

/// The last lines a task printed, at most `count`, rank tags taken off.
std::vector<std::string> last_lines(engine::Engine& engine, const engine::Gang& gang,
                                    const job::Task& task, size_t count);

/// What to try, told from the words of an MPI launcher; empty where they are not known.
std::string launcher_advice(const std::vector<std::string>& lines);

/// What the rank census says against a job whose launcher succeeded; empty where it agrees.
std::string census_fault(const job::Job& job, const std::vector<engine::RankPlace>& ranks);

/// A failure of `task`, by its exit.
job::Failure failure_of(const job::Task& task, std::vector<std::string> lines);

}  // namespace muster::control
