#include "api/event_wire.h"
#include "api/job_query.h"
#include "api/label_wire.h"
#include "api/schemas.h"
#include "api/wire.h"
#include "job/metric_table.h"
#include "words/job_table.h"

namespace muster::api {

using job::Job;
using job::JobSpec;

void add_job_schemas(record::Schemas& schemas) {
  schemas.add(record::table_for<JobSpec>());
  schemas.add(record::table_for<ServerInfo>());
  schemas.add_list("Jobs", "jobs", record::table_for<Job>());
  schemas.add(record::table_for<JobPage>());
  schemas.add(record::table_for<job::Explanation>());
  schemas.add(record::table_for<job::Forecast>());
  schemas.add(label_changes_table());
  schemas.add(record::table_for<RemovedJob>());
  schemas.add(record::table_for<JobEvent>());
  schemas.add_list("Metrics", "series", record::table_for<job::MetricSeries>());
}

std::string spec_to_json(const JobSpec& spec) {
  return record::to_json(spec);
}
Result<JobSpec> spec_from_json(std::string_view text) {
  return record::from_json<JobSpec>(text, "spec");
}

std::string job_to_json(const Job& job) {
  return record::to_json(job);
}
Result<Job> job_from_json(std::string_view text) {
  return record::from_json<Job>(text, "job");
}

std::string jobs_to_json(const std::vector<Job>& jobs) {
  return record::list_to_json("jobs", jobs);
}
Result<std::vector<Job>> jobs_from_json(std::string_view text) {
  return record::list_from_json<Job>(text, "jobs");
}

}  // namespace muster::api
