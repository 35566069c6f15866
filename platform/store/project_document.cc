#include "store/project_document.h"

#include "store/document.h"

namespace muster::store {

using job::Project;
using job::Quota;
using job::Share;

namespace {

void write_amount(CborWriter& out, std::string_view name, const std::optional<int64_t>& amount) {
  out.key(name);
  write_optional(out, amount, [&](int64_t value) { out.number(value); });
}

void write_share(CborWriter& out, const Share& share) {
  out.map(3);
  write_amount(out, "gpu_milli", share.gpu_milli);
  write_amount(out, "cpu_milli", share.cpu_milli);
  write_amount(out, "memory_bytes", share.memory_bytes);
}

Share read_share(const CborValue& value) {
  Share share;
  read_if_there(value, "gpu_milli", share.gpu_milli, number_of);
  read_if_there(value, "cpu_milli", share.cpu_milli, number_of);
  read_if_there(value, "memory_bytes", share.memory_bytes, number_of);
  return share;
}

void write_quota(CborWriter& out, const Quota& quota) {
  out.map(3);
  out.key("deserved");
  write_share(out, quota.deserved);
  out.key("limit");
  write_share(out, quota.limit);
  out.key("weight").real(quota.weight);
}

Quota read_quota(const CborValue& value) {
  return {.deserved = read_share(value.at("deserved")),
          .limit = read_share(value.at("limit")),
          .weight = value.at("weight").real()};
}

Project read_project(const CborValue& value) {
  Project project{.name = value.at("name").text(),
                  .parent = value.at("parent").text(),
                  .quota = read_quota(value.at("quota")),
                  .priority = value.at("priority").small_number(),
                  .sequence = static_cast<uint64_t>(value.at("sequence").number()),
                  .created = time_of(value.at("created"))};
  for (const CborValue& entry : value.at("pools").list()) {
    project.pools[bytes_of(entry.list().at(0))] = read_quota(entry.list().at(1));
  }
  read_if_there(value, "reclaim_min_runtime_ms", project.reclaim_min_runtime, milliseconds_of);
  read_if_there(value, "preempt_min_runtime_ms", project.preempt_min_runtime, milliseconds_of);
  read_if_there(value, "takes_the_rest", project.takes_the_rest, flag_of);
  return project;
}

}  // namespace

std::string to_project_document(const Project& project) {
  std::string document;
  CborWriter out(document);
  out.map(10);
  out.key("name").text(project.name);
  out.key("parent").text(project.parent);
  out.key("quota");
  write_quota(out, project.quota);
  out.key("pools").list(project.pools.size());
  for (const auto& [pool, quota] : project.pools) {
    out.list(2).bytes(pool);
    write_quota(out, quota);
  }
  out.key("priority").number(project.priority);
  out.key("reclaim_min_runtime_ms").number(project.reclaim_min_runtime.count());
  out.key("preempt_min_runtime_ms").number(project.preempt_min_runtime.count());
  out.key("takes_the_rest").flag(project.takes_the_rest);
  out.key("sequence").number(static_cast<int64_t>(project.sequence));
  out.key("created");
  write_time(out, project.created);
  return document;
}

base::Result<Project> from_project_document(std::string_view document) {
  return read_document(document, "project", read_project);
}

}  // namespace muster::store
