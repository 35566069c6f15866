#include "job/spec.h"
#include "job/spec_table.h"
#include "record/field.h"

namespace muster::job {

namespace {

constexpr int kTrainPriority = 50;
constexpr int kPreemptibleBuildPriority = 75;
constexpr int kBuildPriority = kFirstNonPreemptiblePriority;
constexpr int kInferencePriority = 125;

}  // namespace

int priority_of(const Scheduling& scheduling) {
  if (scheduling.priority) return *scheduling.priority;
  switch (scheduling.purpose) {
    case Purpose::kTrain:
      return kTrainPriority;
    case Purpose::kBuild:
      return scheduling.preemptible.value_or(false) ? kPreemptibleBuildPriority : kBuildPriority;
    case Purpose::kInference:
      return kInferencePriority;
  }
  return kTrainPriority;
}

bool is_preemptible(const Scheduling& scheduling) {
  return scheduling.preemptible.value_or(priority_of(scheduling) < kFirstNonPreemptiblePriority);
}

using record::As;
using record::field;
using record::Need;
using record::Sent;
using record::Table;

namespace {

constexpr const char* kMaybeWordPattern = "^([!-~]([ -~]{0,98}[!-~])?)?$";

std::vector<record::Row> rows_of_importance() {
  return {
      field<&Scheduling::purpose>("purpose", {.sent = Sent::kAlways}),
      field<&Scheduling::priority>("priority",
                                   {.help = "Larger numbers are served first within a project. "
                                            "Absent: 50, 75, 100 or 125 by purpose.",
                                    .least = 0,
                                    .most = 1000,
                                    .flag = {.name = "--priority", .by_hand = true}}),
      field<&Scheduling::preemptible>("preemptible",
                                      {.help = "The job may exceed the quota of its project, and "
                                               "may be evicted. Absent: true below priority 100.",
                                       .flag = {.name = "--preemptible", .by_hand = true}}),
      field<&Scheduling::min_workers>(
          "min_workers", {.help = "Makes the job elastic: the minimum number of running workers. "
                                  "Kind `mpi`: at least 1; not for kind `single`.",
                          .least = 0,
                          .most = 1000,
                          .flag = {.name = "--min-workers",
                                   .value = "N",
                                   .help = "smallest number of workers with which the job runs; it "
                                           "gets more while there is room",
                                   .kinds = "mpi grpc torch"}}),
      field<&Scheduling::resize>(
          "resize",
          {.help = "How the job handles workers that join and leave. Values other than `auto` "
                   "require `min_workers`; `live` with kind `grpc` requires parameter servers.",
           .sent = Sent::kAlways,
           .flag = {.name = "--resize",
                    .value = "HOW",
                    .help = "what happens when workers join or leave: live (the job continues), "
                            "restart, or auto",
                    .kinds = "mpi grpc torch"}}),
  };
}

std::vector<record::Row> rows_of_room() {
  return {
      field<&Scheduling::node_pools>(
          "node_pools",
          {.help =
               "The node pools of the job, the preferred first; empty: any pool of the project.",
           .sent = Sent::kAlways,
           .pattern = kWordPattern,
           .most_items = 100,
           .flag = {.name = "--node-pool",
                    .value = "POOL",
                    .help = "run in this node pool; if repeated, in the first that has room"}}),
      field<&Scheduling::gpu_models>(
          "gpu_models",
          {.help = "The GPU models on which the job may run; empty: any model.",
           .sent = Sent::kAlways,
           .pattern = kWordPattern,
           .most_items = 100,
           .flag = {.name = "--gpu-model",
                    .value = "MODEL",
                    .help = "run on GPUs of this model; if repeated, on any of these models"}}),
      field<&Scheduling::packing>("packing",
                                  {.sent = Sent::kAlways,
                                   .flag = {.name = "--packing",
                                            .value = "HOW",
                                            .help = "which suitable nodes to prefer: pack (the "
                                                    "fullest), spread (the emptiest) or auto"}}),
      field<&Scheduling::required_topology>(
          "required_topology",
          {.help = "A level such as `rack`: all tasks are placed in one domain; empty: anywhere.",
           .sent = Sent::kAlways,
           .max_length = 100,
           .pattern = kMaybeWordPattern,
           .flag = {.name = "--topology",
                    .value = "LEVEL",
                    .help = "run all workers within one domain of this level, as in rack"}}),
      field<&Scheduling::preferred_topology>(
          "preferred_topology",
          {.help = "A level such as `rack`: all tasks are placed in one domain if there is room; "
                   "empty: anywhere.",
           .sent = Sent::kAlways,
           .max_length = 100,
           .pattern = kMaybeWordPattern,
           .flag = {.name = "--prefer-topology",
                    .value = "LEVEL",
                    .help = "run all workers within one domain of this level if there is room"}}),
      field<&Scheduling::time_limit>("time_limit",
                                     {.help = "The job is ended after this time; absent: no limit.",
                                      .least = 1,
                                      .most = 365 * kDayInMs,
                                      .flag = {.name = "--time-limit",
                                               .value = "TIME",
                                               .help = "end the job after this time, as in 12h; a "
                                                       "number alone is in seconds"}}),
      field<&Scheduling::retries>(
          "retries",
          {.help = "The number of restarts after a failure of the job.",
           .sent = Sent::kAlways,
           .least = 0,
           .most = 1000,
           .flag = {.name = "--retries",
                    .value = "N",
                    .help = "how many times to start the job again after a failure (default: 0)"}}),
      field<&Scheduling::retry_rules>("retry_rules",
                                      {.sent = Sent::kAlways,
                                       .most_items = 100,
                                       .flag = {.name = "--on-exit", .by_hand = true}}),
      field<&Scheduling::begin>("begin", {.help = "The job waits until this time.",
                                          .flag = {.name = "--begin", .by_hand = true}}),
      field<&Scheduling::singleton>(
          "singleton", {.help = "Jobs of one project and owner with the same text run one at a "
                                "time, in the order of their submission. At most 100 characters.",
                        .max_length = 100,
                        .flag = {.name = "--singleton",
                                 .value = "NAME",
                                 .help = "run one at a time: wait until your earlier jobs with the "
                                         "same --singleton have ended"}}),
  };
}

}  // namespace

const Table& table_of(const RetryRule*) {
  static const Table table = record::table<RetryRule>(
      "RetryRule",
      {field<&RetryRule::exit_code>(
           "exit_code",
           {.help = "The exit code of the failed task, as a shell shows it (137: SIGKILL).",
            .least = 1,
            .most = 255}),
       field<&RetryRule::last_exit_code>(
           "last_exit_code", {.help = "The rule is for all exit codes from `exit_code` to this.",
                              .least = 1,
                              .most = 255}),
       field<&RetryRule::log_pattern>("log_pattern",
                                      {.help = "A regular expression (ECMAScript) that matches in "
                                               "the last log lines of the failed task; empty: any.",
                                       .sent = Sent::kAlways,
                                       .flag = {.name = "--on-log", .by_hand = true}},
                                      As::kText),
       field<&RetryRule::action>(
           "action", {.help = "`retry` costs one retry; `avoid-node` costs none and keeps the job "
                              "off that node.",
                      .need = Need::kRequired})},
      "The action when a task fails in this way; the first matching rule counts. Requires "
      "`exit_code`, `log_pattern` or both.");
  return table;
}

const Table& table_of(const Scheduling*) {
  static const Table table = [] {
    std::vector<record::Row> rows = rows_of_importance();
    for (record::Row& row : rows_of_room()) rows.push_back(std::move(row));
    return record::table<Scheduling>("Scheduling", std::move(rows),
                                     "Settings that decide when and where a job runs, in addition "
                                     "to the resources of its tasks.");
  }();
  return table;
}

}  // namespace muster::job
