#include "job/job_table.h"

#include "record/field.h"

namespace muster::job {

using record::As;
using record::computed;
using record::field;
using record::Need;
using record::Table;
using record::Told;

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
