// A schedule: a job that is submitted again and again, at the times of a cron expression.
//
// Plain values. cron/cron.h computes the times, and control/schedules.h makes the jobs.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "job/job.h"
#include "job/spec.h"
#include "record/table.h"

namespace muster::job {

struct ScheduleSpec {
  /// The action at the time of a run while an earlier run has not ended.
  enum class Overlap {
    kForbid,   ///< this run is skipped
    kAllow,    ///< both run
    kReplace,  ///< the earlier run is stopped, and this run starts after its end
  };
  /// The action for runs whose time passed while the server was down.
  enum class CatchUp {
    kOne,   ///< the last of them runs late
    kNone,  ///< they are left out
  };
  std::string name;
  std::string project = "default";
  std::string cron;
  std::string timezone = "UTC";
  Overlap overlap = Overlap::kForbid;
  CatchUp catch_up = CatchUp::kOne;
  /// With kOne: a run that is later than this is left out, too. Not set: no limit.
  std::optional<std::chrono::milliseconds> catch_up_within;
  bool held = false;  ///< paused from the beginning
  JobSpec job;        ///< of each run; the server sets its name and its project

  bool operator==(const ScheduleSpec&) const = default;
};

/// A run in the history of a schedule.
struct ScheduledRun {
  enum class Outcome {
    kStarted,  ///< its job was submitted
    kSkipped,  ///< an earlier run had not ended
    kMissed,   ///< the server was down
    kRefused,  ///< its job was not accepted: see `error`
  };
  base::Time time;  ///< for which it was planned; of a run by request: of the request
  bool by_request = false;
  Outcome outcome = Outcome::kStarted;
  std::string job;             ///< name of its job
  std::string job_id;          ///< empty: no job
  std::optional<Phase> phase;  ///< once the job has ended
  std::optional<int> exit_code;
  std::string error;

  bool operator==(const ScheduledRun&) const = default;
};

struct Schedule {
  std::string id;  ///< never reused
  ScheduleSpec spec;
  std::string owner;  ///< the user who created it, and who owns its jobs
  bool paused = false;
  base::Time created;
  base::Time decided_until;           ///< the runs until this time are started, skipped or left out
  std::vector<ScheduledRun> history;  ///< newest first, at most kKeptRuns
  std::vector<base::Time> upcoming;   ///< the next runs. Never stored.
  std::string problem;                ///< why it cannot run. Never stored.

  static constexpr size_t kKeptRuns = 50;
  bool operator==(const Schedule&) const = default;
};

/// The longest name of a schedule: "-20261129-030000" must fit behind it.
inline constexpr size_t kMaxScheduleName = 32;

/// The faults of the schedule itself; of its job, only those that have nothing to do with one run.
/// The cron expression and the time zone are checked by the server.
std::vector<base::Fault> validate_schedule(const ScheduleSpec& spec);

const record::Table& table_of(const ScheduleSpec*);
const record::Table& table_of(const ScheduledRun*);
const record::Table& table_of(const Schedule*);

record::Words<ScheduleSpec::Overlap> words_of(const ScheduleSpec::Overlap*);
record::Words<ScheduleSpec::CatchUp> words_of(const ScheduleSpec::CatchUp*);
record::Words<ScheduledRun::Outcome> words_of(const ScheduledRun::Outcome*);

std::string_view to_string(ScheduledRun::Outcome outcome);

}  // namespace muster::job
