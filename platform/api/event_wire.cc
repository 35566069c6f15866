#include "api/event_wire.h"

#include "record/field.h"
#include "words/fact_rows.h"

namespace muster::api {

using record::field;
using record::Need;
using record::Table;
using record::Unknown;

const Table& table_of(const JobEvent*) {
  static const Table table =
      record::table<JobEvent>(
          "JobEvent",
          {field<&JobEvent::time>("time", {.help = "No two events of one server have the same.",
                                           .need = Need::kRequired}),
           field<&JobEvent::job>("job", {.help = "Its name.", .need = Need::kRequired}),
           field<&JobEvent::project>("project", {.told = record::Told::kAlways}),
           field<&JobEvent::job_id>("job_id", {.told = record::Told::kAlways}),
           words::sentence_row<&JobEvent::what>("text", {.need = Need::kRequired}),
           words::fact_row<&JobEvent::what>("fact",
                                            {.help = "`text` as data, as in an event of a job."})},
          "What happened to a job.")
          .as_answer(Unknown::kIgnored);
  return table;
}

const Table& table_of(const RemovedJob*) {
  static const Table table =
      record::table<RemovedJob>("RemovedJob",
                                {field<&RemovedJob::id>("id", {.need = Need::kRequired}),
                                 field<&RemovedJob::name>("name", {.need = Need::kRequired}),
                                 field<&RemovedJob::project>("project", {.need = Need::kRequired})},
                                "A job that no longer exists.")
          .as_answer(Unknown::kIgnored);
  return table;
}

std::string job_event_to_json(const JobEvent& event) {
  return record::to_json(event);
}
Result<JobEvent> job_event_from_json(std::string_view text) {
  return record::from_json<JobEvent>(text, "event of a job");
}

std::string removed_job_to_json(const RemovedJob& job) {
  return record::to_json(job);
}
Result<RemovedJob> removed_job_from_json(std::string_view text) {
  return record::from_json<RemovedJob>(text, "removed job");
}

}  // namespace muster::api
