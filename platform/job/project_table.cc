#include "job/project_table.h"

#include "record/field.h"

namespace muster::job {

using record::As;
using record::field;
using record::Need;
using record::Table;

const Table& table_of(const Share*) {
  static const Table table =
      record::table<Share>("Share", {field<&Share::gpu_milli>("gpus", {}, As::kMilli),
                                     field<&Share::cpu_milli>("cpus", {}, As::kMilli),
                                     field<&Share::memory_bytes>("memory", {}, As::kBytes)});
  return table;
}

const Table& table_of(const Quota*) {
  static const Table table =
      record::table<Quota>("Quota", {field<&Quota::deserved>("deserved", {.need = Need::kRequired}),
                                     field<&Quota::limit>("limit", {.need = Need::kRequired}),
                                     field<&Quota::weight>("weight")});
  return table;
}

const Table& table_of(const Project*) {
  static const Table table = record::table<Project>(
      "Project",
      {field<&Project::name>("name", {.need = Need::kRequired}), field<&Project::parent>("parent"),
       field<&Project::quota>("quota", {.need = Need::kRequired}), field<&Project::pools>("pools"),
       field<&Project::priority>("priority"),
       field<&Project::reclaim_min_runtime>("reclaim_min_runtime"),
       field<&Project::preempt_min_runtime>("preempt_min_runtime"),
       field<&Project::takes_the_rest>("takes_the_rest"),
       field<&Project::sequence>("sequence", {.need = Need::kRequired}),
       field<&Project::created>("created", {.need = Need::kRequired})});
  return table;
}

}  // namespace muster::job
