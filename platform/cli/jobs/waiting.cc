// queue, explain, events, suspend, resume.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "api/array_wire.h"
#include "api/wire.h"
#include "base/json_text.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command/command.h"
#include "cli/common/array_view.h"
#include "cli/common/format.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/jobs/arrays.h"
#include "cli/jobs/jobs.h"
#include "job/fact_json.h"
#include "words/sentence.h"
#include "workspace/path_text.h"

namespace muster::cli::jobs {

namespace {

Call read_suspend(Reading& in) {
  return SuspendCommand{
      .names = in.names("job"), .project = in.project_of_job(), .output = in.output()};
}

Call read_resume(Reading& in) {
  return ResumeCommand{
      .names = in.names("job"), .project = in.project_of_job(), .output = in.output()};
}

Call read_explain(Reading& in) {
  return ExplainCommand{
      .name = in.name("job"), .project = in.project_of_job(), .output = in.output()};
}

Call read_events(Reading& in) {
  EventsCommand command{.name = in.optional_name(),
                        .project = in.project_of_job(),
                        .follow = in.reader.has("--follow"),
                        .output = in.output()};
  if (command.follow && in.reader.has("--output")) {
    in.reader.fault("--output", "cannot be used with --follow, which prints lines");
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
      .help =
          "suspend jobs and release their resources: SIGTERM, then SIGKILL after the grace period",
      .read = read_suspend,
      .positionals = some_of(Offer::kJobs),
      .flags = job_project_flag() + output_flag(),
      .example = "muster suspend dist",
      .see_also = "muster resume"};
}

Command resume_command() {
  return {.name = "resume",
          .help = "resume suspended jobs",
          .read = read_resume,
          .positionals = some_of(Offer::kJobs),
          .flags = job_project_flag() + output_flag(),
          .example = "muster resume dist"};
}

Command explain_command() {
  return {
      .name = "explain",
      .help = "explain why a job waits: the missing resources, their holders, the expected start",
      .read = read_explain,
      .positionals = one_of(Offer::kJobs),
      .flags = job_project_flag() + output_flag(),
      .example = "muster explain dist",
      .see_also = "muster queue, muster get, muster project get"};
}

Command events_command() {
  return {.name = "events",
          .help = "list the events of a job or of all jobs",
          .read = read_events,
          .positionals = maybe_one_of(Offer::kJobs),
          .flags = Flags{{.name = "--follow", .letter = "-f", .help = "continue with new events"}} +
                   job_project_flag() + output_flag(),
          .example = "muster events dist --follow"};
}

Command queue_command() {
  return {.name = "queue",
          .help = "list waiting jobs in the order in which they are served, with the reasons",
          .read = read_queue,
          .flags = list_output_flag(),
          .example = "muster queue",
          .see_also = "muster explain"};
}

namespace {

/// All jobs, the jobs of a project, or the named job.
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

/// Prints events until the named job has ended, beginning with the oldest stored event. After a
/// lost connection, continues after the last printed event.
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
      MUSTER_TRY(const bool is_back, connection_.come_back(interrupts_.fd()));
      if (!is_back) return kExitInterrupted;
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
using ArrayAct = Result<job::Array> (api::Client::*)(const std::string&);

/// Suspends or resumes each job, and prints the result.
template <class Command>
Result<int> act_on_jobs(const Command& command, Act act, ArrayAct array_act,
                        const std::string& word, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  const auto line = [&](const std::string& name) { return word + " " + name + "\n"; };
  return change_each(
      connection, command.names, command.output,
      {.of_job = [&](api::Client& client, const std::string& name) { return (client.*act)(name); },
       .of_array = [&](api::Client& client,
                       const std::string& name) { return (client.*array_act)(name); },
       .job_line = [&](const job::Job& job) { return line(job.spec.name); },
       .array_line =
           [&](const job::Array& array) {
             return word + " " + array.spec.name + ": " + array_counts(array) + "\n";
           }});
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

namespace {

/// The array, and why its first waiting member waits.
Result<int> explain_array(Connection& connection, const job::Array& array, Output output) {
  std::string page = array_page(array, base::SystemClock().now());
  const api::JobQuery query{
      .project = array.spec.project,
      .phases = {job::Phase::kQueued},
      .limit = 1,
      .origin = api::OriginFilter{.kind = job::JobOrigin::Kind::kArray, .of = array.id}};
  const auto waiting = connection.call([&](api::Client& client) { return client.list(query); });
  if (waiting && !waiting->jobs.empty() && !array.ended) {
    const std::string& id = waiting->jobs.front().id;
    const auto why = connection.call([&](api::Client& client) { return client.explain(id); });
    if (why) page += "\nFIRST WAITING MEMBER\n" + explanation_page(*why, base::SystemClock().now());
  }
  MUSTER_CHECK(show(output, page, api::array_to_json(array)));
  return kExitDone;
}

}  // namespace

Result<int> execute(const ExplainCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  auto explained =
      connection.call([&](api::Client& client) { return client.explain(command.name); });
  if (!explained) {
    MUSTER_TRY(const std::optional<job::Array> array,
               instead_of_job(connection, explained.error(),
                              [&](api::Client& client) { return client.array(command.name); }));
    if (array) return explain_array(connection, *array, command.output);
  }
  MUSTER_TRY(const job::Explanation explanation, std::move(explained));
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
  return act_on_jobs(command, &api::Client::suspend, &api::Client::suspend_array, "suspended",
                     hooks);
}

Result<int> execute(const ResumeCommand& command, const Hooks& hooks) {
  return act_on_jobs(command, &api::Client::resume, &api::Client::resume_array, "resumed", hooks);
}

namespace {

using base::Time;

std::string priority_words(const job::Scheduling& scheduling) {
  return std::to_string(job::priority_of(scheduling));
}

/// "in 5m"; "now" for a time in the past.
std::string time_until(const std::optional<Time>& then, Time now) {
  if (!then) return "-";
  return *then <= now ? "now" : "in " + age(now, *then);
}

std::string may_start_words(const std::optional<Time>& then, Time now) {
  return then ? base::to_rfc3339(*then, 0) + " (" + time_until(then, now) + ")" : "";
}

std::string indented(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  " + line + "\n";
  return text;
}

std::string devices_words(const job::Placing& placing) {
  std::string text;
  for (const int device : placing.devices) {
    text += (text.empty() ? "GPU " : ", ") + std::to_string(device);
  }
  const bool part = placing.gpu_share_milli > 0 && placing.gpu_share_milli < 1000;
  if (part && !text.empty()) text += " (" + base::format_milli(placing.gpu_share_milli) + " of it)";
  return text;
}

std::string placing_table(const std::vector<job::Placing>& placing) {
  Table table({{"TASK"}, {"NODE"}, {"GPUS"}});
  for (const job::Placing& place : placing) {
    table.add({place.task, place.node, devices_words(place)});
  }
  return table.to_string("  ");
}

/// The project's use with and without the job: GPUs, and CPUs and memory if the job requests them.
std::string effect_table(const job::ProjectStatus& before, const job::ProjectStatus& after) {
  Table table({{""}, {"BEFORE", true}, {"AFTER", true}});
  const auto words = [](const job::Share& of) {
    return amounts_words(of.gpu_milli, of.cpu_milli, of.memory_bytes);
  };
  const auto asked_for = [&](job::Share of) {
    if (after.requested.cpu_milli == 0) of.cpu_milli.reset();
    if (after.requested.memory_bytes == 0) of.memory_bytes.reset();
    return words(of);
  };
  const auto amounts = [&](const job::ProjectStatus::Amounts& of) {
    return asked_for({of.gpu_milli, of.cpu_milli, of.memory_bytes});
  };
  table.add({"quota", words(before.deserved), words(after.deserved)});
  table.add({"fair share", asked_for(before.fair_share), asked_for(after.fair_share)});
  table.add({"used", amounts(before.allocated), amounts(after.allocated)});
  table.add({"not preemptible", amounts(before.allocated_non_preemptible),
             amounts(after.allocated_non_preemptible)});
  table.add({"asked for", amounts(before.requested), amounts(after.requested)});
  return table.to_string("  ");
}

}  // namespace

std::string queue_table(const std::vector<job::Job>& jobs, Time now) {
  Table table({{"POS", true},
               {"JOB"},
               {"PROJECT"},
               {"PRIORITY", true},
               {"NEEDS"},
               {"WAITING", true},
               {"MAY START"},
               {"REASON"}});
  int position = 0;
  for (const job::Job& job : jobs) {
    table.add({job.suspended ? "-" : std::to_string(++position), job.spec.name, job.spec.project,
               priority_words(job.spec.scheduling), needs_words(job.spec), age(job.submitted, now),
               time_until(job.may_start, now), words::sentence(job.reason)});
  }
  return table.to_string();
}

std::string explanation_page(const job::Explanation& explanation, Time now) {
  std::string text(job::to_string(explanation.phase));
  text +=
      words::after_colon(explanation.reason) + "\n" + indented(words::details(explanation.reason));
  const std::string facts = fields({
      {"POSITION", explanation.position > 0 ? std::to_string(explanation.position) : ""},
      {"MAY START", may_start_words(explanation.may_start, now)},
  });
  if (!facts.empty()) text += "\n" + facts;
  if (!explanation.events.empty()) text += "\nEVENTS\n";
  for (const job::Event& event : explanation.events) {
    text += "  " + base::to_rfc3339(event.time) + "  " + words::sentence(event.what) + "\n";
  }
  return text;
}

std::string forecast_page(const job::JobSpec& spec, const job::Forecast& forecast, Time now) {
  std::string text =
      forecast.members == 0
          ? ""
          : "array of " +
                workspace::count_text(static_cast<size_t>(forecast.members), "member", "members") +
                "; its first member ";
  text += forecast.starts_now ? "would start now" : "would wait";
  text += words::after_colon(forecast.reason) + "\n" + indented(words::details(forecast.reason));
  const std::string may_start = may_start_words(forecast.may_start, now);
  if (!forecast.starts_now && !may_start.empty()) text += "\nMAY START  " + may_start + "\n";
  if (!forecast.placing.empty()) text += "\nPLACES\n" + placing_table(forecast.placing);
  const std::vector<std::string> evictions = words::evictions(forecast);
  if (!evictions.empty()) text += "\nEVICTIONS\n" + indented(evictions);
  text += "\nPROJECT " + spec.project + "\n" + effect_table(forecast.before, forecast.after);
  return text;
}

std::vector<JobEvent> merged_events(const std::vector<job::Job>& jobs) {
  std::vector<JobEvent> events;
  for (const job::Job& job : jobs) {
    for (const job::Event& event : job.events) events.push_back({job.spec.name, event});
  }
  std::stable_sort(events.begin(), events.end(), [](const JobEvent& left, const JobEvent& right) {
    return left.event.time < right.event.time;
  });
  return events;
}

std::string event_table(const std::vector<JobEvent>& events) {
  Table table({{"TIME"}, {"JOB"}, {"EVENT"}});
  for (const JobEvent& event : events) {
    table.add({base::to_rfc3339(event.event.time), event.job, words::sentence(event.event.what)});
  }
  return table.to_string();
}

std::string event_line(const JobEvent& event) {
  return base::to_rfc3339(event.event.time) + "  " + event.job + "  " +
         words::sentence(event.event.what) + "\n";
}

std::string events_json(const std::vector<JobEvent>& events) {
  constexpr int kNanoseconds = 9;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const JobEvent& event : events) {
    list.push_back({{"time", base::to_rfc3339(event.event.time, kNanoseconds)},
                    {"job", event.job},
                    {"text", words::sentence(event.event.what)},
                    {"fact", base::parse_ordered_json(job::data_of(event.event.what))}});
  }
  const nlohmann::ordered_json json{{"events", std::move(list)}};
  return base::json_text(json);
}

}  // namespace muster::cli::jobs
