#include "job/schedule.h"

#include <array>

#include "job/checker.h"
#include "job/spec_table.h"
#include "job/validate.h"
#include "record/field.h"
#include "record/words.h"

namespace muster::job {

namespace {

using record::field;
using record::Kept;
using record::Need;
using record::Sent;
using record::Table;
using Overlap = ScheduleSpec::Overlap;
using CatchUp = ScheduleSpec::CatchUp;
using RunOutcome = ScheduledRun::Outcome;

constexpr std::array<record::Named<Overlap>, 3> kOverlapWords{
    {{Overlap::kForbid, "forbid"}, {Overlap::kAllow, "allow"}, {Overlap::kReplace, "replace"}}};

constexpr std::array<record::Named<CatchUp>, 2> kCatchUpWords{
    {{CatchUp::kOne, "one"}, {CatchUp::kNone, "none"}}};

constexpr std::array<record::Named<RunOutcome>, 4> kRunOutcomeWords{
    {{RunOutcome::kStarted, "started"},
     {RunOutcome::kSkipped, "skipped"},
     {RunOutcome::kMissed, "missed"},
     {RunOutcome::kRefused, "refused"}}};

}  // namespace

record::Words<Overlap> words_of(const Overlap*) {
  return {.schema = "ScheduleOverlap",
          .values = kOverlapWords,
          .help =
              "While an earlier run has not ended, a run is skipped (`forbid`), runs beside it "
              "(`allow`), or stops it and starts after its end (`replace`)."};
}
record::Words<CatchUp> words_of(const CatchUp*) {
  return {.schema = "ScheduleCatchUp",
          .values = kCatchUpWords,
          .help =
              "Of the runs whose time passed while the server was down, the last runs late "
              "(`one`), or none does (`none`)."};
}
record::Words<RunOutcome> words_of(const RunOutcome*) {
  return {.schema = "ScheduledRunOutcome", .values = kRunOutcomeWords};
}

std::string_view to_string(RunOutcome outcome) {
  return record::name_in<RunOutcome>(words_of(static_cast<const RunOutcome*>(nullptr)), outcome);
}

const Table& table_of(const ScheduleSpec*) {
  static const Table table = record::table<ScheduleSpec>(
      "ScheduleSpec",
      {field<&ScheduleSpec::name>(
           "name", {.help = "A DNS label of at most 32 characters.", .need = Need::kRequired}),
       field<&ScheduleSpec::project>("project", {.sent = Sent::kAlways}),
       field<&ScheduleSpec::cron>("cron", {.help = "`0 3 * * *`: minute, hour, day of the month, "
                                                   "month, day of the week; or `@daily`.",
                                           .need = Need::kRequired,
                                           .max_length = 200}),
       field<&ScheduleSpec::timezone>(
           "timezone",
           {.help = "A name of the IANA database.", .sent = Sent::kAlways, .max_length = 64}),
       field<&ScheduleSpec::overlap>("overlap", {.sent = Sent::kAlways}),
       field<&ScheduleSpec::catch_up>("catch_up", {.sent = Sent::kAlways}),
       field<&ScheduleSpec::catch_up_within>(
           "catch_up_within",
           {.help = "With `catch_up: one`: a run that is later than this is left "
                    "out, too. Absent: no limit.",
            .least = 0,
            .most = 3650 * kDayInMs}),
       field<&ScheduleSpec::held>(
           "held", {.help = "The schedule is paused from the beginning, until `resume`."}),
       field<&ScheduleSpec::job>("job", {.help = "The spec of each run. Its name is that of the "
                                                 "schedule with the time of the run.",
                                         .need = Need::kRequired})},
      "A job that is submitted again and again.");
  return table;
}

const Table& table_of(const ScheduledRun*) {
  static const Table table =
      record::table<ScheduledRun>(
          "ScheduledRun",
          {field<&ScheduledRun::time>(
               "time",
               {.help = "The time for which the run was planned, or at which it was requested.",
                .need = Need::kRequired}),
           field<&ScheduledRun::by_request>("by_request"),
           field<&ScheduledRun::outcome>("outcome", {.need = Need::kRequired}),
           field<&ScheduledRun::job>("job", {.help = "The name of its job."}),
           field<&ScheduledRun::job_id>("job_id"),
           field<&ScheduledRun::phase>(
               "phase", {.help = "The phase in which the job has ended; absent until then."}),
           field<&ScheduledRun::exit_code>("exit_code"),
           field<&ScheduledRun::error>("error", {.help = "Why its job was refused."})},
          "A run of a schedule, or the time of a run that was left out.")
          .as_answer();
  return table;
}

const Table& table_of(const Schedule*) {
  static const Table table =
      record::table<Schedule>(
          "Schedule",
          {field<&Schedule::id>("id", {.need = Need::kRequired}),
           field<&Schedule::spec>("spec", {.need = Need::kRequired}),
           field<&Schedule::owner>("owner", {.help = "Who created it, and for whom its jobs run.",
                                             .sent = Sent::kAlways}),
           field<&Schedule::paused>("paused", {.sent = Sent::kAlways}),
           field<&Schedule::created>("created", {.need = Need::kRequired}),
           field<&Schedule::decided_until>("decided_until", {.kept = Kept::kStoreOnly}),
           field<&Schedule::history>(
               "history", {.help = "Its last runs, newest first.", .sent = Sent::kAlways}),
           field<&Schedule::upcoming>(
               "upcoming", {.help = "The times of its next runs; none while it is paused.",
                            .sent = Sent::kAlways,
                            .kept = Kept::kSentOnly}),
           field<&Schedule::problem>("problem",
                                     {.help = "Why it cannot run.", .kept = Kept::kSentOnly})},
          "A schedule and its last runs.")
          .as_answer();
  return table;
}

std::vector<base::Fault> validate_schedule(const ScheduleSpec& spec) {
  Checker check;
  check.require(is_dns_label(spec.name, kMaxScheduleName), "name",
                "'" + spec.name + "' is not the name of a schedule; use 1 to " +
                    std::to_string(kMaxScheduleName) +
                    " of a-z, 0-9 and '-', with a letter or digit at both ends");
  check.require(is_dns_label(spec.project, 63), "project",
                "'" + spec.project + "' is not a project name; use a-z, 0-9 and '-'");
  std::vector<base::Fault> faults = check.take();
  JobSpec job = spec.job;
  job.name = "run";
  job.project = "default";
  for (base::Fault& fault : validate(job)) {
    faults.push_back({.field = "job." + fault.field, .what = std::move(fault.what)});
  }
  return faults;
}

}  // namespace muster::job
