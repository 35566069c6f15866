// attach: sitting before what a pod runs, or seeing what it prints from now on.
#include <unistd.h>

#include <iostream>
#include <utility>

#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "cli/connection/job_watch.h"
#include "cli/logs/follow.h"
#include "cli/sessions/terminal_session.h"
#include "dialects/runai/attach.h"
#include "dialects/runai/others.h"
#include "dialects/runai/parts.h"
#include "dialects/runai/sentences.h"
#include "words/sentence.h"

namespace muster::dialects::runai {

namespace {

using base::ErrorCode;
using End = cli::logs::FollowEnd::How;

base::Error job_has_ended(const job::Job& job) {
  return {.code = ErrorCode::kConflict,
          .what = "job " + job.spec.name + " has ended: " + words::sentence(job.reason),
          .advice = "what it printed: runai logs " + job.spec.name};
}

class Attachment {
 public:
  Attachment(cli::Connection& connection, const AttachWish& wish)
      : connection_(connection), wish_(wish) {}

  Result<int> run() {
    MUSTER_TRY(job_, connection_.call([&](api::Client& client) { return client.get(wish_.job); }));
    MUSTER_TRY(pod_, find_pod(job_, wish_.pod));
    if (job::is_final(job_.phase) && !wish_.from_its_start) return job_has_ended(job_);
    say("Connecting to pod " + pod_.hostname);
    const bool ran_before = has_begun();
    if (!ran_before) {
      MUSTER_TRY(const bool goes_on, await_start());
      if (!goes_on) return left();
    }
    if (can_be_talked_to()) return sit_before(ran_before);
    if (wish_.wants_terminal) {
      say(no_terminal(pod_.hostname) + "; for a shell: runai bash " + job_.spec.name);
    }
    job::LogQuery query{.follow = true, .task = pod_.name};
    // Of one that was waited for, nothing that it has printed is old.
    if (!wish_.from_its_start && ran_before) query.tail = 0;
    if (!wish_.from_its_start && !ran_before) query.since = pod_.started;
    return show_output(query);
  }

 private:
  /// What its program is told comes from here; of others there is only what they print.
  bool can_be_talked_to() const {
    return pod_.phase == job::TaskPhase::kRunning && pod_.name == job::deciding_task(job_).name &&
           (job_.spec.terminal || (job_.spec.input && wish_.input));
  }

  Result<int> sit_before(bool ran_before) {
    MUSTER_TRY(const auto socket, connection_.call([&](api::Client& client) {
      return client.attach(job_.spec.name, {.task = pod_.name});
    }));
    if (wish_.from_its_start || !ran_before) MUSTER_CHECK(show_past());
    const bool types = wish_.input && ::isatty(STDIN_FILENO) == 1;
    MUSTER_TRY(
        const cli::sessions::SessionEnd end,
        cli::sessions::run_session(
            *socket, {.terminal = job_.spec.terminal && wish_.wants_terminal,
                      .input = wish_.input,
                      .detach_keys = types ? "\x10\x11" : "",
                      .greeting = types ? "ctrl-p ctrl-q leaves it, and the job goes on" : ""}));
    if (end.how == cli::sessions::SessionEnd::How::kServerGone) {
      return base::Error{.code = ErrorCode::kUnavailable,
                         .what = "the server went away; the job goes on: runai attach " +
                                 job_.spec.name + " comes back to it"};
    }
    if (end.how != cli::sessions::SessionEnd::How::kExited) say_left();
    return cli::sessions::exit_code_of(end);
  }

  /// What it printed before.
  Result<void> show_past() {
    const cli::logs::FollowRequest request{
        .name = job_.spec.name, .query = {.task = pod_.name}, .look = {.prefix = false}};
    MUSTER_TRY(const cli::logs::FollowEnd end,
               cli::logs::follow(connection_, interrupts_, request));
    if (end.how == End::kEnded) return {};
    return base::Error{.code = ErrorCode::kUnavailable, .what = "interrupted"};
  }

  bool has_begun() const {
    return pod_.phase == job::TaskPhase::kRunning || pod_.phase == job::TaskPhase::kEnded;
  }

  /// Whether to go on: false at Ctrl-C.
  Result<bool> await_start() {
    say("Waiting for pod to start running...");
    bool is_there = true;
    const cli::JobWatch watch{.project = job_.spec.project,
                              .names = {job_.spec.name},
                              .on_job =
                                  [&](const std::string&, const job::Job* job) {
                                    is_there = job != nullptr;
                                    return is_there && waits_still(*job);
                                  },
                              .bound = wish_.patience,
                              .interrupts = &interrupts_};
    MUSTER_TRY(const cli::WatchEnd end, cli::watch_jobs(connection_, watch));
    if (!is_there) return no_such_job(job_.spec.name, job_.spec.project);
    if (end == cli::WatchEnd::kBoundReached) return start_timed_out(job_);
    if (job::is_final(job_.phase) && !pod_.started) return job_has_ended(job_);
    return end == cli::WatchEnd::kEnough;
  }

  bool waits_still(const job::Job& job) {
    job_ = job;
    // It has its pods for as long as it lives.
    if (auto pod = find_pod(job, pod_.name)) pod_ = *std::move(pod);
    return !has_begun() && !job::is_final(job.phase);
  }

  Result<int> show_output(const job::LogQuery& query) {
    const cli::logs::FollowRequest request{
        .name = job_.spec.name, .query = query, .look = {.prefix = false}};
    MUSTER_TRY(const cli::logs::FollowEnd end,
               cli::logs::follow(connection_, interrupts_, request));
    if (end.how == End::kPipeClosed) return cli::kExitBrokenPipe;
    if (end.how == End::kInterrupted) return left();
    std::cerr << cli::failure_text(end.job, "runai") << std::flush;
    return cli::exit_code_of(end.job);
  }

  void say_left() const {
    say("\nDetached; the job goes on. To see it again: runai attach " + job_.spec.name);
  }

  Result<int> left() const {
    say_left();
    return cli::kExitInterrupted;
  }

  cli::Connection& connection_;
  const AttachWish& wish_;
  cli::Interrupts interrupts_;
  job::Job job_;
  job::Task pod_;
};

}  // namespace

Result<int> attach(cli::Connection& connection, const AttachWish& wish) {
  return Attachment(connection, wish).run();
}

Result<int> attach(cli::Connection& connection, const std::string& job, const std::string& pod) {
  // Whoever has just submitted it is not to miss what it prints first, nor a job that is short.
  return attach(connection, {.job = job,
                             .pod = pod,
                             .wants_terminal = ::isatty(STDIN_FILENO) == 1,
                             .input = true,
                             .from_its_start = true});
}

Result<int> attach_command(Asked& asked) {
  const std::string name = the_name(asked, "job");
  if (!asked.reader.ok()) return usage_error_of(asked);
  MUSTER_TRY(cli::Connection connection, connect(asked));
  MUSTER_CHECK(find_job(connection, name, project_of(asked)));
  const bool input = !asked.reader.has("--no-stdin");
  return attach(connection, {.job = name,
                             .pod = asked.reader.text("--pod"),
                             .wants_terminal = input && !asked.reader.has("--no-tty") &&
                                               ::isatty(STDIN_FILENO) == 1,
                             .input = input});
}

}  // namespace muster::dialects::runai
