// What a reader may see of a fact: the names of projects and jobs that the reader sees, and nothing
// of the others. With the names go their shares and counts; sums over all projects remain.
//
// This is decided on the fields, before there is any sentence, and by their types alone: a fact
// that is added later needs no code here.
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

/// Which names the reader may read. Who sees everything needs no Sight.
struct Sight {
  std::function<bool(const std::string& name)> project;
  std::function<bool(const job::JobRef& job)> job;
};

/// Of a reader who sees one project and its jobs.
Sight sight_of_project(const std::string& project);

job::Fact seen_by(const Sight& sight, job::Fact fact);
job::Eviction seen_by(const Sight& sight, job::Eviction why);
/// Details that hold nothing but what is hidden are left out.
job::Reason seen_by(const Sight& sight, job::Reason reason);

/// The reason, the events and the eviction.
void hide_from(const Sight& sight, job::Job& job);
void hide_from(const Sight& sight, job::Explanation& explanation);
/// The reason, and the jobs that would be evicted: those that the reader does not see become
/// `hides_evictions`. The states of its projects are left as they are.
void hide_from(const Sight& sight, job::Forecast& forecast);

}  // namespace muster::words
