// The JSON that goes over the wire, both ways. docs/api.md shows each shape by example.
//
// Pure; thread-safe. Reading never throws: whatever is missing, of the wrong type or unknown comes
// back as faults with field paths, all at once. What is absent or null, and need not be there, has
// its default. Of a key that repeats, the last counts.
//
// JSON is UTF-8, but a word of argv may be any bytes. A text that is no valid UTF-8 travels as
// {"base64": "..."} in its place. Only names of variables and sentences of errors do not: there
// U+FFFD takes the place of what is no text.
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
  std::string engine = {};      ///< where its tasks run: "process", "slurm"; empty: it does not say
  std::string address = {};     ///< HOST:PORT where others reach it; empty: the unix socket alone
  bool config_changed = false;  ///< its configuration file has been written since it was read

  bool operator==(const ServerInfo&) const = default;
};

const record::Table& table_of(const ServerInfo*);
std::string info_to_json(const ServerInfo& info);
/// What a newer server says beyond this is no fault.
Result<ServerInfo> info_from_json(std::string_view text);

std::string spec_to_json(const job::JobSpec& spec);
Result<job::JobSpec> spec_from_json(std::string_view text);

std::string job_to_json(const job::Job& job);
Result<job::Job> job_from_json(std::string_view text);

std::string jobs_to_json(const std::vector<job::Job>& jobs);
Result<std::vector<job::Job>> jobs_from_json(std::string_view text);

/// One line, so that it fits one line of an event. `text` that is no valid UTF-8 is called `base64`
/// instead.
std::string log_record_to_json(const job::LogRecord& record);
/// The same, appended: for whoever writes many.
void append_log_record(std::string& out, const job::LogRecord& record);
Result<job::LogRecord> log_record_from_json(std::string_view text);

/// RFC 9457 problem details: type, title, status, detail, advice, faults.
std::string problem_to_json(const base::Error& error);
/// The same with a status that says more than the error's code: 401, 405, 415, 429.
std::string problem_to_json(const base::Error& error, int status);
/// The error an answer stands for; an answer that is no problem becomes one of its status.
base::Error problem_from_json(int status, std::string_view text);
int http_status_of(base::ErrorCode code);

// What happened to a job, as /v1/watch/events tells it, and what /v1/watch/jobs says of a job that
// is gone.
//
// Pure; thread-safe. Reading as in wire.h.

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

// Forecasts (submit --dry-run) and explanations over the wire, both ways. docs/api.md shows each
// shape by example.
//
// Pure; thread-safe.

std::string forecast_to_json(const job::Forecast& forecast);
Result<job::Forecast> forecast_from_json(std::string_view text);

std::string explanation_to_json(const job::Explanation& explanation);
Result<job::Explanation> explanation_from_json(std::string_view text);

// A change of a job's labels, as it goes over the wire: {"labels": {"a": "b", "c": null}} sets the
// label a and takes c away. A tag is a label whose value is empty.
//
// Pure; as api/wire.h.

/// Nothing: the label is taken away.
using LabelChanges = std::map<std::string, std::optional<std::string>>;

/// Of the document that holds them.
const record::Table& label_changes_table();

std::string label_changes_to_json(const LabelChanges& changes);
/// kInvalid also for what no label can be called or hold.
base::Result<LabelChanges> label_changes_from_json(std::string_view text);

}  // namespace muster::api
