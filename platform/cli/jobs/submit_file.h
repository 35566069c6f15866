// Jobs from a file: a job file of Muster, or one of Kubernetes, with one or several documents.
//
// Several jobs are submitted together or not at all: the server checks every job before the first
// is submitted, and the submitted jobs are withdrawn if a later job is refused. Jobs that an earlier
// command has submitted with the same key are neither checked nor withdrawn.
//
// Blocking; I/O. Warnings go to standard error.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/client.h"
#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/logs/log_printer.h"
#include "cli/spec/send_workspace.h"
#include "cli/spec/spec_file.h"
#include "cli/spec/spec_flags.h"
#include "job/array.h"
#include "job/job.h"
#include "job/schedule.h"
#include "job/spec.h"

namespace muster::cli::jobs {

/// A job as it will be submitted, and what is sent before it.
struct Submission {
  job::JobSpec spec;
  /// The files of its volumes, by their target: path -> content.
  std::map<std::string, std::map<std::string, std::string>> files = {};
  std::optional<spec::WorkspaceOptions> workspace = {};
  api::Client::SubmitOptions options = {};
  bool has_random_name = false;                  ///< of `muster run`: no other job has it
  std::vector<spec::ChangedValue> changes = {};  ///< by the command line
  /// Of a CronJob: the schedule of which `spec` is the job; its own `job` is empty.
  std::optional<job::ScheduleSpec> schedule = {};
};

struct JobFileOptions {
  std::string file;                               ///< "-": standard input
  std::string name = {};                          ///< of --name; overrides the file
  std::string only = {};                          ///< of --only: only this document; empty: all
  std::vector<std::string> settings = {};         ///< of --set; override the file and the flags
  std::optional<spec::FlagOverrides> flags = {};  ///< override the file
  bool may_be_schedule = false;                   ///< false: a CronJob is an error
  bool may_repeat_names = false;                  ///< a taken name gets a number
};

/// The jobs of the file, in its order; at least one.
///
/// Errors: kInvalid, with all faults of all documents.
Result<std::vector<Submission>> read_job_file(const JobFileOptions& options, const Hooks& hooks);

/// What the key `workspace` of a job file means: a path is relative to the file. "-": standard input.
spec::WorkspaceOptions options_of(const spec::WorkspaceKey& key, const std::string& file);

/// Gives the job a name from a template, such as "train-{n}"; any other name becomes its name.
void set_name(const std::string& name, Submission& job);

/// Whether the server may give the job another name than that of `spec`: NAME-2, or one from a
/// template. Then a job that has the name of `spec` may be an unrelated one.
bool is_named_by_server(const Submission& job);
/// "job 'a'", or "a job named like 'train-{n}'", for a job whose request got no answer.
std::string unanswered_job(const Submission& job);
inline constexpr const char* kFindAmongNewest =
    "look for it among your newest jobs: muster list --mine";

/// Sends the workspace, and the files that the volumes of a job contain.
Result<void> send_files(Connection& connection, Submission& job);

/// A submitted job, or an array.
struct Submitted {
  job::Job job;  ///< of an array its name, its project and its id
  std::optional<job::Array> array = {};
  bool was_there = false;  ///< an earlier command submitted it with the same key
};
Submitted submitted_array(job::Array array);

/// Submits all of them or none. `key`: for requests that may be sent twice; a job that an earlier
/// call has submitted with it is returned, and kept if another job is refused.
Result<std::vector<Submitted>> submit_all(Connection& connection, std::vector<Submission> jobs,
                                          const SubmissionKey& key);

/// What a command does with its submissions.
struct SubmitRun {
  SubmissionKey key;
  bool follow = false;   ///< print the logs; of one job
  bool dry_run = false;  ///< only forecast
  logs::LogLook look = {};
  Output output = Output::kTable;
  std::string origin = "the file";  ///< what the changes refer to, in `--dry-run`
};

/// Submits or forecasts the jobs, prints them, and follows the job if that is wished. Returns the exit
/// code. submitting.cc
Result<int> carry_out(std::vector<Submission> jobs, const SubmitRun& run, const Hooks& hooks);

/// The flags of every command that submits, with and without a file.
Flags submit_flags();

/// The values that the command line changed: "workers  4  (flag; the file has 2)". Pure.
std::string changes_table(const std::vector<spec::ChangedValue>& changes,
                          const std::string& origin);
/// A value in JSON, as people read it: a text without quotes.
std::string value_words(const std::optional<std::string>& json);

}  // namespace muster::cli::jobs
