// bash and exec: run a shell or a program in a pod.

#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/logs/logs.h"
#include "cli/sessions/sessions.h"
#include "cli/sessions/terminal_session.h"
#include "dialects/runai/commands.h"
#include "words/sentence.h"

namespace muster::dialects::runai {

namespace {

/// While this object exists, standard input is empty: without -i, a program must not consume the
/// input of the surrounding script.
class NoInput {
 public:
  NoInput() : before_(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) {
    const base::UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup2(nothing.get(), STDIN_FILENO);
  }
  NoInput(const NoInput&) = delete;
  NoInput& operator=(const NoInput&) = delete;
  ~NoInput() {
    if (before_) ::dup2(before_.get(), STDIN_FILENO);
  }

 private:
  base::UniqueFd before_;
};

/// The chosen pod of the job. kConflict: it does not run.
Result<job::Task> running_pod(const Invocation& invocation, const std::string& name) {
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_TRY(const job::Job job, find_job(connection, name, project_of(invocation)));
  MUSTER_TRY(job::Task task, find_pod(job, invocation.reader.text("--pod")));
  if (task.phase != job::TaskPhase::kRunning) return pod_not_running(job, task);
  return task;
}

}  // namespace

Result<int> bash_command(Invocation& invocation) {
  const std::string name = the_name(invocation, "job");
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(const job::Task pod, running_pod(invocation, name));
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  return cli::sessions::run_shell(
      connection,
      {.job = name, .task = pod.name, .reopen = command_for("bash", name, project_of(invocation))});
}

Result<int> exec_command(Invocation& invocation) {
  const std::string name = the_name(invocation, "job");
  if (invocation.reader.ok() && invocation.arguments.program.empty()) {
    invocation.reader.fault("",
                            "the command to run is missing, as in: runai exec " + name + " ls -l");
  }
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(const job::Task pod, running_pod(invocation, name));
  cli::sessions::ExecCommand command{
      .name = name, .project = project_of(invocation), .request = {}};
  command.request.command = invocation.arguments.program;
  command.request.task = pod.name;
  command.request.terminal = invocation.reader.has("--tty");
  std::optional<NoInput> no_input;
  if (!invocation.reader.has("--stdin")) no_input.emplace();
  return execute(command, invocation.hooks);
}

// attach: connects to the program of a pod, or shows its output from now on.

namespace {

using base::ErrorCode;
using End = cli::logs::FollowEnd::How;

base::Error job_has_ended(const job::Job& job) {
  return {.code = ErrorCode::kConflict,
          .what = "job " + job.spec.name + " has ended: " + words::sentence(job.reason),
          .advice = "show its output: " + command_for("logs", job.spec.name, job.spec.project)};
}

class Attachment {
 public:
  Attachment(cli::Connection& connection, const AttachOptions& options)
      : connection_(connection), options_(options) {}

  Result<int> run() {
    MUSTER_TRY(job_,
               connection_.call([&](api::Client& client) { return client.get(options_.job); }));
    MUSTER_TRY(pod_, find_pod(job_, options_.pod));
    if (job::is_final(job_.phase) && !options_.from_its_start) return job_has_ended(job_);
    note("Connecting to pod " + pod_.hostname);
    const bool ran_before = has_begun();
    if (!ran_before) {
      MUSTER_TRY(const bool goes_on, await_start());
      if (!goes_on) return left();
    }
    if (accepts_input()) return connect_terminal(ran_before);
    if (options_.needs_terminal) {
      note(no_terminal(pod_.hostname) +
           "; for a shell: " + command_for("bash", job_.spec.name, job_.spec.project));
    }
    job::LogQuery query{.follow = true, .task = pod_.name};
    // If attach waited for the pod, all of its output is new.
    if (!options_.from_its_start && ran_before) query.tail = 0;
    if (!options_.from_its_start && !ran_before) query.since = pod_.started;
    return show_output(query);
  }

 private:
  // The deciding task's program gets input if it has a terminal, or if it reads input and the
  // command line asks for input.
  bool accepts_input() const {
    return pod_.phase == job::TaskPhase::kRunning && pod_.name == job::deciding_task(job_).name &&
           (job_.spec.terminal || (job_.spec.input && options_.input));
  }

  Result<int> connect_terminal(bool ran_before) {
    MUSTER_TRY(const auto socket, connection_.call([&](api::Client& client) {
      return client.attach(job_.spec.name, {.task = pod_.name});
    }));
    if (options_.from_its_start || !ran_before) {
      MUSTER_TRY(const End past, show_past());
      if (past == End::kInterrupted) return left();
      if (past == End::kPipeClosed) return cli::kExitBrokenPipe;
    }
    const bool types = options_.input && ::isatty(STDIN_FILENO) == 1;
    MUSTER_TRY(
        const cli::sessions::SessionEnd end,
        cli::sessions::run_session(
            *socket, {.terminal = job_.spec.terminal && options_.needs_terminal,
                      .input = options_.input,
                      .detach_keys = types ? "\x10\x11" : "",
                      .greeting = types ? "ctrl-p ctrl-q detaches, and the job continues" : ""}));
    if (end.how == cli::sessions::SessionEnd::How::kServerGone) {
      return base::Error{.code = ErrorCode::kUnavailable,
                         .what = "lost the connection to the server; the job continues: " +
                                 attach_again() + " attaches again"};
    }
    const bool has_left = end.how == cli::sessions::SessionEnd::How::kDetached ||
                          end.how == cli::sessions::SessionEnd::How::kInterrupted;
    if (has_left) report_detached();
    return cli::sessions::exit_code_of(end);
  }

  /// Prints the earlier output.
  Result<End> show_past() {
    const cli::logs::FollowRequest request{
        .name = job_.spec.name, .query = {.task = pod_.name}, .look = {.prefix = false}};
    MUSTER_TRY(const cli::logs::FollowEnd end,
               cli::logs::follow(connection_, interrupts_, request));
    return end.how;
  }

  bool has_begun() const {
    return pod_.phase == job::TaskPhase::kRunning || pod_.phase == job::TaskPhase::kEnded;
  }

  /// False: Ctrl-C.
  Result<bool> await_start() {
    note("Waiting for pod to start running...");
    bool is_there = true;
    const cli::JobWatch watch{.project = job_.spec.project,
                              .names = {job_.spec.name},
                              .on_job =
                                  [&](const std::string&, const job::Job* job) {
                                    is_there = job != nullptr;
                                    return is_there && waits_still(*job);
                                  },
                              .bound = options_.patience,
                              .interrupts = &interrupts_};
    MUSTER_TRY(const cli::WatchEnd end, cli::watch_jobs(connection_, watch));
    if (!is_there) return no_such_job(job_.spec.name, job_.spec.project);
    if (end == cli::WatchEnd::kBoundReached) return start_timed_out(job_);
    if (job::is_final(job_.phase) && !pod_.started) return job_has_ended(job_);
    return end == cli::WatchEnd::kEnough;
  }

  bool waits_still(const job::Job& job) {
    job_ = job;
    // A running job keeps its pods.
    if (auto pod = find_pod(job, pod_.name)) pod_ = *std::move(pod);
    return !has_begun() && !job::is_final(job.phase);
  }

  Result<int> show_output(const job::LogQuery& query) {
    const cli::logs::FollowRequest request{.name = job_.spec.name,
                                           .query = query,
                                           .look = {.prefix = false},
                                           .program = "runai",
                                           .commands = kWords};
    MUSTER_TRY(const cli::logs::FollowEnd end,
               cli::logs::follow(connection_, interrupts_, request));
    if (end.how == End::kPipeClosed) return cli::kExitBrokenPipe;
    if (end.how == End::kInterrupted) return left();
    std::cerr << cli::failure_text(for_runai(end.job), "runai") << std::flush;
    return cli::exit_code_of(end.job);
  }

  std::string attach_again() const {
    return command_for("attach", job_.spec.name, job_.spec.project) +
           (options_.pod.empty() ? "" : " --pod " + options_.pod);
  }

  void report_detached() const {
    note("\nDetached; the job continues. Attach again: " + attach_again());
  }

  Result<int> left() const {
    report_detached();
    return cli::kExitInterrupted;
  }

  cli::Connection& connection_;
  const AttachOptions& options_;
  cli::Interrupts interrupts_;
  job::Job job_;
  job::Task pod_;
};

}  // namespace

Result<int> attach(cli::Connection& connection, const AttachOptions& options) {
  return Attachment(connection, options).run();
}

Result<int> attach(cli::Connection& connection, const std::string& job, const std::string& pod) {
  // After a submission, shows the output from its beginning, even if the job has already ended.
  return attach(connection, {.job = job,
                             .pod = pod,
                             .needs_terminal = ::isatty(STDIN_FILENO) == 1,
                             .input = true,
                             .from_its_start = true});
}

Result<int> attach_command(Invocation& invocation) {
  const std::string name = the_name(invocation, "job");
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  MUSTER_TRY(cli::Connection connection, connect(invocation));
  MUSTER_CHECK(find_job(connection, name, project_of(invocation)));
  const bool input = !invocation.reader.has("--no-stdin");
  return attach(connection, {.job = name,
                             .pod = invocation.reader.text("--pod"),
                             .needs_terminal = input && !invocation.reader.has("--no-tty") &&
                                               ::isatty(STDIN_FILENO) == 1,
                             .input = input});
}

// port-forward: makes ports of a pod reachable on this machine.

namespace {

using job::TaskPhase;

bool has_begun(const job::Task& pod) {
  return pod.phase == TaskPhase::kRunning || pod.phase == TaskPhase::kEnded;
}

/// The job after its pod has started, or in its last state after the timeout; nothing: Ctrl-C.
Result<std::optional<job::Job>> await_pod(cli::Connection& connection, job::Job job,
                                          const std::string& pod,
                                          std::chrono::milliseconds patience) {
  cli::Interrupts interrupts;
  const auto waits = [&](const std::string&, const job::Job* now) {
    if (now == nullptr) return false;
    job = *now;
    const auto found = find_pod(job, pod);
    return !job::is_final(job.phase) && !(found && has_begun(*found));
  };
  MUSTER_TRY(const cli::WatchEnd end, cli::watch_jobs(connection, {.project = job.spec.project,
                                                                   .names = {job.spec.name},
                                                                   .on_job = waits,
                                                                   .bound = patience,
                                                                   .interrupts = &interrupts}));
  if (end == cli::WatchEnd::kInterrupted) return std::optional<job::Job>();
  return std::optional(std::move(job));
}

std::vector<cli::sessions::ForwardedPort> read_ports(Invocation& invocation) {
  std::vector<cli::sessions::ForwardedPort> ports;
  for (const std::string& text : invocation.reader.texts("--port")) {
    const auto read = cli::sessions::forwarded_port_of(text);
    if (read) ports.push_back(*read);
    if (!read) invocation.reader.fault("--port", read.error().what);
  }
  if (ports.empty() && invocation.reader.ok()) {
    invocation.reader.fault("--port", "is missing; give one, such as --port 8080:8888");
  }
  return ports;
}

}  // namespace

Result<int> port_forward_command(Invocation& invocation) {
  const std::string name = the_name(invocation, "job");
  cli::sessions::PortForwardCommand command{
      .name = name,
      .project = project_of(invocation),
      .address = invocation.reader.text("--address", "localhost"),
      .ports = read_ports(invocation),
      .program = "runai"};
  const auto patience = invocation.reader.duration("--pod-running-timeout", {});
  if (!invocation.reader.ok()) return usage_error_of(invocation);
  {
    const std::string pod_name = invocation.reader.text("--pod");
    MUSTER_TRY(cli::Connection connection, connect(invocation));
    MUSTER_TRY(job::Job job, find_job(connection, name, command.project));
    MUSTER_TRY(job::Task pod, find_pod(job, pod_name));
    if (patience.count() > 0 && !has_begun(pod)) {
      MUSTER_TRY(auto waited, await_pod(connection, std::move(job), pod_name, patience));
      if (!waited) return cli::kExitInterrupted;
      job = *std::move(waited);
      MUSTER_TRY(pod, find_pod(job, pod_name));
    }
    if (pod.phase != TaskPhase::kRunning) return pod_not_running(job, pod);
    command.task = pod.name;
  }
  return execute(command, invocation.hooks);
}

}  // namespace muster::dialects::runai
