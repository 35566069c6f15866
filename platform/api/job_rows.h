// A row of a listing: a job, or an object that is listed like a job (an array, a sweep, a
// schedule), without its tasks, events and spec. A page of rows costs little with any number of
// jobs; GET /v1/jobs/NAME has the rest.
//
// Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/job_query.h"
#include "base/result.h"
#include "job/job.h"
#include "record/table.h"
#include "record/words.h"

namespace muster::api {

/// The members of an array, the trials of a sweep, or the runs of a schedule.
struct MemberCounts {
  int64_t all = 0;
  int64_t waiting = 0;  ///< not started yet
  int64_t running = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t stopped = 0;

  bool operator==(const MemberCounts&) const = default;
};
const record::Table& table_of(const MemberCounts*);

struct JobRow {
  enum class Object { kJob, kArray, kSweep, kSchedule };

  Object object = Object::kJob;
  std::string id;
  std::string name;
  std::string project;
  std::string owner;
  job::Kind kind = job::Kind::kSingle;
  job::Phase phase = job::Phase::kQueued;
  std::string reason;     ///< a sentence: why it waits, what it does, or why it failed
  int64_t gpu_milli = 0;  ///< that all its tasks request
  int priority = 0;       ///< in force
  int tasks = 0;          ///< a lost worker and its replacement count once
  int tasks_running = 0;
  std::optional<MemberCounts> members;  ///< not of a job
  std::map<std::string, std::string> labels;
  std::optional<job::JobOrigin> origin;
  base::Time submitted;
  std::optional<base::Time> started;
  std::optional<base::Time> ended;
  std::optional<base::Time> may_start;
  std::optional<int> exit_code;
  int attempt = 0;
  int restarts = 0;
  bool suspended = false;
  bool stop_requested = false;
  bool unreadable = false;
  std::optional<job::Progress> progress;

  bool operator==(const JobRow&) const = default;
};
const record::Table& table_of(const JobRow*);
record::Words<JobRow::Object> words_of(const JobRow::Object*);

/// The row of a job.
JobRow row_of(const job::Job& job);

/// {"rows": [...], "next": "CURSOR", "counts": {...}}.
struct RowPage {
  std::vector<JobRow> rows;
  std::string next;
  std::optional<JobCounts> counts;

  bool operator==(const RowPage&) const = default;
};
const record::Table& table_of(const RowPage*);
std::string row_page_to_json(const RowPage& page);
std::string row_to_json(const JobRow& row);
base::Result<RowPage> row_page_from_json(std::string_view text);

}  // namespace muster::api
