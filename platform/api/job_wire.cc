#include "api/fields.h"
#include "api/wire.h"
#include "words/job_table.h"

namespace muster::api {

using job::Job;

std::string job_to_json(const Job& job) {
  return record::to_json(job);
}

Result<Job> job_from_json(std::string_view text) {
  return record::from_json<Job>(text, "job");
}

std::string jobs_to_json(const std::vector<Job>& jobs) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("jobs").open('[');
  for (const Job& job : jobs) record::write(json, job);
  json.close(']').close('}');
  return text;
}

Result<std::vector<Job>> jobs_from_json(std::string_view text) {
  std::vector<Job> jobs;
  MUSTER_CHECK(read_document(text, "list of jobs", [&](Fields& fields) {
    fields.records("jobs", jobs, Need::kRequired);
  }));
  return jobs;
}

}  // namespace muster::api
