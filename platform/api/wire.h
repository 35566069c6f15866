// JSON on the wire, in both directions. docs/api.md shows each shape by example.
//
// Pure; thread-safe. Reading never throws: missing, invalid and unknown fields are reported as
// faults with their paths, all at once. An optional field that is absent or null has its default.
// Of repeated keys, the last counts.
//
// JSON is UTF-8, but a word of argv may contain any bytes. A text that is not UTF-8 is sent as
// {"base64": "..."}. Only in names of variables and sentences of errors, invalid bytes are replaced
// by U+FFFD instead.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/forecast.h"
#include "job/job.h"
#include "job/log_record.h"
#include "record/table.h"

namespace muster::api {

using base::Result;

struct ServerInfo {
  std::string version;
  int pid = 0;
  std::string state_folder;
  /// The engine of its tasks: "process", "slurm"; empty: not reported.
  std::string engine = {};
  std::string address = {};     ///< HOST:PORT for other machines; empty: only the unix socket
  bool config_changed = false;  ///< its configuration file was changed after it was read
  /// The keys whose values in that file take effect only after a restart.
  std::vector<std::string> need_restart = {};
  bool on_demand = false;  ///< it was started by a command, and exits when idle
  /// The values that environment variables can set, by variable: {"MUSTER_ENGINE", "process"}.
  std::map<std::string, std::string> settings = {};

  bool operator==(const ServerInfo&) const = default;
};

const record::Table& table_of(const ServerInfo*);
std::string info_to_json(const ServerInfo& info);
/// Unknown fields of a newer server are ignored.
Result<ServerInfo> info_from_json(std::string_view text);

/// `error`, whose faults name fields of T, with the names of the API: "grace_ms". Validation has the
/// names of job files: "grace".
template <class T>
base::Error with_api_names(base::Error error) {
  return record::with_names_in(record::Form::kWire, record::table_for<T>(), std::move(error));
}
/// The reverse, for people who write job files.
template <class T>
base::Error with_file_names(base::Error error) {
  return record::with_names_in(record::Form::kHuman, record::table_for<T>(), std::move(error));
}

std::string spec_to_json(const job::JobSpec& spec);
/// A text with faults also has those of job::validate() in the fields that could be read.
Result<job::JobSpec> spec_from_json(std::string_view text);

/// The spec that a job file means. `text`: the file's keys as JSON, each scalar as the text that was
/// typed; keys that are missing have their defaults. Does not validate the spec.
///
/// Errors: kInvalid, with a fault for each key that is unknown or cannot be read.
Result<job::JobSpec> spec_from_job_file(std::string_view text);

std::string job_to_json(const job::Job& job);
Result<job::Job> job_from_json(std::string_view text);

std::string jobs_to_json(const std::vector<job::Job>& jobs);
Result<std::vector<job::Job>> jobs_from_json(std::string_view text);

/// One line, so that it fits into one line of an event. If `text` is not UTF-8, the field is called
/// `base64` instead.
std::string log_record_to_json(const job::LogRecord& record);
/// The same, appended, for callers that write many.
void append_log_record(std::string& out, const job::LogRecord& record);
Result<job::LogRecord> log_record_from_json(std::string_view text);

/// RFC 9457 problem details: type, title, status, detail, advice, faults.
std::string problem_to_json(const base::Error& error);
/// The same with a more precise status than that of the error's code: 401, 405, 415, 429.
std::string problem_to_json(const base::Error& error, int status);
/// The error in an answer; an answer that is not a problem document becomes an error of its status.
base::Error problem_from_json(int status, std::string_view text);
int http_status_of(base::ErrorCode code);

// An event of /v1/watch/events, and a removed job of /v1/watch/jobs.
//
// Pure; thread-safe. Reading as in wire.h.

struct JobEvent {
  base::Time time;  ///< unique among events, so it also identifies the event
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

// Forecasts (submit --dry-run) and explanations on the wire, in both directions. docs/api.md shows
// each shape by example.
//
// Pure; thread-safe.

std::string forecast_to_json(const job::Forecast& forecast);
Result<job::Forecast> forecast_from_json(std::string_view text);

std::string explanation_to_json(const job::Explanation& explanation);
Result<job::Explanation> explanation_from_json(std::string_view text);

// A change of a job's labels: {"labels": {"a": "b", "c": null}} sets the label a and removes c. A
// tag is a label with an empty value.
//
// Pure; see api/wire.h.

/// Nothing: the label is removed.
using LabelChanges = std::map<std::string, std::optional<std::string>>;

/// The table of the document.
const record::Table& label_changes_table();

std::string label_changes_to_json(const LabelChanges& changes);
/// kInvalid also for invalid names and values of labels.
base::Result<LabelChanges> label_changes_from_json(std::string_view text);

}  // namespace muster::api
