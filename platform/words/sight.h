// Removes from facts what a reader may not see: the names of other projects and jobs, with their
// shares and counts. Sums over all projects remain.
//
// This works on the fields of a fact, by their types, before the fact becomes a sentence. A new
// fact needs no code here.
//
// Pure; thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "job/fact.h"
#include "job/forecast.h"
#include "job/job.h"

namespace muster::words {

/// The names that a reader may see. A reader who sees everything needs no Sight.
struct Sight {
  std::function<bool(const std::string& name)> project;
  std::function<bool(const job::JobRef& job)> job;
};

/// The Sight of a reader who sees one project and its jobs.
Sight sight_of_project(const std::string& project);

job::Fact seen_by(const Sight& sight, job::Fact fact);
job::Eviction seen_by(const Sight& sight, job::Eviction why);
/// Removes details that are completely hidden.
job::Reason seen_by(const Sight& sight, job::Reason reason);

/// The reason, the events and the eviction.
void hide_from(const Sight& sight, job::Job& job);
void hide_from(const Sight& sight, job::Explanation& explanation);
/// The reason and the expected evictions: evictions of hidden jobs become `hides_evictions`. The
/// states of its projects are not changed.
void hide_from(const Sight& sight, job::Forecast& forecast);

}  // namespace muster::words
