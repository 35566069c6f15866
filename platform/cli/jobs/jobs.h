// The commands on jobs: run, submit, rerun, diff, list, get, stop, wait, delete, suspend, resume,
// explain, events, queue.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "api/job_query.h"
#include "base/clock.h"
#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/jobs/arrays.h"
#include "cli/logs/log_printer.h"
#include "cli/spec/send_workspace.h"
#include "cli/spec/spec_flags.h"
#include "job/forecast.h"
#include "job/job.h"
#include "job/schedule.h"
#include "job/spec.h"

namespace muster::cli::jobs {

struct SubmitCommand {
  std::optional<std::string> file;                  ///< job file; "-": standard input
  std::vector<std::string> settings;                ///< from --set; override the file
  std::string name;                                 ///< of --name; overrides the file
  std::string only;                                 ///< of --only: one document of the file
  std::optional<spec::FlagOverrides> flags;         ///< override the file
  job::JobSpec spec;                                ///< valid, unless `file` is set
  std::string name_template;                        ///< "train-{n}": replaces the name of `spec`
  bool name_suffix = false;                         ///< a taken name gets a number
  std::optional<spec::WorkspaceOptions> workspace;  ///< sent before the job
  ArrayFlags array;
  SubmissionKey key;
  bool follow = false;
  bool dry_run = false;     ///< only forecast
  bool shows_spec = false;  ///< only print the spec of `file`
  std::string engine;       ///< the engine that the server must have; empty: any
  logs::LogLook look;
  Output output = Output::kTable;
};

struct RerunCommand {
  std::string name;
  std::string project = {};         ///< where the name is looked up; empty: in all projects
  std::string new_name;             ///< of --name; empty: NAME-2, NAME-3 ...
  bool failed = false;              ///< of an array: its failed members run again
  std::optional<int> max_running;   ///< of an array, with `failed`
  std::optional<int> max_failures;  ///< the same
  spec::FlagOverrides flags;
  std::vector<std::string> settings;
  std::optional<spec::WorkspaceOptions> workspace;  ///< instead of the job's
  SubmissionKey key;
  bool follow = false;
  bool dry_run = false;
  logs::LogLook look;
  Output output = Output::kTable;
};

struct DiffCommand {
  std::vector<std::string> sides;  ///< one or two: names of jobs, or files
  std::string project = {};
  Output output = Output::kTable;
};

struct RunCommand {
  job::JobSpec spec;          ///< valid
  bool is_name_made = false;  ///< random, so a command that is repeated has another
  std::optional<spec::WorkspaceOptions> workspace;
  std::string idempotency_key;
  std::string engine;  ///< as of SubmitCommand
  logs::LogLook look;
};

/// Removes a job, an array or a sweep, and kills it before with `force`. Waits for the end of what is
/// being stopped.
Result<void> remove_job(Connection& connection, const std::string& name, bool force);

struct ListCommand {
  api::JobQuery query;               ///< apart from its limit and cursor
  bool mine = false;                 ///< only the caller's jobs
  int limit = 0;                     ///< 0: all
  bool members = false;              ///< also members of arrays and trials of sweeps
  std::vector<std::string> columns;  ///< empty: the usual ones
  bool explains_columns = false;     ///< only print the names of columns
  bool wide = false;                 ///< do not cut lines to the terminal's width
  bool watch = false;
  Output output = Output::kTable;
};

// `project`: where names of jobs are looked up; empty: in all projects.

struct GetCommand {
  std::string name;
  std::string project = {};
  bool spec = false;  ///< print the submitted spec as a job file
  Output output = Output::kTable;
};

struct StopCommand {
  std::vector<std::string> names;
  std::string project = {};
  bool now = false;
  bool wait = false;  ///< until they have ended
  Output output = Output::kTable;
};

/// The state that a command waits for. A job that ended before can no longer reach it.
struct JobGoal {
  enum class Kind { kEnded, kStarted, kPhase };
  Kind kind = Kind::kEnded;
  job::Phase phase = job::Phase::kQueued;  ///< of kPhase
};

struct WaitCommand {
  std::vector<std::string> names;
  std::string project = {};
  JobGoal goal;
  std::optional<std::chrono::milliseconds> timeout;
  Output output = Output::kTable;
};

struct DeleteCommand {
  std::vector<std::string> names;
  std::string project = {};
  bool ignore_missing = false;
  bool force = false;

  /// Instead of names: what has ended in this project before this time.
  struct Ended {
    std::string project;  ///< empty: the server's default
    std::optional<base::Time> before;
    std::vector<std::string> labels = {};  ///< "NAME" or "NAME=VALUE": all of these
    std::vector<job::Phase> phases = {};   ///< any of these; empty: all
  };
  std::optional<Ended> ended;
  bool dry_run = false;  ///< only print what would be deleted
  bool yes = false;      ///< do not ask
  Output output = Output::kTable;
};

struct SuspendCommand {
  std::vector<std::string> names;
  std::string project = {};
  Output output = Output::kTable;
};

struct ResumeCommand {
  std::vector<std::string> names;
  std::string project = {};
  Output output = Output::kTable;
};

struct ExplainCommand {
  std::string name;
  std::string project = {};
  Output output = Output::kTable;
};

struct EventsCommand {
  std::optional<std::string> name;  ///< only events of this job
  std::string project = {};         ///< or of all jobs of this project
  bool follow = false;
  Output output = Output::kTable;
};

struct QueueCommand {
  Output output = Output::kTable;
};

struct CreateScheduleCommand {
  // Not set or empty: as in a file with a CronJob of Kubernetes, else the default.
  std::string name;
  std::string cron;
  std::string timezone;
  std::optional<job::ScheduleSpec::Overlap> overlap;
  std::optional<job::ScheduleSpec::CatchUp> catch_up;
  std::optional<std::chrono::milliseconds> catch_up_within;
  bool paused = false;
  std::optional<std::string> file;  ///< job file; not set: the job comes from the flags
  std::vector<std::string> settings;
  spec::FlagOverrides flags;
  std::optional<spec::WorkspaceOptions> workspace;
  Output output = Output::kTable;
};

struct ListSchedulesCommand {
  std::string project;  ///< empty: all
  Output output = Output::kTable;
};

enum class ScheduleAction { kGet, kHistory, kPause, kResume, kRun, kDelete };

struct ScheduleCommand {
  ScheduleAction action = ScheduleAction::kGet;
  std::string name;
  std::string project = {};
  Output output = Output::kTable;
};

/// The phase of a word in any case: "running".
std::optional<job::Phase> phase_meant(std::string_view word);

Result<int> execute(const SubmitCommand& command, const Hooks& hooks);
Result<int> execute(const RunCommand& command, const Hooks& hooks);
Result<int> execute(const RerunCommand& command, const Hooks& hooks);
Result<int> execute(const DiffCommand& command, const Hooks& hooks);
Result<int> execute(const ListCommand& command, const Hooks& hooks);
Result<int> execute(const GetCommand& command, const Hooks& hooks);
Result<int> execute(const StopCommand& command, const Hooks& hooks);
Result<int> execute(const WaitCommand& command, const Hooks& hooks);
Result<int> execute(const DeleteCommand& command, const Hooks& hooks);
Result<int> execute(const SuspendCommand& command, const Hooks& hooks);
Result<int> execute(const ResumeCommand& command, const Hooks& hooks);
Result<int> execute(const ExplainCommand& command, const Hooks& hooks);
Result<int> execute(const EventsCommand& command, const Hooks& hooks);
Result<int> execute(const QueueCommand& command, const Hooks& hooks);
Result<int> execute(const CreateScheduleCommand& command, const Hooks& hooks);
Result<int> execute(const ListSchedulesCommand& command, const Hooks& hooks);
Result<int> execute(const ScheduleCommand& command, const Hooks& hooks);

// submit.cc
Command run_command();
/// The flags that describe a job of this kind, for commands that submit jobs in another way.
Flags flags_of_job(std::string_view kind);
Command submit_command();
// rerun.cc
Command rerun_command();
Command diff_command();
// list.cc
Command list_command();
// jobs.cc
Command get_command();
// ending.cc
Command stop_command();
Command wait_command();
Command delete_command();
// schedules.cc
Command schedule_command();
// waiting.cc
Command suspend_command();
Command resume_command();
Command explain_command();
Command events_command();
Command queue_command();

/// Fields, the next five runs, and the last ten. Pure. schedules.cc
std::string schedule_page(const job::Schedule& schedule);

// The text of `queue`, `explain`, `events` and `submit --dry-run`. Pure.

/// POS JOB PROJECT PRIORITY NEEDS WAITING MAY START REASON. `jobs` in serve order;
/// suspended jobs have no position.
std::string queue_table(const std::vector<job::Job>& jobs, base::Time now);

/// The phase and the reason with its details, the position in the queue, and the events.
std::string explanation_page(const job::Explanation& explanation, base::Time now);

/// The forecast of a job: where it would start and which jobs would be evicted, or why it would wait;
/// and the effect on its project.
std::string forecast_page(const job::JobSpec& spec, const job::Forecast& forecast, base::Time now);

/// An event with its job.
struct JobEvent {
  std::string job;
  job::Event event;
};

/// The events of all `jobs`, oldest first; events of the same time in the order of the jobs.
std::vector<JobEvent> merged_events(const std::vector<job::Job>& jobs);

/// TIME JOB EVENT.
std::string event_table(const std::vector<JobEvent>& events);
/// One row of the table, for --follow.
std::string event_line(const JobEvent& event);
/// {"events": [{"time", "job", "text", "fact"}, ...]}
std::string events_json(const std::vector<JobEvent>& events);

}  // namespace muster::cli::jobs
