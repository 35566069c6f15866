// What happened to a job, as /v1/watch/events tells it, and what /v1/watch/jobs says of a job that
// is gone.
//
// Pure; thread-safe. Reading as in wire.h.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "job/job.h"
#include "record/table.h"

namespace muster::api {

using base::Result;

struct JobEvent {
  base::Time time;  ///< of no other event: it is its number, too
  std::string job;  ///< its name
  std::string project;
  std::string job_id;
  job::Fact what;

  bool operator==(const JobEvent&) const = default;
};

const record::Table& table_of(const JobEvent*);
std::string job_event_to_json(const JobEvent& event);
Result<JobEvent> job_event_from_json(std::string_view text);

struct RemovedJob {
  std::string id;
  std::string name;
  std::string project;

  bool operator==(const RemovedJob&) const = default;
};

const record::Table& table_of(const RemovedJob*);
std::string removed_job_to_json(const RemovedJob& job);
Result<RemovedJob> removed_job_from_json(std::string_view text);

}  // namespace muster::api
