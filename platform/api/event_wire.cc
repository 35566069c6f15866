#include "api/event_wire.h"

#include "api/fields.h"
#include "api/wire_parts.h"

namespace muster::api {

std::string job_event_to_json(const JobEvent& event) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  json.key("time").time(event.time);
  json.key("job").text(event.job);
  json.key("project").text(event.project);
  json.key("job_id").text(event.job_id);
  write_fact(json, event.what);
  json.close('}');
  return text;
}

Result<JobEvent> job_event_from_json(std::string_view text) {
  JobEvent event;
  MUSTER_CHECK(read_document(
      text, "event of a job",
      [&](Fields& fields) {
        fields.read("time", event.time, Need::kRequired);
        fields.read("job", event.job, Need::kRequired);
        fields.read("project", event.project);
        fields.read("job_id", event.job_id);
        read_fact(fields, event.what);
      },
      Unknown::kIgnored));
  return event;
}

std::string removed_job_to_json(const RemovedJob& job) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  json.key("id").text(job.id);
  json.key("name").text(job.name);
  json.key("project").text(job.project);
  json.close('}');
  return text;
}

Result<RemovedJob> removed_job_from_json(std::string_view text) {
  RemovedJob job;
  MUSTER_CHECK(read_document(
      text, "removed job",
      [&](Fields& fields) {
        fields.read("id", job.id, Need::kRequired);
        fields.read("name", job.name, Need::kRequired);
        fields.read("project", job.project, Need::kRequired);
      },
      Unknown::kIgnored));
  return job;
}

}  // namespace muster::api
