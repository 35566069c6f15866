#include "job/project_table.h"

#include "record/field.h"

namespace muster::job {

using record::As;
using record::field;
using record::Need;
using record::Row;
using record::Table;
using record::Told;

namespace {

constexpr const char* kUnbounded = "no bound in a limit, all there is in a quota";

using Used = ProjectStatus::Amounts;

std::vector<Row> rows_of_project() {
  return {
      field<&Project::name>("name", {.need = Need::kRequired}),
      field<&Project::parent>("parent", {.help = "Empty: at the top.", .told = Told::kAlways}),
      field<&Project::quota>(
          "quota", {.help = "In every pool that is not in `pools`.", .told = Told::kAlways}),
      field<&Project::pools>("pools", {.told = Told::kAlways}),
      field<&Project::priority>(
          "priority", {.help = "Projects with a larger number are served first from resources that "
                               "others leave unused.",
                       .told = Told::kAlways,
                       .least = 0,
                       .most = 1000}),
      field<&Project::reclaim_min_runtime>("reclaim_min_runtime",
                                           {.told = Told::kAlways, .least = 0}),
      field<&Project::preempt_min_runtime>("preempt_min_runtime",
                                           {.told = Told::kAlways, .least = 0}),
      field<&Project::takes_the_rest>(
          "takes_the_rest", {.help = "The project `default` alone: it deserves the GPUs that are "
                                     "in no other project's quota.",
                             .told = Told::kAlways}),
      field<&Project::sequence>("sequence",
                                {.help = "The order of creation.", .need = Need::kRequired}),
      field<&Project::created>("created", {.need = Need::kRequired}),
  };
}

/// The members of a ProjectStatus beside the project.
const Table& project_use() {
  static const Table table =
      record::table<ProjectStatus>(
          "ProjectUse",
          {field<&ProjectStatus::deserved>("deserved",
                                           {.help = "The quota in force.", .told = Told::kAlways}),
           field<&ProjectStatus::allocated>("allocated", {.told = Told::kAlways}),
           field<&ProjectStatus::allocated_non_preemptible>("allocated_non_preemptible",
                                                            {.told = Told::kAlways}),
           field<&ProjectStatus::requested>(
               "requested", {.help = "By running and waiting jobs.", .told = Told::kAlways}),
           field<&ProjectStatus::fair_share>("fair_share", {.told = Told::kAlways}),
           field<&ProjectStatus::running>(
               "running", {.help = "Jobs, including those of projects below this one.",
                           .told = Told::kAlways,
                           .least = 0}),
           field<&ProjectStatus::waiting>("waiting", {.told = Told::kAlways, .least = 0})})
          .as_answer();
  return table;
}

}  // namespace

const Table& table_of(const Share*) {
  static const Table table =
      record::table<Share>(
          "Share",
          {field<&Share::gpu_milli>("gpus", {.told = Told::kAlways, .least = 0, .null = kUnbounded},
                                    As::kMilli),
           field<&Share::cpu_milli>("cpus", {.told = Told::kAlways, .least = 0, .null = kUnbounded},
                                    As::kMilli),
           field<&Share::memory_bytes>(
               "memory", {.told = Told::kAlways, .least = 0, .null = kUnbounded}, As::kBytes)},
          "null: no bound in a limit, all there is in a quota.")
          .as_answer();
  return table;
}

const Table& table_of(const Quota*) {
  static const Table table =
      record::table<Quota>(
          "Quota",
          {field<&Quota::deserved>(
               "deserved", {.help = "What the project can always claim.", .need = Need::kRequired}),
           field<&Quota::limit>(
               "limit", {.help = "What the project never exceeds.", .need = Need::kRequired}),
           field<&Quota::weight>(
               "weight", {.help = "The project's part of resources that others leave unused.",
                          .told = Told::kAlways,
                          .least = 0,
                          .most = 1'000'000})})
          .as_answer();
  return table;
}

const Table& table_of(const ProjectStatus::Amounts*) {
  static const Table table =
      record::table<Used>(
          "Amounts",
          {field<&Used::gpu_milli>("gpus", {.told = Told::kAlways, .least = 0}, As::kMilli),
           field<&Used::cpu_milli>("cpus", {.told = Told::kAlways, .least = 0}, As::kMilli),
           field<&Used::memory_bytes>("memory", {.told = Told::kAlways, .least = 0}, As::kBytes)})
          .as_answer();
  return table;
}

const Table& table_of(const Project*) {
  static const Table table = record::table<Project>("StoredProject", rows_of_project());
  return table;
}

const Table& table_of(const ProjectStatus*) {
  static const Table table = [] {
    std::vector<Row> rows = record::rows_of_member<&ProjectStatus::project>(rows_of_project());
    rows.push_back(record::grouped("status", project_use(), {.told = Told::kAlways}));
    return record::table<ProjectStatus>("Project", std::move(rows)).as_answer();
  }();
  return table;
}

}  // namespace muster::job
