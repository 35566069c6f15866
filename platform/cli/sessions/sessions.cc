// exec, bash, attach: run a program or a shell in a task, or attach to the task's program.

#include "cli/sessions/sessions.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "api/terminal.h"
#include "base/units.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/logs/logs.h"
#include "cli/sessions/terminal_session.h"
#include "words/sentence.h"

namespace muster::cli::sessions {

namespace {

Call read_exec(Reading& in) {
  const Reading::JobTask meant = in.job_and_task();
  ExecCommand command{.name = meant.job, .project = in.project_of_job(), .request = {}};
  command.request.command = in.arguments.program;
  command.request.task = meant.task;
  command.request.terminal = in.reader.has("--terminal");
  if (command.request.command.empty() && in.reader.ok()) {
    in.reader.fault("", "give a program after '--'");
  }
  return command;
}

std::chrono::milliseconds read_wait(Reading& in) {
  return in.reader.duration("--wait", kUsualWait);
}

Call read_bash(Reading& in) {
  const Reading::JobTask meant = in.job_and_task();
  return BashCommand{
      .name = meant.job, .project = in.project_of_job(), .task = meant.task, .wait = read_wait(in)};
}

Call read_attach(Reading& in) {
  const Reading::JobTask meant = in.job_and_task();
  AttachCommand command{.name = meant.job,
                        .project = in.project_of_job(),
                        .task = meant.task,
                        .wait = read_wait(in),
                        .no_stdin = in.reader.has("--no-stdin"),
                        .from_start = in.reader.has("--from-start")};
  if (!in.reader.has("--detach-keys")) return command;
  const auto keys = parse_detach_keys(in.reader.text("--detach-keys"));
  if (keys) {
    command.detach_keys = *keys;
  } else {
    in.reader.fault("--detach-keys", keys.error().what);
  }
  return command;
}

Flags wait_flag() {
  return {{.name = "--wait",
           .value = "TIME",
           .help = "how long to wait until the job runs (default: 5m)"}};
}

}  // namespace

Command exec_command() {
  return {.name = "exec",
          .help = "run a program in a task of a running job",
          .read = read_exec,
          .positionals = job_or_task(),
          .takes_program = true,
          .flags = Flags{{.name = "--task",
                          .value = "TASK",
                          .help = "task to use (default: the task that decides the job's result)"},
                         {.name = "--terminal",
                          .letter = "-t",
                          .help = "allocate a terminal, for interactive programs"},
                         {.name = "--stdin",
                          .letter = "-i",
                          .help = "accepted as in -it; standard input is always sent"}} +
                   job_project_flag(),
          .example = "muster exec -t dist --task worker-1 -- bash"};
}

Command bash_command() {
  return {.name = "bash",
          .help = "open a shell in a running job",
          .read = read_bash,
          .positionals = job_or_task(),
          .flags = task_flag("task to use (default: the task that decides the job's result)") +
                   wait_flag() + job_project_flag(),
          .example = "muster bash lab",
          .see_also = "muster attach, muster exec, muster convert"};
}

Command attach_command() {
  const Flags own = {{.name = "--no-stdin", .help = "show the output only; do not send input"},
                     {.name = "--from-start", .help = "begin with the output so far"},
                     {.name = "--detach-keys",
                      .value = "KEYS",
                      .help = "keys that detach (default: ctrl-p,ctrl-q)"}};
  return {
      .name = "attach",
      .help = "attach to a running job's program: see its output, type input, detach",
      .read = read_attach,
      .positionals = job_or_task(),
      .flags = task_flag("task to attach to (default: the task that decides the job's result)") +
               own + wait_flag() + job_project_flag(),
      .example = "muster attach debug",
      .see_also = "muster bash, muster exec"};
}

Result<int> execute(const ExecCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  api::ExecRequest request = command.request;
  if (const auto size = size_of_terminal(STDIN_FILENO); size && request.terminal) {
    request.rows = size->first;
    request.columns = size->second;
  }
  MUSTER_TRY(
      const auto socket,
      connection.call_once([&](api::Client& client) { return client.exec(command.name, request); },
                           "the program may have started; check this before you try again"));
  MUSTER_TRY(const SessionEnd end, run_session(*socket, {.terminal = request.terminal}));
  if (end.how == SessionEnd::How::kServerGone) return end.error;
  if (!end.exit.error.empty()) std::cerr << "muster: " << end.exit.error << std::endl;
  return exit_code_of(end);
}

namespace {

using base::ErrorCode;

void print_line(const std::string& line) {
  std::cerr << "muster: " << line << std::endl;
}

/// "muster attach lab --task worker-1".
std::string again(const std::string& verb, const SessionTarget& target) {
  const std::string task = target.is_leader() ? "" : " --task " + target.task.name;
  return "muster " + verb + " " + target.job.spec.name + task;
}

void report_detached(const SessionTarget& target) {
  // Ends the line of the terminal's last echo.
  std::cerr << "\n";
  print_line("detached from job '" + target.job.spec.name +
             "', which continues; attach again: " + again("attach", target));
}

/// If the program reads no input, its log is complete and has whole lines.
Result<int> show_log(Connection& connection, const AttachCommand& command,
                     const SessionTarget& target) {
  Interrupts interrupts;  // constructed before the message about Ctrl-C is printed
  print_line(target.task.name + " of job '" + target.job.spec.name +
             "' reads no input and has no terminal; its output follows, Ctrl-C detaches");
  job::LogQuery query{.follow = true, .task = target.task.name};
  if (!command.from_start) query.tail = 0;
  MUSTER_TRY(
      const logs::FollowEnd end,
      logs::follow(connection, interrupts,
                   {.name = target.job.spec.name, .query = query, .look = {.prefix = false}}));
  if (end.how == logs::FollowEnd::How::kPipeClosed) return kExitBrokenPipe;
  if (end.how == logs::FollowEnd::How::kInterrupted) {
    report_detached(target);
    return kExitInterrupted;
  }
  std::cerr << failure_text(end.job) << std::flush;
  return cli::exit_code_of(end.job);
}

/// Prints the output from before the user attached. If the user attaches in the middle of a line,
/// part of it may be printed twice; nothing is lost.
Result<logs::FollowEnd::How> show_past(Connection& connection, const SessionTarget& target) {
  Interrupts interrupts;
  const logs::FollowRequest past{
      .name = target.job.spec.name, .query = {.task = target.task.name}, .look = {.prefix = false}};
  MUSTER_TRY(const logs::FollowEnd end, logs::follow(connection, interrupts, past));
  return end.how;
}

std::string greeting(const AttachCommand& command, const SessionTarget& target, bool terminal) {
  const std::string keys = terminal ? words_of_detach_keys(command.detach_keys) : "Ctrl-C";
  return "muster: attached to " + target.task.name + " of job '" + target.job.spec.name + "'; " +
         keys + " detaches";
}

Result<int> connect_terminal(Connection& connection, const AttachCommand& command,
                             const SessionTarget& target) {
  const auto socket = connection.call([&](api::Client& client) {
    return client.attach(target.job.spec.name, {.task = target.task.name});
  });
  if (!socket) return socket.error();
  const bool types = !command.no_stdin && ::isatty(STDIN_FILENO) == 1;
  const SessionOptions options{
      .terminal = target.job.spec.terminal,
      .input = !command.no_stdin,
      .detach_keys = types ? command.detach_keys : "",
      .greeting = greeting(command, target, types && target.job.spec.terminal)};
  if (command.from_start) {
    MUSTER_TRY(const auto past, show_past(connection, target));
    if (past == logs::FollowEnd::How::kPipeClosed) return kExitBrokenPipe;
    if (past == logs::FollowEnd::How::kInterrupted) {
      report_detached(target);
      return kExitInterrupted;
    }
  }
  MUSTER_TRY(const SessionEnd end, run_session(**socket, options));
  if (end.how == SessionEnd::How::kServerGone) {
    return base::Error{.code = ErrorCode::kUnavailable,
                       .what = "lost the connection to the server; the job continues: " +
                               again("attach", target) + " attaches again"};
  }
  if (end.how == SessionEnd::How::kDetached) {
    report_detached(target);
    return kExitDone;
  }
  if (end.how == SessionEnd::How::kInterrupted) {
    report_detached(target);
    return exit_code_of(end);
  }
  const bool has_failed = end.how == SessionEnd::How::kExited && !end.exit.succeeded();
  if (has_failed) print_line(target.task.name + " " + job::explain(end.exit));
  return exit_code_of(end);
}

}  // namespace

Result<int> execute(const BashCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const auto target,
             await_running(connection, command.name, command.task, command.wait));
  if (!target) return kExitInterrupted;
  return run_shell(
      connection,
      {.job = command.name, .task = target->task.name, .reopen = again("bash", *target)});
}

Result<int> execute(const AttachCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const auto target,
             await_running(connection, command.name, command.task, command.wait));
  if (!target) return kExitInterrupted;
  const job::JobSpec& spec = target->job.spec;
  const bool accepts_input = target->is_leader() && (spec.input || spec.terminal);
  if (!accepts_input) return show_log(connection, command, *target);
  return connect_terminal(connection, command, *target);
}

namespace {

using base::Error;
using base::Result;

Result<job::Task> task_of(const job::Job& job, const std::string& name) {
  if (name.empty()) return job::deciding_task(job);
  const auto found = std::find_if(job.tasks.begin(), job.tasks.end(),
                                  [&](const job::Task& task) { return task.name == name; });
  if (found != job.tasks.end()) return *found;
  return Error{.code = ErrorCode::kNotFound,
               .what = "job '" + job.spec.name + "' has no task '" + name + "'",
               .advice = "muster get " + job.spec.name + " lists its tasks"};
}

Error task_has_ended(const job::Job& job, const job::Task& task) {
  return {.code = ErrorCode::kConflict,
          .what = "'" + task.name + "' of job '" + job.spec.name + "' has ended" +
                  (task.exit ? ": it " + job::explain(*task.exit) : ""),
          .advice = "muster get " + job.spec.name + " shows the state of its tasks"};
}

/// The state of a job, for a user who waits for it.
std::string state_of(const job::Job& job) {
  const std::string phase(job::to_string(job.phase));
  // "Starting: starts" would repeat itself.
  const auto* const notice = std::get_if<job::Notice>(&job.reason.what);
  const bool repeats = notice != nullptr && notice->what == job::Notice::What::kStarts;
  return "job '" + job.spec.name + "' is " + phase +
         (repeats ? "" : words::after_colon(job.reason));
}

class Wait {
 public:
  Wait(Connection& connection, std::string task)
      : connection_(connection), task_(std::move(task)) {}

  Result<std::optional<SessionTarget>> run(const std::string& name,
                                           std::chrono::milliseconds patience) {
    MUSTER_TRY(job_, connection_.call([&](api::Client& client) { return client.get(name); }));
    MUSTER_TRY(const bool runs, look());
    if (runs) return target();
    if (patience.count() == 0) return not_yet();
    return wait(patience);
  }

 private:
  Result<std::optional<SessionTarget>> wait(std::chrono::milliseconds patience) {
    Interrupts interrupts;
    show_state();
    std::optional<Result<bool>> seen;
    const JobWatch watch{.project = job_.spec.project,
                         .names = {job_.spec.name},
                         .on_job =
                             [&](const std::string&, const job::Job* job) {
                               if (job == nullptr) {
                                 seen = Result<bool>(is_gone());
                                 return false;
                               }
                               job_ = *job;
                               seen = look();
                               show_state();
                               return *seen && !**seen;
                             },
                         .bound = patience,
                         .interrupts = &interrupts};
    MUSTER_TRY(const WatchEnd end, watch_jobs(connection_, watch));
    if (end == WatchEnd::kInterrupted) return std::optional<SessionTarget>();
    if (seen && !*seen) return seen->error();
    if (!seen || !**seen) return not_yet();
    return target();
  }

  /// Whether the task runs.
  Result<bool> look() {
    if (job::is_final(job_.phase)) return has_ended(job_);
    MUSTER_TRY(const job::Task task, task_of(job_, task_));
    // The tasks of a job that waits for its next attempt have ended, but will start again.
    if (task.phase == job::TaskPhase::kEnded && job_.phase == job::Phase::kRunning) {
      return task_has_ended(job_, task);
    }
    return task.phase == job::TaskPhase::kRunning;
  }

  std::optional<SessionTarget> target() const {
    return SessionTarget{.job = job_, .task = *task_of(job_, task_)};
  }

  void show_state() {
    std::string state = safe_lines(state_of(job_));
    if (state == shown_state_ || job::is_final(job_.phase) || job_.phase == job::Phase::kRunning)
      return;
    std::cerr << "muster: " << state << std::endl;
    shown_state_ = std::move(state);
  }

  Error not_yet() const {
    return {.code = ErrorCode::kTimeout,
            .what = state_of(job_),
            .advice = "the job keeps waiting; muster explain " + job_.spec.name +
                      " shows why, and --wait TIME waits longer"};
  }

  Error is_gone() const {
    return {.code = ErrorCode::kNotFound, .what = "job '" + job_.spec.name + "' was removed"};
  }

  Connection& connection_;
  std::string task_;
  job::Job job_;
  std::string shown_state_;
};

}  // namespace

Result<std::optional<SessionTarget>> await_running(Connection& connection, const std::string& name,
                                                   const std::string& task,
                                                   std::chrono::milliseconds patience) {
  return Wait(connection, task).run(name, patience);
}

Error has_ended(const job::Job& job) {
  return {.code = ErrorCode::kConflict,
          .what = "job '" + job.spec.name + "' has ended (" +
                  std::string(job::to_string(job.phase)) + ")" +
                  (job.phase == job::Phase::kStopped ? "" : words::after_colon(job.reason)),
          .advice = "muster logs " + job.spec.name + " shows its output"};
}

}  // namespace muster::cli::sessions
