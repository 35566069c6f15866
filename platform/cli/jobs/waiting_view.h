// Why jobs wait, and what happened to them, as people read it: `queue`, `explain`, `events`, and
// `submit --dry-run`.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "job/forecast.h"
#include "job/job.h"

namespace muster::cli::jobs {

/// POS JOB PROJECT PRIORITY NEEDS WAITING MAY START REASON. `jobs` in the order they are served; a
/// suspended one has no position.
std::string queue_table(const std::vector<job::Job>& jobs, base::Time now);

/// The phase and the reason in a sentence, what is behind it, then where it stands and what
/// happened.
std::string explanation_page(const job::Explanation& explanation, base::Time now);

/// What would become of a job: where it would start and who would have to go, or why it would wait;
/// and what that makes of its project.
std::string forecast_page(const job::JobSpec& spec, const job::Forecast& forecast, base::Time now);

/// An event, and whose it is.
struct JobEvent {
  std::string job;
  job::Event event;
};

/// The events of all `jobs`, oldest first; those of the same moment in the order of the jobs.
std::vector<JobEvent> merged_events(const std::vector<job::Job>& jobs);

/// TIME JOB EVENT.
std::string event_table(const std::vector<JobEvent>& events);
/// One line of it without its neighbours, for a follow.
std::string event_line(const JobEvent& event);
/// {"events": [{"time", "job", "text", "fact"}, ...]}
std::string events_json(const std::vector<JobEvent>& events);

}  // namespace muster::cli::jobs
