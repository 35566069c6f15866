// Gradient's commands: one function each. commands.cc finds the function by the command's path and
// holds what the commands share.
//
// Blocking; I/O.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/client.h"
#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/connection/connection.h"
#include "cli/connection/contexts.h"
#include "dialects/gradient/ascii_table.h"
#include "job/job.h"
#include "words/sentence.h"

namespace muster::dialects::gradient {

using base::Result;

/// What a command gets. Invalid flags are reported to `reader`; a command checks reader.ok() before
/// it does anything, and returns faults_of() if it is false.
struct Invocation {
  const std::vector<std::string>& path;  ///< {"experiments", "list"}
  const cli::Arguments& arguments;
  cli::FlagReader& reader;
  const cli::Caller& caller;
  const cli::Hooks& hooks;
  const std::vector<std::string>& words;  ///< the command line as typed
};

/// Calls the function of the command. A command that only groups others prints its help.
Result<int> run_command(Invocation& invocation);

// Each command returns the exit code, or one error with all invalid flags.

// commands_create.cc: experiments create, experiments run
Result<int> create_or_run(Invocation& invocation);

// commands_jobs.cc
Result<int> list_experiments(Invocation& invocation);
Result<int> show_experiment(Invocation& invocation);
Result<int> list_jobs(Invocation& invocation);
Result<int> start_experiment(Invocation& invocation);
Result<int> stop_experiment(Invocation& invocation);
Result<int> delete_experiment(Invocation& invocation);
Result<int> add_tags(Invocation& invocation);
Result<int> remove_tags(Invocation& invocation);

// logs.cc
Result<int> show_logs(Invocation& invocation);
Result<int> show_job_logs(Invocation& invocation);
/// Prints the logs of an experiment until it ends: "Awaiting logs...", then one
/// "ID<TAB>line<TAB>message" for each line. Returns the exit code of the job. `task`: this task
/// only.
Result<int> follow_logs(cli::Connection& connection, const std::string& id,
                        const std::optional<std::string>& task = std::nullopt);

// metrics.cc
Result<int> get_metrics(Invocation& invocation);
Result<int> list_metrics(Invocation& invocation);
Result<int> stream_metrics(Invocation& invocation);

// commands_server.cc
Result<int> list_artifacts(Invocation& invocation);
Result<int> get_artifacts(Invocation& invocation);
Result<int> create_project(Invocation& invocation);
Result<int> list_projects(Invocation& invocation);
Result<int> show_project(Invocation& invocation);
Result<int> delete_project(Invocation& invocation);
Result<int> list_clusters(Invocation& invocation);
Result<int> list_machine_types(Invocation& invocation);
Result<int> set_secret(Invocation& invocation);
Result<int> list_secrets(Invocation& invocation);
Result<int> delete_secret(Invocation& invocation);

// api_key.cc
Result<int> keep_key(Invocation& invocation);
Result<int> log_out(Invocation& invocation);
Result<int> show_version(Invocation& invocation);
/// Connects to the server in use with the key of --apiKey or $PAPERSPACE_API_KEY in place of the
/// context's token. Without either, a context without a token gets the key of `gradient apiKey`. A
/// server that only this user can reach needs no key.
Result<cli::Connection> connect(const Invocation& invocation);

/// The value of a required flag; reports a fault if it is missing.
std::string required(Invocation& invocation, const std::string& flag, const std::string& what);

/// The values of a flag that repeats (`flag`) and of a flag that takes a comma-separated list
/// (`list`, empty if there is no such flag): trimmed, sorted, without duplicates.
std::vector<std::string> words_of(const Invocation& invocation, const std::string& flag,
                                  const std::string& list);

/// All invalid flags as one error. REQUIRES: at least one flag is invalid.
base::Error faults_of(const Invocation& invocation);

// Errors and failures in the words of Gradient's users. Pure. Advice of the server that names
// commands or flags of Muster is replaced, by the typed part of the error or the failure.

inline constexpr const char* kProgram = "gradient";
inline constexpr words::Commands kWords{.resume = "gradient experiments start --id "};

base::Error for_gradient(base::Error error);
job::Job for_gradient(job::Job job);

/// The job of an experiment, by its ID or name.
Result<job::Job> get_job(cli::Connection& connection, const std::string& id);

/// Prints a line on standard output.
Result<void> print_line(const std::string& line);
/// Prints a line for the user on standard error.
void note(const std::string& line);

// How Gradient begins the message of a command that failed.
inline constexpr const char* kFetch = "Failed to fetch data: ";
inline constexpr const char* kUpdate = "Failed to update resource: ";
inline constexpr const char* kDelete = "Failed to delete resource: ";

/// Connects and calls `act`; does nothing if a flag is invalid. An error that Gradient's own
/// program has a message for (unknown name, wrong key) is printed with that message on standard
/// error; other errors are returned. `entity`: "Experiment" or "Project".
Result<int> with_server(Invocation& invocation, const std::string& doing, const std::string& entity,
                        const std::function<Result<int>(cli::Connection&)>& act);

/// Prints a table on standard output. If that is a terminal with fewer lines than the table, the
/// table goes through $PAGER or less, as in Gradient's own program.
Result<void> show_table(const AsciiTable& table);

/// The jobs of several projects as one listing, newest first. Jobs are read from the server page by
/// page: a page costs one request for each project, however many jobs there are.
///
/// Not thread-safe.
class JobPages {
 public:
  /// No projects: all that the caller may see. `tags`: only jobs that have all of them.
  /// `connection` must outlive this object.
  JobPages(cli::Connection& connection, const std::vector<std::string>& projects,
           const std::vector<std::string>& tags);

  /// The next `count` jobs, or the remaining ones.
  Result<std::vector<job::Job>> next(size_t count);

  /// Whether another job follows. Asks the server only if the jobs read so far do not show it.
  Result<bool> has_more();

 private:
  /// One project's jobs, newest first.
  struct Source {
    api::JobQuery query;
    std::deque<job::Job> read;  ///< read from the server, not yet returned by next()
    bool is_read_out = false;   ///< the server has no more
  };

  /// Reads `count` jobs from each source whose buffer is empty.
  Result<void> fill(size_t count);
  Source* newest();

  cli::Connection& connection_;
  std::vector<Source> sources_;
};

}  // namespace muster::dialects::gradient
