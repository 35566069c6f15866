// The commands on jobs: handing them over, looking at them, ending them, and why they wait.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/logs/log_printer.h"
#include "cli/spec/send_workspace.h"
#include "job/forecast.h"
#include "job/job.h"
#include "job/spec.h"

namespace muster::cli::jobs {

struct SubmitCommand {
  std::optional<std::string> file;    ///< the spec is in this YAML file ("-": standard input)
  std::vector<std::string> settings;  ///< of --set, over what the file says
  std::string name;                   ///< of --name, in the place of the file's
  job::JobSpec spec;                  ///< valid, unless `file` is set
  std::optional<spec::WorkspaceOptions> workspace;  ///< sent before the job is
  std::string idempotency_key;
  bool follow = false;
  bool dry_run = false;  ///< only ask what would become of it
  std::string engine;    ///< what the server is to run it on; empty: whatever it does
  logs::LogLook look;
  Output output = Output::kTable;
};

struct RunCommand {
  job::JobSpec spec;  ///< valid
  std::optional<spec::WorkspaceOptions> workspace;
  std::string idempotency_key;
  std::string engine;  ///< as of SubmitCommand
  logs::LogLook look;
};

struct ListCommand {
  std::optional<std::string> project;  ///< only those of this one
  std::vector<std::string> labels;     ///< "NAME" or "NAME=VALUE": only those that have all of them
  Output output = Output::kTable;
};

// Of the commands on jobs that are named, `project` says whose are meant where several have one of
// that name; empty: the server is left to tell.

struct GetCommand {
  std::string name;
  std::string project = {};
  bool spec = false;  ///< what was submitted, as a job file
  Output output = Output::kTable;
};

struct StopCommand {
  std::vector<std::string> names;
  std::string project = {};
  bool now = false;
  Output output = Output::kTable;
};

struct DeleteCommand {
  std::vector<std::string> names;
  std::string project = {};
  bool ignore_missing = false;
  bool force = false;

  /// In the place of names: those of this project that have ended, before this moment.
  struct Ended {
    std::string project;  ///< empty: the server's default
    std::optional<base::Time> before;
  };
  std::optional<Ended> ended;
  bool dry_run = false;  ///< only say which
  bool yes = false;      ///< ask nothing
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
  std::optional<std::string> name;  ///< only those of this job
  std::string project = {};         ///< or: of all of this project
  bool follow = false;
  Output output = Output::kTable;
};

struct QueueCommand {
  Output output = Output::kTable;
};

Result<int> execute(const SubmitCommand& command, const Hooks& hooks);
Result<int> execute(const RunCommand& command, const Hooks& hooks);
Result<int> execute(const ListCommand& command, const Hooks& hooks);
Result<int> execute(const GetCommand& command, const Hooks& hooks);
Result<int> execute(const StopCommand& command, const Hooks& hooks);
Result<int> execute(const DeleteCommand& command, const Hooks& hooks);
Result<int> execute(const SuspendCommand& command, const Hooks& hooks);
Result<int> execute(const ResumeCommand& command, const Hooks& hooks);
Result<int> execute(const ExplainCommand& command, const Hooks& hooks);
Result<int> execute(const EventsCommand& command, const Hooks& hooks);
Result<int> execute(const QueueCommand& command, const Hooks& hooks);

// submit.cc
Command run_command();
Command submit_command();
// jobs.cc
Command list_command();
Command get_command();
Command stop_command();
Command delete_command();
// waiting.cc
Command suspend_command();
Command resume_command();
Command explain_command();
Command events_command();
Command queue_command();

// Why jobs wait, and what happened to them, as people read it: `queue`, `explain`, `events`, and
// `submit --dry-run`.
//
// Pure.

/// POS JOB PROJECT PRIORITY NEEDS WAITING MAY START REASON. `jobs` in the order they are served; a
/// suspended one has no position.
std::string queue_table(const std::vector<job::Job>& jobs, base::Time now);

/// The phase and the reason in a sentence, what is behind it, then where it stands and what
/// happened.
std::string explanation_page(const job::Explanation& explanation, base::Time now);

/// What would become of a job: where it would start and who would have to go, or why it would wait;
/// and what that makes of its project.
std::string forecast_page(const job::JobSpec& spec, const job::Forecast& forecast, base::Time now);

/// An event, and whose it is.
struct JobEvent {
  std::string job;
  job::Event event;
};

/// The events of all `jobs`, oldest first; those of the same moment in the order of the jobs.
std::vector<JobEvent> merged_events(const std::vector<job::Job>& jobs);

/// TIME JOB EVENT.
std::string event_table(const std::vector<JobEvent>& events);
/// One line of it without its neighbours, for a follow.
std::string event_line(const JobEvent& event);
/// {"events": [{"time", "job", "text", "fact"}, ...]}
std::string events_json(const std::vector<JobEvent>& events);

}  // namespace muster::cli::jobs
