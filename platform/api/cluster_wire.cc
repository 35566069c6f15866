#include "api/cluster_wire.h"

#include "api/fields.h"
#include "api/schemas.h"
#include "job/node.h"
#include "job/project.h"
#include "job/spec_table.h"
#include "record/field.h"

namespace muster::api {

using job::Project;
using job::ProjectStatus;
using record::As;
using record::field;
using record::Table;

namespace {

constexpr const char* kUnbounded = "no limit, or in a quota all resources";
constexpr const char* kThousandths = R"({"multipleOf": 0.001})";
constexpr int64_t kMostAmount = 1'000'000;
constexpr int64_t kMostBytes = int64_t{1} << 50;
constexpr int64_t kMostRuntime = 31'536'000'000;  // a year, in milliseconds

constexpr const char* kProjectName = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$";
constexpr const char* kMaybeProjectName = "^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$";
constexpr const char* kPoolNames =
    R"({"propertyNames": {"pattern": "^[!-~]([ -~]{0,98}[!-~])?$"}})";

/// A new project and a change of a project differ only in the field name.
Table project_request_table(const char* name, record::Notes of_name, const char* help) {
  return record::table<ProjectChange>(
      name,
      {field<&ProjectChange::name>("name", of_name),
       field<&ProjectChange::parent>("parent",
                                     {.help = "Empty: top level.", .pattern = kMaybeProjectName}),
       field<&ProjectChange::quota>("quota"),
       field<&ProjectChange::pools>(
           "pools",
           {.help = "null instead of a quota removes the pool's own quota.", .schema = kPoolNames}),
       field<&ProjectChange::priority>("priority", {.least = 0, .most = 1000}),
       field<&ProjectChange::reclaim_min_runtime>("reclaim_min_runtime",
                                                  {.least = 0, .most = kMostRuntime}),
       field<&ProjectChange::preempt_min_runtime>("preempt_min_runtime",
                                                  {.least = 0, .most = kMostRuntime}),
       field<&ProjectChange::takes_the_rest>(
           "takes_the_rest", {.help = "Only for the project `default`. A quota of GPUs ends it."}),
       record::ignored(
           "sequence",
           {.help = "Ignored, so that a client can send back a project that it has read."}),
       record::ignored("created", {.help = "Ignored."}),
       record::ignored("status", {.help = "Ignored."})},
      help);
}

const Table& new_project_table() {
  static const Table table =
      project_request_table("ProjectRequest",
                            {.help = "1 to 63 of a-z, 0-9 and `-`, a letter or digit at both ends.",
                             .need = Need::kRequired,
                             .pattern = kProjectName},
                            "An absent field has its default.");
  return table;
}

void change_share(job::Share& share, const ShareChange& change) {
  share.gpu_milli = change.gpu_milli.value_or(share.gpu_milli);
  share.cpu_milli = change.cpu_milli.value_or(share.cpu_milli);
  share.memory_bytes = change.memory_bytes.value_or(share.memory_bytes);
}

void change_quota(job::Quota& quota, const QuotaChange& change) {
  change_share(quota.deserved, change.deserved);
  change_share(quota.limit, change.limit);
  quota.weight = change.weight.value_or(quota.weight);
}

}  // namespace

const Table& table_of(const ShareChange*) {
  static const Table table = record::table<ShareChange>(
      "ShareChange",
      {field<&ShareChange::gpu_milli>(
           "gpus", {.least = 0, .most = kMostAmount, .schema = kThousandths, .null = kUnbounded},
           As::kMilli),
       field<&ShareChange::cpu_milli>(
           "cpus", {.least = 0, .most = kMostAmount, .schema = kThousandths, .null = kUnbounded},
           As::kMilli),
       field<&ShareChange::memory_bytes>(
           "memory", {.least = 0, .most = kMostBytes, .null = kUnbounded}, As::kBytes)},
      "An absent field is not changed; null removes the limit.");
  return table;
}

const Table& table_of(const QuotaChange*) {
  static const Table table = record::table<QuotaChange>(
      "QuotaChange",
      {field<&QuotaChange::deserved>("deserved"), field<&QuotaChange::limit>("limit"),
       field<&QuotaChange::weight>(
           "weight", {.help = "The project's share of resources that other projects leave unused.",
                      .least = 0,
                      .most = 1'000'000})});
  return table;
}

const Table& table_of(const ProjectChange*) {
  static const Table table = project_request_table(
      "ProjectChange", {.help = "Must be the name in the path: a project cannot be renamed."},
      "An absent field is not changed.");
  return table;
}

void add_project_schemas(record::Schemas& schemas) {
  schemas.add_list("Projects", "projects", record::table_for<ProjectStatus>(), "Parents first.");
  schemas.add(new_project_table());
  schemas.add(record::table_for<ProjectChange>());
}

std::string project_to_json(const ProjectStatus& project) {
  return record::to_json(project);
}
Result<ProjectStatus> project_from_json(std::string_view text) {
  return record::from_json<ProjectStatus>(text, "project");
}
std::string projects_to_json(const std::vector<ProjectStatus>& projects) {
  return record::list_to_json("projects", projects);
}
Result<std::vector<ProjectStatus>> projects_from_json(std::string_view text) {
  return record::list_from_json<ProjectStatus>(text, "projects");
}

std::string project_change_to_json(const std::string& name, const ProjectChange& change) {
  ProjectChange named = change;
  named.name = name;
  return record::to_json(named);
}

Project changed(Project project, const ProjectChange& change) {
  project.parent = change.parent.value_or(project.parent);
  change_quota(project.quota, change.quota);
  for (const auto& [pool, quota] : change.pools) {
    if (quota) {
      change_quota(project.pools[pool], *quota);
    } else {
      project.pools.erase(pool);
    }
  }
  project.priority = change.priority.value_or(project.priority);
  project.reclaim_min_runtime = change.reclaim_min_runtime.value_or(project.reclaim_min_runtime);
  project.preempt_min_runtime = change.preempt_min_runtime.value_or(project.preempt_min_runtime);
  if (change.quota.deserved.gpu_milli) project.takes_the_rest = false;
  project.takes_the_rest = change.takes_the_rest.value_or(project.takes_the_rest);
  return project;
}

namespace {

/// The check of a quota also reads the limit.
void add_quotas_that_depend_on(std::vector<base::Fault>& unread) {
  const size_t count = unread.size();
  for (size_t i = 0; i < count; ++i) {
    const std::string field = unread[i].field;
    if (record::is_within(field, "quota.limit")) unread.push_back({.field = "quota.deserved"});
    if (record::is_within(field, "pools")) unread.push_back({.field = "pools"});
  }
}

}  // namespace

Result<Project> read_project(std::string_view text, Project start) {
  const bool is_new = start.name.empty();
  ProjectChange change;
  auto read = read_document(text, "project", [&](Fields& fields) {
    fields.record(is_new ? new_project_table() : record::table_for<ProjectChange>(), &change);
    if (!is_new && !change.name.empty() && change.name != start.name) {
      fields.fault("name", "cannot be changed; this is project '" + start.name + "'");
    }
  });
  if (is_new) start.name = change.name;
  Project project = changed(std::move(start), change);
  if (read) return project;
  base::Error error = std::move(read).error();
  if (error.faults.empty()) return error;
  std::vector<base::Fault> faults = std::move(error.faults);
  record::add_validation(faults, record::table_for<ProjectChange>(), [&](auto& unread) {
    add_quotas_that_depend_on(unread);
    return job::validate_project(project);
  });
  return record::faulty_document("project", std::move(faults));
}

using job::Node;

const record::Table& table_of(const WhatIfRequest*) {
  static const record::Table table = record::table<WhatIfRequest>(
      "WhatIfRequest",
      {record::field<&WhatIfRequest::add_nodes>(
           "add_nodes", {.help = "How many nodes to add.", .least = 0, .most = 1000}),
       record::field<&WhatIfRequest::like>("like",
                                           {.help = "The node of which the new nodes are copies.",
                                            .need = record::Need::kRequired}),
       record::field<&WhatIfRequest::run_time>(
           "run_time", {.help = "How long jobs without a time limit run. Absent: they never end.",
                        .least = 1})});
  return table;
}

const record::Table& table_of(const WhatIfJob*) {
  using record::Sent;
  static const record::Table table =
      record::table<WhatIfJob>(
          "WhatIfJob",
          {record::field<&WhatIfJob::id>("id", {.need = record::Need::kRequired}),
           record::field<&WhatIfJob::name>("name", {.need = record::Need::kRequired}),
           record::field<&WhatIfJob::project>("project", {.need = record::Need::kRequired}),
           record::field<&WhatIfJob::before>(
               "before", {.help = "When it starts on the cluster as it is. Absent: not within a "
                                  "week, as far as run times are known."}),
           record::field<&WhatIfJob::after>("after",
                                            {.help = "When it starts on the changed cluster."})})
          .as_answer();
  return table;
}

const record::Table& table_of(const WhatIf*) {
  using record::Sent;
  static const record::Table table =
      record::table<WhatIf>(
          "WhatIf", {record::field<&WhatIf::jobs>(
                         "jobs", {.help = "In the order of the queue.", .sent = Sent::kAlways}),
                     record::field<&WhatIf::evictions>(
                         "evictions", {.help = "How often jobs are evicted on the changed cluster.",
                                       .sent = Sent::kAlways}),
                     record::field<&WhatIf::complete>(
                         "complete", {.help = "False: the simulation was stopped before its end.",
                                      .sent = Sent::kAlways})})
          .as_answer();
  return table;
}

Result<WhatIfRequest> what_if_request_from_json(std::string_view text) {
  return record::from_json<WhatIfRequest>(text, "request");
}
std::string what_if_to_json(const WhatIf& answer) {
  return record::to_json(answer);
}

void add_node_schemas(record::Schemas& schemas) {
  schemas.add(record::table_for<WhatIfRequest>());
  schemas.add(record::table_for<WhatIf>());
  schemas.add_list("Nodes", "nodes", record::table_for<Node>(), "By name.");
}

std::string node_to_json(const Node& node) {
  return record::to_json(node);
}
Result<Node> node_from_json(std::string_view text) {
  return record::from_json<Node>(text, "node");
}
std::string nodes_to_json(const std::vector<Node>& nodes) {
  return record::list_to_json("nodes", nodes);
}
Result<std::vector<Node>> nodes_from_json(std::string_view text) {
  return record::list_from_json<Node>(text, "nodes");
}

using job::MachineTypes;
using record::Sent;

struct NamedMachineType {
  std::string name;
  std::string gpu_model;
  job::Resources resources;
};

const Table& table_of(const NamedMachineType*) {
  static const Table table = [] {
    std::vector<record::Row> rows = record::rows_of_member<&NamedMachineType::resources>(
        record::table_for<job::Resources>().rows());
    rows.insert(rows.begin(),
                {record::field<&NamedMachineType::name>(
                     "name", {.help = "`p2.xlarge`, `V100`. Not case-sensitive.",
                              .need = record::Need::kRequired}),
                 record::field<&NamedMachineType::gpu_model>(
                     "gpu_model", {.help = "For people. It does not restrict where a task runs.",
                                   .sent = Sent::kAlways})});
    return record::table<NamedMachineType>("MachineType", std::move(rows),
                                           "A machine type by its name in clouds, with the "
                                           "resources of a task that requests it. 0: no claim.")
        .as_answer();
  }();
  return table;
}

void add_machine_schemas(record::Schemas& schemas) {
  schemas.add_list("MachineTypes", "machine_types", record::table_for<NamedMachineType>());
}

std::string machine_types_to_json(const MachineTypes& types) {
  std::vector<NamedMachineType> list;
  for (const auto& [name, type] : types) {
    list.push_back({.name = name, .gpu_model = type.gpu_model, .resources = type.resources});
  }
  return record::list_to_json("machine_types", list);
}

base::Result<MachineTypes> machine_types_from_json(std::string_view text) {
  MUSTER_TRY(const std::vector<NamedMachineType> list,
             record::list_from_json<NamedMachineType>(text, "machine_types"));
  MachineTypes types;
  for (const NamedMachineType& each : list) {
    types[each.name] = {.resources = each.resources, .gpu_model = each.gpu_model};
  }
  return types;
}

}  // namespace muster::api
