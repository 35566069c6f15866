// queue, explain, events, suspend, resume: why jobs wait, and making them wait.
#include <optional>

#include "api/wire.h"
#include "cli/command/command.h"
#include "cli/common/interrupts.h"
#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/waiting_view.h"

namespace muster::cli::jobs {

namespace {

Call read_suspend(Reading& in) {
  return SuspendCommand{.names = in.names("job"), .project = in.whose_job(), .output = in.output()};
}

Call read_resume(Reading& in) {
  return ResumeCommand{.names = in.names("job"), .project = in.whose_job(), .output = in.output()};
}

Call read_explain(Reading& in) {
  return ExplainCommand{.name = in.name("job"), .project = in.whose_job(), .output = in.output()};
}

Call read_events(Reading& in) {
  EventsCommand command{.name = in.optional_name(),
                        .project = in.whose_job(),
                        .follow = in.reader.has("--follow"),
                        .output = in.output()};
  if (command.follow && in.reader.has("--output")) {
    in.reader.fault("--output", "does not go with --follow, which prints lines as they come");
  }
  return command;
}

Call read_queue(Reading& in) {
  return QueueCommand{in.list_output()};
}

}  // namespace

Command suspend_command() {
  return {
      .name = "suspend",
      .help = "free the room of jobs and hold them back: SIGTERM, then SIGKILL after their grace",
      .read = read_suspend,
      .positionals = some_of(Offer::kJobs),
      .flags = whose_job_flag() + output_flag(),
      .example = "muster suspend dist",
      .see_also = "muster resume"};
}

Command resume_command() {
  return {.name = "resume",
          .help = "let suspended jobs start again",
          .read = read_resume,
          .positionals = some_of(Offer::kJobs),
          .flags = whose_job_flag() + output_flag(),
          .example = "muster resume dist"};
}

Command explain_command() {
  return {.name = "explain",
          .help = "why a job waits: what it lacks, who holds it, when it may start",
          .read = read_explain,
          .positionals = one_of(Offer::kJobs),
          .flags = whose_job_flag() + output_flag(),
          .example = "muster explain dist",
          .see_also = "muster queue, muster get, muster project get"};
}

Command events_command() {
  return {
      .name = "events",
      .help = "what happened when, to one job or to all",
      .read = read_events,
      .positionals = maybe_one_of(Offer::kJobs),
      .flags = Flags{{.name = "--follow", .letter = "-f", .help = "go on with what happens next"}} +
               whose_job_flag() + output_flag(),
      .example = "muster events dist --follow"};
}

Command queue_command() {
  return {.name = "queue",
          .help = "the jobs that wait, in the order in which they are served, and why",
          .read = read_queue,
          .flags = list_output_flag(),
          .example = "muster queue",
          .see_also = "muster explain"};
}

namespace {

/// All jobs, those of a project, or the one that is named.
Result<std::vector<job::Job>> jobs_asked_for(Connection& connection, const EventsCommand& command) {
  if (command.name) {
    MUSTER_TRY(job::Job job,
               connection.call([&](api::Client& client) { return client.get(*command.name); }));
    return std::vector<job::Job>{std::move(job)};
  }
  api::JobQuery query;
  if (!command.project.empty()) query.project = command.project;
  return connection.call([&](api::Client& client) { return client.list_all(query); });
}

/// From the first that is kept on, until the job that is named has ended. Where the server goes
/// away, it goes on behind the last that was shown.
class EventFollower {
 public:
  EventFollower(const EventsCommand& command, Connection& connection)
      : connection_(connection), query_{.since = base::Time()} {
    query_.name = command.name;
    if (!command.project.empty()) query_.project = command.project;
  }

  Result<int> run() {
    while (true) {
      const auto ended = read();
      if (interrupted_) return kExitInterrupted;
      if (pipe_closed_) return kExitBrokenPipe;
      if (ended && *ended) return kExitDone;
      if (!ended && ended.error().code != base::ErrorCode::kUnavailable) return ended.error();
      MUSTER_CHECK(connection_.come_back());
    }
  }

 private:
  Result<std::optional<job::Job>> read() {
    const http::Wake wake{.fd = interrupts_.fd(), .on_wake = [this] {
                            interrupted_ = interrupts_.take();
                            return !interrupted_;
                          }};
    return connection_.client().watch_events(
        query_, place_, [this](const api::JobEvent& event) { return print(event); }, wake);
  }

  bool print(const api::JobEvent& event) {
    connection_.is_well();
    pipe_closed_ = !show(event_line({event.job, {event.time, event.what}}));
    return !pipe_closed_;
  }

  Connection& connection_;
  Interrupts interrupts_;
  api::Client::EventQuery query_;
  std::string place_;
  bool interrupted_ = false;
  bool pipe_closed_ = false;
};

using Act = Result<job::Job> (api::Client::*)(const std::string&);

/// Suspends or resumes every name, and says what came of each.
template <class Command>
Result<int> act_on_jobs(const Command& command, Act act, const std::string& word,
                        const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  std::vector<job::Job> changed;
  std::string text;
  const int code = for_each_name(command.names, [&](const std::string& name) -> Result<void> {
    MUSTER_TRY(const job::Job job,
               connection.call([&](api::Client& client) { return (client.*act)(name); }));
    text += word + " " + job.spec.name + "\n";
    changed.push_back(job);
    return {};
  });
  MUSTER_CHECK(show(command.output, text, api::jobs_to_json(changed)));
  return code;
}

}  // namespace

Result<int> execute(const QueueCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const std::vector<job::Job> jobs,
             connection.call([](api::Client& client) { return client.queue(); }));
  const std::string text = command.output == Output::kNames
                               ? names_of(jobs)
                               : queue_table(jobs, base::SystemClock().now());
  MUSTER_CHECK(show(command.output, text, api::jobs_to_json(jobs)));
  return kExitDone;
}

Result<int> execute(const ExplainCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  MUSTER_TRY(const job::Explanation explanation,
             connection.call([&](api::Client& client) { return client.explain(command.name); }));
  MUSTER_CHECK(show(command.output, explanation_page(explanation, base::SystemClock().now()),
                    api::explanation_to_json(explanation)));
  return kExitDone;
}

Result<int> execute(const EventsCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  if (command.follow) return EventFollower(command, connection).run();
  MUSTER_TRY(const std::vector<job::Job> jobs, jobs_asked_for(connection, command));
  const std::vector<JobEvent> events = merged_events(jobs);
  MUSTER_CHECK(show(command.output, event_table(events), events_json(events)));
  return kExitDone;
}

Result<int> execute(const SuspendCommand& command, const Hooks& hooks) {
  return act_on_jobs(command, &api::Client::suspend, "suspended", hooks);
}

Result<int> execute(const ResumeCommand& command, const Hooks& hooks) {
  return act_on_jobs(command, &api::Client::resume, "resumed", hooks);
}

}  // namespace muster::cli::jobs
