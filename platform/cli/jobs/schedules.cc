// schedule create, list, get, history, pause, resume, run, delete: jobs that run again and again.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/array_wire.h"
#include "api/schedule_wire.h"
#include "api/wire.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command/command.h"
#include "cli/common/array_view.h"
#include "cli/common/format.h"
#include "cli/common/job_view.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/submit_file.h"
#include "cli/spec/spec_flags.h"
#include "cron/cron.h"
#include "job/validate.h"
#include "record/words.h"

namespace muster::cli::jobs {

using base::Error;
using base::ErrorCode;
using job::Schedule;
using job::ScheduledRun;

// --- the commands

namespace {

constexpr const char* kCronMissing = "is missing; give the times, as in '0 3 * * *' or @daily";

void read_times(Reading& in) {
  if (in.reader.text("--cron").empty()) return;
  const auto cron = cron::parse_cron(in.reader.text("--cron"));
  if (cron) return;
  for (const base::Fault& fault : cron.error().faults) {
    in.reader.fault("--cron", (fault.field.empty() ? "" : fault.field + ": ") + fault.what);
  }
}

/// The server decides about the zone, because this machine may lack it. But if the command is
/// refused anyway, an unknown zone is reported with the other faults.
void note_unknown_zone(Reading& in) {
  if (in.reader.ok() || !in.reader.has("--timezone")) return;
  const std::string zone = in.reader.text("--timezone");
  if (cron::load_zone(zone)) return;
  in.reader.fault("--timezone", "there is no time zone " + base::in_quotes(zone) +
                                    " on this machine; give a name such as Europe/Zurich");
}

/// The faults of a job that flags describe.
void check_job_of_flags(Reading& in, const CreateScheduleCommand& command) {
  job::JobSpec spec = spec::default_spec(in.caller);
  // The fault of a missing name is reported already.
  spec.name = command.name.empty() ? "name" : command.name;
  (void)spec::override_spec(command.flags, in.reader, spec);
  // The fault of a missing program is reported already.
  if (spec.command.empty() && spec.image.empty()) spec.command = {"true"};
  spec::read_settings_and_check(in.caller, in.reader, spec);
}

Call read_create_schedule(Reading& in) {
  CreateScheduleCommand command{.name = in.optional_name().value_or(""),
                                .cron = in.reader.text("--cron"),
                                .timezone = in.reader.text("--timezone"),
                                .paused = in.reader.has("--paused"),
                                .settings = in.reader.texts("--set"),
                                .flags = {.arguments = in.arguments, .caller = in.caller},
                                .output = in.output()};
  if (in.reader.has("--file")) command.file = in.reader.text("--file");
  if (in.reader.has("--overlap")) {
    command.overlap = record::meant_by<job::ScheduleSpec::Overlap>(
        in.reader.choice("--overlap", {"forbid", "allow", "replace"}));
  }
  if (in.reader.has("--catch-up")) {
    command.catch_up = record::meant_by<job::ScheduleSpec::CatchUp>(
        in.reader.choice("--catch-up", {"one", "none"}));
  }
  if (in.reader.has("--catch-up-within")) {
    command.catch_up_within = in.reader.duration("--catch-up-within", {});
    if (command.catch_up == job::ScheduleSpec::CatchUp::kNone) {
      in.reader.fault("--catch-up-within", "cannot be used with --catch-up none");
    }
  }
  // A CronJob in the file has a name and times.
  if (!command.file && command.name.empty()) in.reader.fault("NAME", "is missing");
  if (!command.file && command.cron.empty()) in.reader.fault("--cron", kCronMissing);
  if (!command.file && in.arguments.program.empty() && !in.reader.has("--image")) {
    in.reader.fault("", "no job; give a job file with -f, or a command after '--'");
  }
  read_times(in);
  if (command.file) {
    (void)spec::read_overrides(in.arguments, in.caller, in.reader);
  } else {
    check_job_of_flags(in, command);
  }
  command.workspace = spec::read_workspace_flags(in.reader);
  note_unknown_zone(in);
  return command;
}

Call read_list_schedules(Reading& in) {
  return ListSchedulesCommand{.project = in.reader.text("--project"), .output = in.list_output()};
}

template <ScheduleAction action>
Call read_schedule(Reading& in) {
  return ScheduleCommand{.action = action,
                         .name = in.name("schedule"),
                         .project = in.project_of_job(),
                         .output = in.output()};
}

Positionals schedule_name() {
  return {.name = "NAME", .least = 1, .most = 1};
}

Flags whose_schedule_flag() {
  return {{.name = "--project",
           .value = "PROJECT",
           .help = "project of the schedule, if several projects have a schedule of this name",
           .offer = Offer::kProjects}};
}

template <ScheduleAction action>
Command schedule_action(const char* name, const char* help, const char* example) {
  return {.name = name,
          .help = help,
          .read = read_schedule<action>,
          .positionals = schedule_name(),
          .flags = action == ScheduleAction::kDelete ? whose_schedule_flag()
                                                     : whose_schedule_flag() + output_flag(),
          .example = example};
}

Command create_schedule() {
  const Flags own = {
      {.name = "--cron",
       .value = "TIMES",
       .help =
           "minute, hour, day of the month, month, day of the week, as in '0 3 * * mon-fri'; or "
           "@hourly, @daily, @weekly, @monthly, @yearly"},
      {.name = "--timezone",
       .value = "ZONE",
       .help = "time zone of these times, such as Europe/Zurich (default: UTC)"},
      {.name = "--overlap",
       .value = "HOW",
       .help = "while an earlier run has not ended: skip the run (forbid, the default), run both "
               "(allow), or stop the earlier run first (replace)",
       .choices = {"forbid", "allow", "replace"},
       .offer = Offer::kChoices},
      {.name = "--catch-up",
       .value = "HOW",
       .help = "after a downtime: start the last missed run (one, the default), or none",
       .choices = {"one", "none"},
       .offer = Offer::kChoices},
      {.name = "--catch-up-within",
       .value = "TIME",
       .help = "start a missed run only this long after its time, as in 2h (default: no limit)"},
      {.name = "--paused", .help = "create the schedule paused, until 'muster schedule resume'"},
      {.name = "--file",
       .letter = "-f",
       .value = "FILE",
       .help = "job file of the runs, or a CronJob of Kubernetes; - reads standard input",
       .offer = Offer::kFiles},
      {.name = "--set",
       .value = "KEY=VALUE",
       .help = "set any key of the job file; overrides every other flag",
       .repeats = true}};
  return {.name = "create",
          .help = "submit a job again and again, at the times of a cron expression",
          .read = read_create_schedule,
          .positionals = {.name = "NAME", .most = 1},
          .takes_program = true,
          .flags = spec::in_groups(own + spec::override_flags() + output_flag()),
          .example =
              "muster schedule create nightly --cron '0 3 * * *' --timezone Europe/Zurich -f "
              "job.yaml",
          .see_also = "muster submit --begin, which waits for one time"};
}

}  // namespace

Command schedule_command() {
  const Command list = {.name = "list",
                        .help = "list the schedules",
                        .read = read_list_schedules,
                        .flags = Flags{{.name = "--project",
                                        .value = "PROJECT",
                                        .help = "only this project",
                                        .offer = Offer::kProjects}} +
                                 list_output_flag(),
                        .example = "muster schedule list"};
  return {.name = "schedule",
          .help = "run jobs again and again, at the times of a cron expression",
          .commands = {create_schedule(), list,
                       schedule_action<ScheduleAction::kGet>(
                           "get", "show a schedule with its next and last runs",
                           "muster schedule get nightly"),
                       schedule_action<ScheduleAction::kHistory>("history",
                                                                 "list the last runs of a schedule",
                                                                 "muster schedule history nightly"),
                       schedule_action<ScheduleAction::kPause>(
                           "pause", "start no runs until 'muster schedule resume'",
                           "muster schedule pause nightly"),
                       schedule_action<ScheduleAction::kResume>(
                           "resume", "continue a paused schedule, without the runs that it missed",
                           "muster schedule resume nightly"),
                       schedule_action<ScheduleAction::kRun>("run", "submit a run now",
                                                             "muster schedule run nightly"),
                       schedule_action<ScheduleAction::kDelete>(
                           "delete", "delete a schedule; the jobs of its runs stay",
                           "muster schedule delete nightly")},
          .example = "muster schedule create nightly --cron '0 3 * * *' -f job.yaml"};
}

// --- what they print

namespace {

/// "2026-11-29 03:00 +01:00" in the zone of the schedule, or UTC if this machine does not have it.
std::string time_words(const Schedule& schedule, base::Time time) {
  auto zone = cron::load_zone(schedule.spec.timezone);
  if (!zone) zone = cron::load_zone("UTC");
  const cron::LocalTime at = zone->local(time);
  const auto two = [](int number) {
    const std::string digits = std::to_string(number);
    return digits.size() == 1 ? "0" + digits : digits;
  };
  return std::to_string(at.year) + "-" + two(at.month) + "-" + two(at.day) + " " + two(at.hour) +
         ":" + two(at.minute) + " " + at.offset;
}

std::string state_words(const Schedule& schedule) {
  if (!schedule.problem.empty()) return "does not run: " + schedule.problem;
  return schedule.paused ? "paused" : "active";
}

std::string outcome_words(const ScheduledRun& run) {
  switch (run.outcome) {
    case ScheduledRun::Outcome::kStarted:
      return run.phase ? std::string(job::to_string(*run.phase)) : "not ended";
    case ScheduledRun::Outcome::kSkipped:
      return "skipped: an earlier run had not ended";
    case ScheduledRun::Outcome::kMissed:
      return "missed: the server was down";
    case ScheduledRun::Outcome::kRefused:
      break;
  }
  return "refused: " + run.error;
}

std::string next_words(const Schedule& schedule) {
  return schedule.upcoming.empty() ? "-" : time_words(schedule, schedule.upcoming.front());
}

std::string schedule_table(const std::vector<Schedule>& schedules) {
  Table table({{"NAME"}, {"PROJECT"}, {"CRON"}, {"TIMEZONE"}, {"STATE"}, {"NEXT"}, {"LAST"}});
  for (const Schedule& schedule : schedules) {
    table.add({schedule.spec.name, schedule.spec.project, schedule.spec.cron,
               schedule.spec.timezone, state_words(schedule), next_words(schedule),
               schedule.history.empty() ? "-" : outcome_words(schedule.history.front())});
  }
  return table.to_string();
}

/// "one", or "one, within 2h".
std::string catch_up_words(const job::ScheduleSpec& spec) {
  std::string words(record::word_for(spec.catch_up));
  if (spec.catch_up_within) words += ", within " + base::format_duration(*spec.catch_up_within);
  return words;
}

std::string history_table(const Schedule& schedule, size_t most) {
  Table table({{"TIME"}, {"JOB"}, {"OUTCOME"}, {"EXIT", true}});
  for (size_t i = 0; i < std::min(most, schedule.history.size()); ++i) {
    const ScheduledRun& run = schedule.history[i];
    table.add({time_words(schedule, run.time) + (run.by_request ? ", by request" : ""),
               run.job.empty() ? "-" : run.job, outcome_words(run),
               run.exit_code ? std::to_string(*run.exit_code) : ""});
  }
  return table.to_string();
}

}  // namespace

std::string schedule_page(const Schedule& schedule) {
  constexpr size_t kShownRuns = 10;
  std::vector<std::pair<std::string, std::string>> rows{
      {"NAME", schedule.spec.name},
      {"ID", schedule.id},
      {"PROJECT", schedule.spec.project},
      {"OWNER", schedule.owner},
      {"STATE", state_words(schedule)},
      {"CRON", schedule.spec.cron},
      {"TIMEZONE", schedule.spec.timezone},
      {"OVERLAP", std::string(record::word_for(schedule.spec.overlap))},
      {"CATCH-UP", catch_up_words(schedule.spec)},
      {"COMMAND", base::shell_joined(schedule.spec.job.command)},
      {"CREATED", moment_words(schedule.created)}};
  for (const base::Time& time : schedule.upcoming) {
    rows.emplace_back(rows.back().first == "CREATED" ? "NEXT" : " ", time_words(schedule, time));
  }
  std::string page = fields(rows);
  if (!schedule.history.empty()) page += "\n" + history_table(schedule, kShownRuns);
  return page;
}

namespace {

/// The job of the runs from a file, with the times of a CronJob.
Result<Submission> run_of_file(const CreateScheduleCommand& command, const Hooks& hooks) {
  MUSTER_TRY(std::vector<Submission> jobs, read_job_file({.file = *command.file,
                                                          .name = command.name,
                                                          .settings = command.settings,
                                                          .flags = command.flags,
                                                          .may_be_schedule = true},
                                                         hooks));
  if (jobs.size() != 1) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "'" + *command.file + "' has " + std::to_string(jobs.size()) +
                         " jobs; a schedule has one"};
  }
  if (command.workspace) jobs.front().workspace = command.workspace;
  return std::move(jobs.front());
}

/// The job of the runs from flags and the words after "--".
Result<Submission> run_of_flags(const CreateScheduleCommand& command) {
  Submission run;
  run.spec = spec::default_spec(command.flags.caller);
  run.spec.name = command.name;
  FlagReader reader(command.flags.arguments);
  (void)spec::override_spec(command.flags, reader, run.spec);
  spec::SettingsRead read = spec::apply_settings(command.settings, run.spec);
  spec::resolve_paths(command.flags.caller.folder, run.spec);
  spec::note_inherited(reader, run.spec);
  std::vector<base::Fault> faults = std::move(read.faults);
  if (faults.empty()) faults = job::validate(run.spec);
  if (!faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the job of the schedule is not valid",
                 .faults = std::move(faults)};
  }
  run.workspace = command.workspace;
  return run;
}

/// The schedule of a file, as the command line changes it; without its job.
Result<job::ScheduleSpec> changed_schedule(job::ScheduleSpec spec,
                                           const CreateScheduleCommand& command) {
  if (!command.name.empty()) spec.name = command.name;
  if (!command.cron.empty()) spec.cron = command.cron;
  if (!command.timezone.empty()) spec.timezone = command.timezone;
  if (command.overlap) spec.overlap = *command.overlap;
  if (command.catch_up) spec.catch_up = *command.catch_up;
  if (command.catch_up_within) spec.catch_up_within = *command.catch_up_within;
  if (spec.catch_up == job::ScheduleSpec::CatchUp::kNone) spec.catch_up_within.reset();
  spec.held = spec.held || command.paused;
  std::vector<base::Fault> faults;
  if (spec.name.empty()) faults.push_back({.field = "NAME", .what = "is missing"});
  if (spec.cron.empty()) faults.push_back({.field = "--cron", .what = kCronMissing});
  if (faults.empty()) return spec;
  return Error{.code = ErrorCode::kInvalid,
               .what = "the schedule is not complete",
               .advice = "only a file with a CronJob contains a name and times",
               .faults = std::move(faults)};
}

Result<job::ScheduleSpec> spec_of_schedule(const CreateScheduleCommand& command,
                                           Connection& connection, const Hooks& hooks) {
  MUSTER_TRY(Submission run, command.file ? run_of_file(command, hooks) : run_of_flags(command));
  MUSTER_TRY(job::ScheduleSpec spec,
             changed_schedule(run.schedule.value_or(job::ScheduleSpec{}), command));
  MUSTER_CHECK(send_files(connection, run));
  spec.project = run.spec.project;
  spec.job = std::move(run.spec);
  return spec;
}

}  // namespace

Result<int> execute(const CreateScheduleCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const job::ScheduleSpec spec, spec_of_schedule(command, connection, hooks));
  MUSTER_TRY(const Schedule schedule,
             connection.call_once(
                 [&](api::Client& client) { return client.create_schedule(spec); },
                 "the schedule may have been created; before you try again, list the schedules: "
                 "muster schedule list"));
  MUSTER_CHECK(show(command.output, schedule_page(schedule), api::schedule_to_json(schedule)));
  return kExitDone;
}

Result<int> execute(const ListSchedulesCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const std::vector<Schedule> schedules, connection.call([&](api::Client& client) {
    return client.schedules(command.project);
  }));
  if (command.output == Output::kNames) {
    std::string names;
    for (const Schedule& schedule : schedules) names += schedule.spec.name + "\n";
    MUSTER_CHECK(show(names));
    return kExitDone;
  }
  const std::string text = schedules.empty() ? "no schedules\n" : schedule_table(schedules);
  MUSTER_CHECK(show(command.output, text, api::schedules_to_json(schedules)));
  return kExitDone;
}

Result<int> execute(const ScheduleCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  const auto call = [&](auto member) {
    return connection.call([&](api::Client& client) { return (client.*member)(command.name); });
  };
  const auto call_once = [&](auto member, const std::string& advice) {
    return connection.call_once([&](api::Client& client) { return (client.*member)(command.name); },
                                advice);
  };
  std::optional<Result<Schedule>> answer;
  switch (command.action) {
    case ScheduleAction::kRun: {
      MUSTER_TRY(const auto started,
                 call_once(&api::Client::run_schedule,
                           "the run may have started; before you try again, list the runs: muster "
                           "schedule history " +
                               command.name));
      if (const auto* const array = std::get_if<job::Array>(&started)) {
        MUSTER_CHECK(show(command.output, array->spec.name + ": " + array_counts(*array) + "\n",
                          api::array_to_json(*array)));
        return kExitDone;
      }
      const auto& job = std::get<job::Job>(started);
      MUSTER_CHECK(
          show(command.output, job_table({job}, base::SystemClock().now()), api::job_to_json(job)));
      return kExitDone;
    }
    case ScheduleAction::kDelete:
      MUSTER_CHECK(call_once(&api::Client::remove_schedule,
                             "the schedule may have been deleted; list the schedules: muster "
                             "schedule list"));
      MUSTER_CHECK(show("deleted " + command.name + "\n"));
      return kExitDone;
    case ScheduleAction::kPause:
      answer = call(&api::Client::pause_schedule);
      break;
    case ScheduleAction::kResume:
      answer = call(&api::Client::resume_schedule);
      break;
    case ScheduleAction::kGet:
    case ScheduleAction::kHistory:
      answer = call(&api::Client::schedule);
      break;
  }
  if (!*answer) return answer->error();
  const Schedule& schedule = **answer;
  const bool is_history = command.action == ScheduleAction::kHistory;
  const std::string text = !is_history ? schedule_page(schedule)
                           : schedule.history.empty()
                               ? "no runs yet\n"
                               : history_table(schedule, Schedule::kKeptRuns);
  MUSTER_CHECK(show(command.output, text, api::schedule_to_json(schedule)));
  return kExitDone;
}

}  // namespace muster::cli::jobs
