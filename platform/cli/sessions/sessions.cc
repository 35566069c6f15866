// exec, bash, attach: a program in a task, a shell there, and sitting before what it runs.
#include "cli/sessions/sessions.h"

#include <unistd.h>

#include <iostream>

#include "api/terminal.h"
#include "cli/command/command.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "cli/connection/commands.h"
#include "cli/logs/follow.h"
#include "cli/sessions/session_target.h"
#include "cli/sessions/terminal_session.h"

namespace muster::cli::sessions {

namespace {

Call read_exec(Reading& in) {
  ExecCommand command{.name = in.name("job"), .project = in.whose_job(), .request = {}};
  command.request.command = in.arguments.program;
  command.request.task = in.reader.text("--task");
  command.request.terminal = in.reader.has("--terminal");
  if (command.request.command.empty() && in.reader.ok()) {
    in.reader.fault("", "say which program to run, behind '--'");
  }
  return command;
}

std::chrono::milliseconds read_wait(Reading& in) {
  return in.reader.duration("--wait", kUsualWait);
}

Call read_bash(Reading& in) {
  return BashCommand{.name = in.name("job"),
                     .project = in.whose_job(),
                     .task = in.reader.text("--task"),
                     .wait = read_wait(in)};
}

Call read_attach(Reading& in) {
  AttachCommand command{.name = in.name("job"),
                        .project = in.whose_job(),
                        .task = in.reader.text("--task"),
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
           .help = "how long to wait for a job that does not run yet (default: 5m)"}};
}

}  // namespace

Command exec_command() {
  return {.name = "exec",
          .help = "run a program in a task of a running job",
          .read = read_exec,
          .positionals = one_of(Offer::kJobs),
          .takes_program = true,
          .flags =
              Flags{{.name = "--task",
                     .value = "TASK",
                     .help = "in this task; else in the one that decides how the job ends"},
                    {.name = "--terminal", .letter = "-t", .help = "with a terminal, for shells"}} +
              whose_job_flag(),
          .example = "muster exec -t dist --task worker-1 -- bash"};
}

Command bash_command() {
  return {.name = "bash",
          .help = "open a shell in a running job",
          .read = read_bash,
          .positionals = one_of(Offer::kJobs),
          .flags = task_flag("in this task; else in the one that decides how the job ends") +
                   wait_flag() + whose_job_flag(),
          .example = "muster bash lab",
          .see_also = "muster attach, muster exec, muster convert"};
}

Command attach_command() {
  const Flags own = {
      {.name = "--no-stdin", .help = "only look on: nothing that is typed goes there"},
      {.name = "--from-start", .help = "with what it has printed so far"},
      {.name = "--detach-keys",
       .value = "KEYS",
       .help = "the keys that leave it (default: ctrl-p,ctrl-q)"}};
  return {.name = "attach",
          .help = "sit before the program of a running job: see, type, leave, come back",
          .read = read_attach,
          .positionals = one_of(Offer::kJobs),
          .flags = task_flag("what this task runs; else the one that decides how the job ends") +
                   own + wait_flag() + whose_job_flag(),
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
  MUSTER_TRY(const auto socket, connection.call([&](api::Client& client) {
    return client.exec(command.name, request);
  }));
  MUSTER_TRY(const SessionEnd end, run_session(*socket, {.terminal = request.terminal}));
  if (end.how == SessionEnd::How::kServerGone) return end.error;
  if (!end.exit.error.empty()) std::cerr << "muster: " << end.exit.error << std::endl;
  return exit_code_of(end);
}

namespace {

using base::ErrorCode;

void say(const std::string& line) {
  std::cerr << "muster: " << line << std::endl;
}

/// "muster attach lab --task worker-1".
std::string again(const std::string& verb, const SessionTarget& target) {
  const std::string task = target.is_leader() ? "" : " --task " + target.task.name;
  return "muster " + verb + " " + target.job.spec.name + task;
}

int left(const SessionTarget& target) {
  // The terminal has just shown what was typed last.
  std::cerr << "\n";
  say("left job '" + target.job.spec.name +
      "', which goes on; to come back: " + again("attach", target));
  return kExitDone;
}

/// Of a program that reads nothing, the log has all there is, and in whole lines.
Result<int> show_log(Connection& connection, const AttachCommand& command,
                     const SessionTarget& target) {
  Interrupts interrupts;  // from before it says that Ctrl-C leaves
  say(target.task.name + " of job '" + target.job.spec.name +
      "' reads nothing and has no terminal: its output follows, Ctrl-C leaves it");
  job::LogQuery query{.follow = true, .task = target.task.name};
  if (!command.from_start) query.tail = 0;
  MUSTER_TRY(
      const logs::FollowEnd end,
      logs::follow(connection, interrupts,
                   {.name = target.job.spec.name, .query = query, .look = {.prefix = false}}));
  if (end.how == logs::FollowEnd::How::kPipeClosed) return kExitBrokenPipe;
  if (end.how == logs::FollowEnd::How::kInterrupted) return left(target);
  std::cerr << failure_text(end.job) << std::flush;
  return cli::exit_code_of(end.job);
}

/// What it printed before anybody was attached. Those who come in the midst of a line may see a
/// piece of it twice, and miss none.
Result<void> show_past(Connection& connection, const SessionTarget& target) {
  Interrupts interrupts;
  const logs::FollowRequest past{
      .name = target.job.spec.name, .query = {.task = target.task.name}, .look = {.prefix = false}};
  MUSTER_TRY(const logs::FollowEnd end, logs::follow(connection, interrupts, past));
  if (end.how == logs::FollowEnd::How::kEnded) return {};
  return base::Error{.code = ErrorCode::kUnavailable, .what = "interrupted"};
}

std::string greeting(const AttachCommand& command, const SessionTarget& target, bool terminal) {
  const std::string keys = terminal ? words_of_detach_keys(command.detach_keys) : "Ctrl-C";
  return "muster: attached to " + target.task.name + " of job '" + target.job.spec.name + "'; " +
         keys + " leaves it";
}

Result<int> sit_before(Connection& connection, const AttachCommand& command,
                       const SessionTarget& target) {
  const auto socket = connection.call([&](api::Client& client) {
    return client.attach(target.job.spec.name, {.task = target.task.name});
  });
  if (!socket) return socket.error();
  const bool types = !command.no_stdin && ::isatty(STDIN_FILENO) == 1;
  const SessionWish wish{.terminal = target.job.spec.terminal,
                         .input = !command.no_stdin,
                         .detach_keys = types ? command.detach_keys : "",
                         .greeting = greeting(command, target, types && target.job.spec.terminal)};
  if (command.from_start) MUSTER_CHECK(show_past(connection, target));
  MUSTER_TRY(const SessionEnd end, run_session(**socket, wish));
  if (end.how == SessionEnd::How::kServerGone) {
    return base::Error{.code = ErrorCode::kUnavailable,
                       .what = "the server went away; the job goes on: " + again("attach", target) +
                               " comes back to it"};
  }
  if (end.how == SessionEnd::How::kDetached) return left(target);
  if (end.how == SessionEnd::How::kInterrupted) {
    left(target);
    return exit_code_of(end);
  }
  if (!end.exit.succeeded()) say(target.task.name + " " + job::explain(end.exit));
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
  const bool can_be_talked_to = target->is_leader() && (spec.input || spec.terminal);
  if (!can_be_talked_to) return show_log(connection, command, *target);
  return sit_before(connection, command, *target);
}

}  // namespace muster::cli::sessions
