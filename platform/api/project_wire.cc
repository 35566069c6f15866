#include "api/project_wire.h"

#include "api/wire_parts.h"

namespace muster::api {

using job::Project;
using job::ProjectStatus;
using job::Quota;
using job::Share;

namespace {

void write_share(JsonWriter& json, const Share& share) {
  json.open('{');
  json.key("gpus");
  share.gpu_milli ? json.milli(*share.gpu_milli) : json.null();
  json.key("cpus");
  share.cpu_milli ? json.milli(*share.cpu_milli) : json.null();
  json.key("memory_bytes");
  share.memory_bytes ? json.number(*share.memory_bytes) : json.null();
  json.close('}');
}

/// Absent: stays. Null: nothing. Else the number.
void read_thousandths(Fields& fields, std::string_view name, std::optional<int64_t>& into) {
  if (fields.is_null(name)) into.reset();
  if (!fields.has(name)) return;
  int64_t value = 0;
  fields.read_milli(name, value);
  into = value;
}

/// True: it says how many GPUs.
bool read_share(Fields& fields, Share& share) {
  read_thousandths(fields, "gpus", share.gpu_milli);
  read_thousandths(fields, "cpus", share.cpu_milli);
  if (fields.is_null("memory_bytes")) share.memory_bytes.reset();
  fields.read("memory_bytes", share.memory_bytes);
  return fields.has("gpus") || fields.is_null("gpus");
}

void write_quota(JsonWriter& json, const Quota& quota) {
  json.open('{');
  json.key("deserved");
  write_share(json, quota.deserved);
  json.key("limit");
  write_share(json, quota.limit);
  json.key("weight").real(quota.weight);
  json.close('}');
}

/// True: it promises a number of GPUs.
bool read_quota(Fields& fields, Quota& quota) {
  bool promises_gpus = false;
  fields.object("deserved",
                [&](Fields& inner) { promises_gpus = read_share(inner, quota.deserved); });
  fields.object("limit", [&](Fields& inner) { read_share(inner, quota.limit); });
  fields.read("weight", quota.weight);
  return promises_gpus;
}

void read_pools(Fields& fields, std::map<std::string, Quota>& pools) {
  fields.entries("pools", [&](const std::string& pool, Fields* inner) {
    if (inner == nullptr) {
      pools.erase(pool);
    } else {
      read_quota(*inner, pools[pool]);
    }
  });
}

/// What can be changed. A quota that names GPUs takes the place of the rest, unless the document
/// says otherwise.
void read_settings(Fields& fields, Project& project) {
  fields.read("parent", project.parent);
  fields.object("quota", [&](Fields& inner) {
    if (read_quota(inner, project.quota)) project.takes_the_rest = false;
  });
  read_pools(fields, project.pools);
  fields.read("priority", project.priority);
  fields.read("reclaim_min_runtime_ms", project.reclaim_min_runtime);
  fields.read("preempt_min_runtime_ms", project.preempt_min_runtime);
  fields.read("takes_the_rest", project.takes_the_rest);
}

void write_amounts(JsonWriter& json, const ProjectStatus::Amounts& amounts) {
  json.open('{');
  json.key("gpus").milli(amounts.gpu_milli);
  json.key("cpus").milli(amounts.cpu_milli);
  json.key("memory_bytes").number(amounts.memory_bytes);
  json.close('}');
}

void read_amounts(Fields& fields, std::string_view name, ProjectStatus::Amounts& amounts) {
  fields.object(name, [&](Fields& inner) {
    inner.read_milli("gpus", amounts.gpu_milli);
    inner.read_milli("cpus", amounts.cpu_milli);
    inner.read("memory_bytes", amounts.memory_bytes);
  });
}

void write_status(JsonWriter& json, const ProjectStatus& status) {
  json.open('{');
  json.key("deserved");
  write_share(json, status.deserved);
  json.key("allocated");
  write_amounts(json, status.allocated);
  json.key("allocated_non_preemptible");
  write_amounts(json, status.allocated_non_preemptible);
  json.key("requested");
  write_amounts(json, status.requested);
  json.key("fair_share");
  write_share(json, status.fair_share);
  json.key("running").number(status.running);
  json.key("waiting").number(status.waiting);
  json.close('}');
}

void read_status(Fields& fields, ProjectStatus& status) {
  fields.object("deserved", [&](Fields& inner) { read_share(inner, status.deserved); });
  read_amounts(fields, "allocated", status.allocated);
  read_amounts(fields, "allocated_non_preemptible", status.allocated_non_preemptible);
  read_amounts(fields, "requested", status.requested);
  fields.object("fair_share", [&](Fields& inner) { read_share(inner, status.fair_share); });
  fields.read("running", status.running);
  fields.read("waiting", status.waiting);
}

}  // namespace

void write_project(JsonWriter& json, const ProjectStatus& status) {
  const Project& project = status.project;
  json.open('{');
  json.key("name").text(project.name);
  json.key("parent").text(project.parent);
  json.key("quota");
  write_quota(json, project.quota);
  json.key("pools").open('{');
  for (const auto& [pool, quota] : project.pools) {
    json.key(pool);
    write_quota(json, quota);
  }
  json.close('}');
  json.key("priority").number(project.priority);
  json.key("reclaim_min_runtime_ms").number(project.reclaim_min_runtime.count());
  json.key("preempt_min_runtime_ms").number(project.preempt_min_runtime.count());
  json.key("takes_the_rest").flag(project.takes_the_rest);
  json.key("sequence").number(static_cast<int64_t>(project.sequence));
  json.key("created").time(project.created);
  json.key("status");
  write_status(json, status);
  json.close('}');
}

void read_project_status(Fields& fields, ProjectStatus& status) {
  Project& project = status.project;
  fields.read("name", project.name, Need::kRequired);
  read_settings(fields, project);
  auto sequence = static_cast<int64_t>(project.sequence);
  fields.read("sequence", sequence);
  project.sequence = static_cast<uint64_t>(sequence);
  fields.read("created", project.created);
  fields.object("status", [&](Fields& inner) { read_status(inner, status); });
}

std::string project_to_json(const ProjectStatus& project) {
  std::string text;
  JsonWriter json(text);
  write_project(json, project);
  return text;
}

Result<ProjectStatus> project_from_json(std::string_view text) {
  ProjectStatus project;
  MUSTER_CHECK(read_document(text, "project",
                             [&](Fields& fields) { read_project_status(fields, project); }));
  return project;
}

std::string projects_to_json(const std::vector<ProjectStatus>& projects) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("projects").open('[');
  for (const ProjectStatus& project : projects) write_project(json, project);
  json.close(']').close('}');
  return text;
}

Result<std::vector<ProjectStatus>> projects_from_json(std::string_view text) {
  std::vector<ProjectStatus> projects;
  MUSTER_CHECK(read_document(text, "list of projects", [&](Fields& fields) {
    fields.each(
        "projects", [&](Fields& inner) { read_project_status(inner, projects.emplace_back()); },
        Need::kRequired);
  }));
  return projects;
}

Result<Project> read_project(std::string_view text, Project start) {
  MUSTER_CHECK(read_document(text, "project", [&](Fields& fields) {
    std::string name = start.name;
    fields.read("name", name, start.name.empty() ? Need::kRequired : Need::kOptional);
    if (!start.name.empty() && name != start.name) {
      fields.fault("name", "cannot be changed; this is project '" + start.name + "'");
    }
    start.name = name;
    read_settings(fields, start);
    for (const char* listed : {"status", "sequence", "created"}) fields.ignore(listed);
  }));
  return start;
}

}  // namespace muster::api
