#include "job/job_table.h"

#include "record/field.h"

namespace muster::job {

using record::As;
using record::computed;
using record::field;
using record::Kept;
using record::Need;
using record::Table;
using record::Told;

namespace {

std::vector<record::Row> rows_of_waiting() {
  return {
      field<&Job::reason>(
          "reason", {.help = "Why it waits, or what it does right now.", .told = Told::kAlways},
          As::kSentence),
      field<&Job::reason_details>(
          "reason_details",
          {.help = "Who holds what it needs, and what would help.", .told = Told::kAlways},
          As::kSentence),
      field<&Job::may_start>("may_start",
                             {.help = "While it waits: when room is expected to be free."}),
      field<&Job::attempt>(
          "attempt",
          {.help = "How often its gang was started.", .told = Told::kAlways, .least = 0}),
      field<&Job::restarts>("restarts", {.help = "How often an attempt was given up for another.",
                                         .told = Told::kAlways,
                                         .least = 0}),
      field<&Job::retries_used>("retries_used", {.told = Told::kAlways, .least = 0}),
      field<&Job::avoided_nodes>("avoided_nodes", {.help = "By its retry rules.",
                                                   .told = Told::kAlways,
                                                   .schema = R"({"items": {"type": "string"}})"}),
      field<&Job::suspended>("suspended", {.help = "It waits for `resume`, and for nothing else.",
                                           .told = Told::kAlways}),
      field<&Job::stop_requested>("stop_requested", {.told = Told::kAlways}),
      field<&Job::eviction>("eviction", {.help = "It is being evicted, and why."}, As::kSentence),
  };
}

std::vector<record::Row> rows_of_job() {
  std::vector<record::Row> rows = {
      field<&Job::id>("id", {.help = "Never given again.", .need = Need::kRequired}),
      field<&Job::owner>("owner", {.help = "Who submitted it.", .told = Told::kAlways}),
      field<&Job::spec>("spec", {.need = Need::kRequired}),
      field<&Job::phase>("phase", {.need = Need::kRequired}),
  };
  for (record::Row& row : rows_of_waiting()) rows.push_back(std::move(row));
  std::vector<record::Row> more = {
      field<&Job::submitted>("submitted", {.need = Need::kRequired}),
      field<&Job::started>("started", {.help = "When it entered Running."}),
      field<&Job::ended>("ended"),
      field<&Job::exit_code>("exit_code",
                             {.help = "Of the task that decides, once the job has ended."}),
      field<&Job::failure>("failure"),
      field<&Job::launch>("launch", {.help = "Of the last attempt of a job of kind `mpi`, once it "
                                             "is known."}),
      field<&Job::sealed_seed>("sealed_seed", {.kept = Kept::kStoreOnly}),
      field<&Job::kept_until>(
          "kept_until",
          {.help = "Of an ended job: when it is removed by itself.", .kept = Kept::kToldOnly}),
      field<&Job::unreadable>(
          "unreadable", {.help = "The store has a record of the job that cannot be read: only its "
                                 "id, name and project are known.",
                         .kept = Kept::kToldOnly}),
      field<&Job::progress>("progress",
                            {.help = "As its program reports it: of a job that runs, and of one "
                                     "that has ended where it is asked for by its name.",
                             .kept = Kept::kToldOnly}),
      field<&Job::tasks>("tasks", {.told = Told::kAlways}),
      field<&Job::events>("events", {.told = Told::kAlways}),
  };
  for (record::Row& row : more) rows.push_back(std::move(row));
  return rows;
}

}  // namespace

const Table& table_of(const Job*) {
  static const Table table = record::table<Job>("Job", rows_of_job()).as_answer();
  return table;
}

const Table& table_of(const Event*) {
  static const Table table =
      record::table<Event>(
          "Event",
          {field<&Event::time>("time", {.help = "No two events of one server have the same.",
                                        .need = Need::kRequired}),
           field<&Event::text>("text", {.need = Need::kRequired}, As::kSentence)})
          .as_answer();
  return table;
}

const Table& table_of(const Task*) {
  static const Table table =
      record::table<Task>(
          "Task",
          {field<&Task::name>("name", {.help = "`launcher`, `chief`, `master`, `worker-0`, `ps-0`, "
                                               "`evaluator-0`, `main`.",
                                       .need = Need::kRequired}),
           field<&Task::role>("role", {.need = Need::kRequired}),
           field<&Task::hostname>("hostname", {.told = Told::kAlways}),
           field<&Task::seat>(
               "seat", {.help = "Its number among the tasks that the job asks for. A worker "
                                "that came in the place of another has that one's seat, and a "
                                "name of its own.",
                        .told = Told::kAlways,
                        .least = 0}),
           field<&Task::node>("node", {.help = "Where it was placed; empty while it waits.",
                                       .told = Told::kAlways}),
           field<&Task::devices>("devices",
                                 {.help = "Its GPUs there.", .told = Told::kAlways, .least = 0}),
           field<&Task::gpu_share_milli>("gpu_share",
                                         {.help = "Of each of them: 1, or a part of one.",
                                          .told = Told::kAlways,
                                          .schema = R"({"minimum": 0, "maximum": 1})"},
                                         As::kMilli),
           field<&Task::phase>("phase", {.need = Need::kRequired}), field<&Task::exit>("exit"),
           field<&Task::started>("started"), field<&Task::ended>("ended"),
           field<&Task::left>("left", {.help = "It ended, or is being ended, while its elastic job "
                                               "goes on: it takes part no more.",
                                       .told = Told::kAlways})})
          .as_answer();
  return table;
}

const Table& table_of(const ExitStatus*) {
  static const Table table =
      record::table<ExitStatus>(
          "ExitStatus",
          {field<&ExitStatus::code>("code",
                                    {.help = "The program's exit code; 0 when a signal ended it.",
                                     .told = Told::kAlways}),
           field<&ExitStatus::signal>(
               "signal",
               {.help = "The signal that ended it, or 0.", .told = Told::kAlways, .least = 0}),
           field<&ExitStatus::out_of_memory>(
               "out_of_memory",
               {.help = "The kernel's out-of-memory killer ended a process meanwhile.",
                .told = Told::kAlways}),
           field<&ExitStatus::stopped>(
               "stopped",
               {.help = "The task was told to stop before it ended.", .told = Told::kAlways}),
           field<&ExitStatus::lost>("lost", {.help = "Nobody saw the end.", .told = Told::kAlways}),
           field<&ExitStatus::error>(
               "error",
               {.help = "Why the program could not be started; empty: it was.",
                .told = Told::kAlways},
               As::kSentence),
           field<&ExitStatus::advice>(
               "advice",
               {.help = "What to do about the error; empty: nothing particular.",
                .told = Told::kAlways},
               As::kSentence),
           field<&ExitStatus::lost_log_bytes>(
               "lost_log",
               {.help = "How much output the log lacks because the disk under it was full.",
                .told = Told::kAlways,
                .least = 0},
               As::kBytes),
           computed<ExitStatus, explain>("explanation", {.help = "All of this in a sentence."})})
          .as_answer();
  return table;
}

const Table& table_of(const Failure*) {
  static const Table table =
      record::table<Failure>(
          "Failure",
          {field<&Failure::task>("task",
                                 {.help = "The first task at fault.", .told = Told::kAlways}),
           field<&Failure::rank>("rank", {.help = "Of the MPI program, where one is known to have "
                                                  "failed first.",
                                          .least = 0}),
           field<&Failure::cause>("cause", {.need = Need::kRequired}, As::kSentence),
           field<&Failure::advice>("advice", {.told = Told::kAlways}, As::kSentence),
           field<&Failure::last_lines>(
               "last_lines", {.help = "Its last lines.", .told = Told::kAlways}, As::kSentence)})
          .as_answer();
  return table;
}

const Table& table_of(const LaunchFacts*) {
  static const Table table =
      record::table<LaunchFacts>(
          "Launch",
          {field<&LaunchFacts::by>("by",
                                   {.help = "`ssh`, `agent` or `srun`; `auto` where it is not "
                                            "known yet.",
                                    .need = Need::kRequired}),
           field<&LaunchFacts::why>(
               "why", {.help = "As in `the images have sshd and ssh`.", .told = Told::kAlways},
               As::kProse),
           field<&LaunchFacts::mpi>(
               "mpi",
               {.help = "Whose mpirun it was, as in `Open MPI 4.1.4`; empty: not known.",
                .told = Told::kAlways},
               As::kProse)},
          "How the ranks of an MPI job were started.")
          .as_answer();
  return table;
}

const Table& table_of(const Progress*) {
  static const Table table =
      record::table<Progress>(
          "Progress",
          {field<&Progress::unit>("unit", {.help = "Empty: a part of 1.",
                                           .need = Need::kRequired,
                                           .schema = R"({"enum": ["epoch", "step", ""]})"}),
           field<&Progress::done>("done", {.need = Need::kRequired}),
           field<&Progress::total>(
               "total", {.need = Need::kRequired, .schema = R"({"exclusiveMinimum": 0})"}),
           field<&Progress::ends>("ends", {.help = "At the pace it has gone so far."})},
          "How far a program says it is: `done` of `total` epochs or steps are behind it.")
          .as_answer();
  return table;
}

}  // namespace muster::job
