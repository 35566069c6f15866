// Run:AI's commands: one function each. commands.cc finds the function by the command's path and
// holds what the commands share: the project, its jobs, the pods of a job, and the messages that
// scripts look for, letter by letter.
//
// Blocking; I/O, unless a function's comment states otherwise.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/connection/contexts.h"
#include "job/job.h"
#include "words/sentence.h"

namespace muster::dialects::runai {

using base::Result;

/// What a command gets. Invalid flags are reported to `reader`; a command checks reader.ok() before
/// it does anything, and returns usage_error_of() if it is false.
struct Invocation {
  const std::vector<std::string>& words;  ///< the command line as typed
  const cli::Arguments& arguments;
  cli::FlagReader& reader;
  const cli::Caller& caller;
  const cli::Hooks& hooks;

  /// -p, or the project in use; empty: the server's default.
  std::string project() const;
};

/// Calls the function of the command. A command that only groups others prints its help.
Result<int> run_command(Invocation& invocation);

// commands_submit.cc: submit, submit-mpi, submit-dist
Result<int> submit(Invocation& invocation);

// commands_jobs.cc
Result<int> list_jobs_command(Invocation& invocation);
Result<int> list_nodes_command(Invocation& invocation);
Result<int> describe_node_command(Invocation& invocation);
Result<int> describe_job_command(Invocation& invocation);
Result<int> logs_command(Invocation& invocation);
Result<int> delete_command(Invocation& invocation);
Result<int> suspend_command(Invocation& invocation);
Result<int> resume_command(Invocation& invocation);
Result<int> top_nodes_command(Invocation& invocation);
Result<int> top_jobs_command(Invocation& invocation);

// commands_sessions.cc
Result<int> bash_command(Invocation& invocation);
Result<int> exec_command(Invocation& invocation);
Result<int> attach_command(Invocation& invocation);
Result<int> port_forward_command(Invocation& invocation);

struct AttachOptions {
  std::string job;
  std::string pod = {};                        ///< empty: the pod that decides the job's end
  std::chrono::milliseconds patience{30'000};  ///< how long to wait until the pod runs
  bool needs_terminal = false;                 ///< prints a note: attach has no terminal
  bool input = false;                          ///< sends standard input to the program
  bool from_its_start = false;  ///< prints the output from the start, even of an ended job
};

/// Shows the output of a pod. Returns the exit code of the job when it ends, or kExitInterrupted:
/// Ctrl-C detaches, and the job continues.
///
/// Errors: kNotFound: no such job or pod; kConflict: the job has already ended, and
/// `from_its_start` is false; kTimeout: the pod does not run yet.
Result<int> attach(cli::Connection& connection, const AttachOptions& options);
/// attach() from the start of the output, waiting up to 30 s until the pod runs.
Result<int> attach(cli::Connection& connection, const std::string& job, const std::string& pod);

// commands_server.cc
Result<int> list_projects_command(Invocation& invocation);
Result<int> use_project_command(Invocation& invocation);
Result<int> list_clusters_command(Invocation& invocation);
Result<int> use_cluster_command(Invocation& invocation);
Result<int> login_command(Invocation& invocation);
Result<int> logout_command(Invocation& invocation);
Result<int> whoami_command(Invocation& invocation);
Result<int> version_command(Invocation& invocation);
Result<int> completion_command(Invocation& invocation);
Result<int> templates_command(Invocation& invocation);
Result<int> update_command(Invocation& invocation);

/// Invocation::project(), with the default project's name in place of an empty one. Pure.
std::string project_of(const Invocation& invocation);

/// The name that the command requires; reports a fault and returns "" if it is missing. Pure.
std::string the_name(Invocation& invocation, const std::string& of);

/// The format that --output names. Pure.
cli::Output output_of(Invocation& invocation, const std::vector<std::string>& formats);

/// Connects to the server in use; names of jobs are looked up in the project.
Result<cli::Connection> connect(const Invocation& invocation);

/// The job of this name. Errors: kNotFound, with Run:AI's message.
Result<job::Job> find_job(cli::Connection& connection, const std::string& name,
                          const std::string& project);

/// The jobs of one project or of all, by project and name. Errors: kNotFound, with Run:AI's
/// message.
Result<std::vector<job::Job>> list_jobs(cli::Connection& connection,
                                        const std::optional<std::string>& project);

/// The task whose host name or own name is `pod`; empty: the task that decides the job's end. Pure.
Result<job::Task> find_pod(const job::Job& job, const std::string& pod);

/// Prints a line on standard error; on a terminal, control characters are made harmless.
void note(const std::string& line);

// Messages. Pure.

inline constexpr words::Commands kWords{.resume = "runai resume "};

/// Advice of the server that names commands or flags of Muster is replaced, by the typed part of the
/// error or the failure.
base::Error for_runai(base::Error error);
job::Job for_runai(job::Job job);
/// The invalid flags of the command line, with the command that prints the help.
base::Error usage_error_of(const Invocation& invocation);
base::Error no_such_project(const std::string& project);
/// For commands that show a job. Run:AI's delete has a placeholder with a hyphen in its place.
base::Error no_such_job(const std::string& job, const std::string& project);
base::Error no_such_job_to_delete(const std::string& job, const std::string& project);
/// For suspend and resume.
base::Error job_not_found(const std::string& job);
/// Lists the pods of the job.
base::Error no_such_pod(const std::string& pod, const job::Job& job);
/// Contains the pod's status.
base::Error pod_not_running(const job::Job& job, const job::Task& task);
/// No task of the job was ever started, so there is no output.
base::Error nothing_printed_yet(const job::Job& job);
base::Error start_timed_out(const job::Job& job);
/// "runai attach dist -p team-a", for messages.
std::string command_for(const std::string& verb, const std::string& job,
                        const std::string& project);
/// The error for a feature of Run:AI that Muster lacks. `advice` names a replacement.
base::Error not_here(const std::string& what, const std::string& advice);
/// The note that a pod's program has no terminal.
std::string no_terminal(const std::string& pod);

}  // namespace muster::dialects::runai
