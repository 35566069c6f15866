#include "api/wire.h"

#include <array>
#include <memory>
#include <utility>

#include "access/identity.h"
#include "api/fields.h"
#include "api/job_query.h"
#include "api/job_rows.h"
#include "api/schemas.h"
#include "base/text.h"
#include "http/head.h"
#include "job/metric.h"
#include "job/obstacle.h"
#include "job/validate.h"
#include "record/field.h"
#include "words/fact_rows.h"
#include "words/job_table.h"

namespace muster::api {

using job::Job;
using job::JobSpec;

void add_job_schemas(record::Schemas& schemas) {
  schemas.add(record::table_for<JobSpec>());
  schemas.add(record::table_for<ServerInfo>());
  schemas.add(queue_page_table());
  schemas.add(record::table_for<JobPage>());
  schemas.add(record::table_for<RowPage>());
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
  return record::from_json<JobSpec>(text, "spec",
                                    [](const JobSpec& spec, std::vector<base::Fault>& unread) {
                                      job::add_dependents(unread);
                                      return job::validate(spec);
                                    });
}
Result<JobSpec> spec_from_job_file(std::string_view text) {
  const auto document = record::ValueTree::of_text(text);
  if (!document) return base::Error{.code = base::ErrorCode::kInvalid, .what = "not valid JSON"};
  JobSpec spec;
  std::vector<base::Fault> faults;
  const record::Path top;
  record::read(record::Input{document->root(), top, faults, record::Form::kHuman}, spec);
  if (faults.empty()) return spec;
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "the job file is invalid",
                     .faults = std::move(faults)};
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

using record::field;
using record::Sent;

// The server may be newer, so unknown fields are ignored; the answer contains the server's version.
const record::Table& table_of(const ServerInfo*) {
  static const record::Table table =
      record::table<ServerInfo>(
          "ServerInfo",
          {field<&ServerInfo::version>("version", {.need = record::Need::kRequired}),
           field<&ServerInfo::pid>("pid", {.help = "0 unless the caller is an admin of the server.",
                                           .need = record::Need::kRequired,
                                           .least = 0}),
           field<&ServerInfo::state_folder>(
               "state_folder", {.help = "Empty unless the caller is an admin of the server.",
                                .sent = Sent::kAlways}),
           field<&ServerInfo::engine>(
               "engine",
               {.help =
                    "The engine of its tasks: `process`, `container`, `slurm` or `kubernetes`."}),
           field<&ServerInfo::address>(
               "address", {.help = "HOST:PORT for other machines. Absent: it serves only a unix "
                                   "socket, or the caller is not an admin of the server."}),
           field<&ServerInfo::config_changed>(
               "config_changed", {.help = "Its configuration file was changed after it was read. "
                                          "False unless the caller is an admin of the server.",
                                  .sent = Sent::kAlways}),
           field<&ServerInfo::need_restart>(
               "need_restart",
               {.help = "The keys of its configuration whose changed values it has read, but uses "
                        "only after a restart. Absent unless the caller is an admin of the "
                        "server."}),
           field<&ServerInfo::on_demand>(
               "on_demand", {.help = "It exits when idle, and the next command starts it again."}),
           field<&ServerInfo::settings>(
               "settings",
               {.help = "The values in force of the settings that environment variables can set, "
                        "by variable. Absent unless the caller is an admin of the server."})})
          .as_answer(record::Unknown::kIgnored);
  return table;
}

std::string info_to_json(const ServerInfo& info) {
  return record::to_json(info);
}
Result<ServerInfo> info_from_json(std::string_view text) {
  return record::from_json<ServerInfo>(text, "server's description");
}

using base::Error;
using base::ErrorCode;
using base::Fault;

namespace {

/// The statuses of each code. The first status of a code is sent; the others are accepted from a
/// proxy or from the HTTP layer itself.
constexpr std::array<std::pair<ErrorCode, int>, 19> kStatuses{{
    {ErrorCode::kInvalid, 400},     {ErrorCode::kInvalid, 405},   {ErrorCode::kInvalid, 413},
    {ErrorCode::kInvalid, 415},     {ErrorCode::kInvalid, 416},   {ErrorCode::kInvalid, 422},
    {ErrorCode::kInvalid, 431},     {ErrorCode::kNotFound, 404},  {ErrorCode::kNotFound, 410},
    {ErrorCode::kConflict, 409},    {ErrorCode::kConflict, 412},  {ErrorCode::kRefused, 403},
    {ErrorCode::kRefused, 401},     {ErrorCode::kExhausted, 507}, {ErrorCode::kExhausted, 429},
    {ErrorCode::kUnavailable, 503}, {ErrorCode::kTimeout, 504},   {ErrorCode::kTimeout, 408},
    {ErrorCode::kInternal, 500},
}};

/// The text for an access::NotLoggedIn.
constexpr std::string_view kNotLoggedIn = "not_logged_in";

/// The text for the detail of an error; empty: none is sent.
std::string_view cause_of(const Error& error) {
  if (base::detail_of<access::NotLoggedIn>(error) != nullptr) return kNotLoggedIn;
  const auto* const obstacle = base::detail_of<job::Obstacle>(error);
  if (obstacle == nullptr) return {};
  for (const auto& [kind, text] : job::kObstacleTexts) {
    if (kind == obstacle->kind) return text;
  }
  return {};
}

/// Nothing for a text from a newer server.
std::shared_ptr<const base::ErrorDetail> detail_for(std::string_view cause) {
  if (cause == kNotLoggedIn) return std::make_shared<const access::NotLoggedIn>();
  for (const auto& [kind, text] : job::kObstacleTexts) {
    if (cause == text) return job::obstacle(kind);
  }
  return nullptr;
}

ErrorCode code_of_status(int status) {
  for (const auto& [code, candidate] : kStatuses) {
    if (candidate == status) return code;
  }
  return ErrorCode::kInternal;
}

void write_fault(JsonWriter& json, const Fault& fault) {
  json.open('{');
  json.key("field").prose(fault.field);
  json.key("what").prose(fault.what);
  if (fault.line > 0) json.key("line").number(fault.line);
  json.close('}');
}

Fault read_fault(Fields& fields) {
  Fault fault;
  fields.read("field", fault.field);
  fields.read("what", fault.what);
  fields.read("line", fault.line);
  return fault;
}

}  // namespace

int http_status_of(ErrorCode code) {
  for (const auto& [candidate, status] : kStatuses) {
    if (candidate == code) return status;
  }
  return 500;
}

std::string problem_to_json(const Error& error) {
  return problem_to_json(error, http_status_of(error.code));
}

std::string problem_to_json(const Error& error, int status) {
  std::string text;
  JsonWriter json(text);
  json.open('{');
  json.key("type").text("about:blank");
  json.key("title").text(http::reason_phrase(status));
  json.key("status").number(status);
  json.key("detail").prose(error.what);
  json.key("code").text(to_string(error.code));
  if (!error.advice.empty()) json.key("advice").prose(error.advice);
  if (const auto cause = cause_of(error); !cause.empty()) json.key("cause").text(cause);
  if (!error.faults.empty()) {
    json.key("faults").open('[');
    for (const Fault& fault : error.faults) write_fault(json, fault);
    json.close(']');
  }
  json.close('}');
  return text;
}

Error problem_from_json(int status, std::string_view text) {
  Error error{.code = code_of_status(status)};
  std::string code;
  std::string cause;
  const auto read = read_document(
      text, "problem",
      [&](Fields& fields) {
        fields.read("detail", error.what, Need::kRequired);
        fields.read("code", code);
        fields.read("advice", error.advice);
        fields.read("cause", cause);
        fields.each("faults", [&](Fields& inner) { error.faults.push_back(read_fault(inner)); });
      },
      Unknown::kIgnored);
  if (!read) {
    return {.code = code_of_status(status),
            .what = "the server answered " + std::to_string(status) + " " +
                    std::string(http::reason_phrase(status)),
            .advice = "see the server's log"};
  }
  if (!code.empty()) error.code = base::error_code_of(code);
  error.detail = detail_for(cause);
  return error;
}

using record::Need;
using record::Table;
using record::Unknown;

const Table& table_of(const JobEvent*) {
  static const Table table =
      record::table<JobEvent>(
          "JobEvent",
          {field<&JobEvent::time>(
               "time", {.help = "Unique among the events of a server.", .need = Need::kRequired}),
           field<&JobEvent::job>("job", {.help = "Its name.", .need = Need::kRequired}),
           field<&JobEvent::project>("project", {.sent = record::Sent::kAlways}),
           field<&JobEvent::job_id>("job_id", {.sent = record::Sent::kAlways}),
           words::sentence_row<&JobEvent::what>("text", {.need = Need::kRequired}),
           words::fact_row<&JobEvent::what>("fact",
                                            {.help = "`text` as data, as in an event of a job."})},
          "An event of a job.")
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

using job::Explanation;
using job::Forecast;

std::string forecast_to_json(const Forecast& forecast) {
  return record::to_json(forecast);
}
Result<Forecast> forecast_from_json(std::string_view text) {
  return record::from_json<Forecast>(text, "forecast");
}

std::string explanation_to_json(const Explanation& explanation) {
  return record::to_json(explanation);
}
Result<Explanation> explanation_from_json(std::string_view text) {
  return record::from_json<Explanation>(text, "explanation");
}

namespace {

struct LabelsDocument {
  LabelChanges labels;
};

}  // namespace

const record::Table& label_changes_table() {
  static const record::Table table = record::table<LabelsDocument>(
      "LabelChanges",
      {record::field<&LabelsDocument::labels>(
          "labels", {.help = "Each label gets its value, or is removed if the value is null.",
                     .need = Need::kRequired,
                     .schema = R"({"additionalProperties": {"type": ["string", "null"],
                                                            "maxLength": 256},
                                   "propertyNames": {"minLength": 1, "maxLength": 128}})"})},
      "Other labels are not changed.");
  return table;
}

std::string label_changes_to_json(const LabelChanges& changes) {
  const LabelsDocument document{changes};
  std::string text;
  JsonWriter json(text);
  label_changes_table().write(json, &document, record::Form::kWire);
  return text;
}

base::Result<LabelChanges> label_changes_from_json(std::string_view text) {
  LabelsDocument document;
  MUSTER_CHECK(read_document(text, "change of labels", [&](Fields& fields) {
    fields.record(label_changes_table(), &document);
    for (const auto& [name, value] : document.labels) {
      const std::string field = "labels." + base::shortened(name);
      if (!job::is_label_name(name)) {
        fields.fault(field, "is not a label name: use 1 to 128 bytes of text without '='");
      }
      if (value && !job::is_label_value(*value)) {
        fields.fault(field, "is not text of at most 256 bytes without control characters");
      }
    }
  }));
  return document.labels;
}

}  // namespace muster::api
