#include "control/audit_changes.h"

#include <string>

#include "control/field_changes.h"
#include "job/units.h"

namespace muster::control {

using access::FieldChange;

namespace {

std::string amount(const std::optional<int64_t>& milli) {
  return milli ? job::format_milli(*milli) : "unlimited";
}

std::string bytes(const std::optional<int64_t>& amount) {
  return amount ? std::to_string(*amount) : "unlimited";
}

void add(FieldTexts& fields, const std::string& path, const job::Share& share) {
  fields[path + ".gpus"] = amount(share.gpu_milli);
  fields[path + ".cpus"] = amount(share.cpu_milli);
  fields[path + ".memory_bytes"] = bytes(share.memory_bytes);
}

void add(FieldTexts& fields, const std::string& path, const job::Quota& quota) {
  add(fields, path + ".deserved", quota.deserved);
  add(fields, path + ".limit", quota.limit);
  fields[path + ".weight"] = std::to_string(quota.weight);
}

std::string in_words(bool value) {
  return value ? "true" : "false";
}

FieldTexts fields_of(const job::Project& project) {
  FieldTexts fields{{"parent", project.parent},
                    {"priority", std::to_string(project.priority)},
                    {"reclaim_min_runtime_ms", std::to_string(project.reclaim_min_runtime.count())},
                    {"preempt_min_runtime_ms", std::to_string(project.preempt_min_runtime.count())},
                    {"takes_the_rest", in_words(project.takes_the_rest)}};
  add(fields, "quota", project.quota);
  for (const auto& [pool, quota] : project.pools) add(fields, "pools." + pool, quota);
  return fields;
}

FieldTexts fields_of(const job::Job& job) {
  const job::JobSpec& spec = job.spec;
  return {{"id", job.id},
          {"kind", std::string(job::to_string(spec.kind))},
          {"workers", std::to_string(spec.workers)},
          {"gpus",
           job::format_milli(spec.resources.gpus * int64_t{1000} + spec.resources.gpu_share_milli)},
          {"phase", std::string(job::to_string(job.phase))},
          {"suspended", in_words(job.suspended)},
          {"stop_requested", in_words(job.stop_requested)}};
}

}  // namespace

std::vector<FieldChange> changes_of(const job::Project* before, const job::Project* after) {
  return differences(before, after, [](const auto& thing) { return fields_of(thing); });
}

std::vector<FieldChange> changes_of(const job::Job* before, const job::Job* after) {
  return differences(before, after, [](const auto& thing) { return fields_of(thing); });
}

}  // namespace muster::control
