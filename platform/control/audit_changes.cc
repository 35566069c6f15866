#include "control/audit_changes.h"

#include <map>
#include <string>
#include <utility>

#include "base/text.h"
#include "base/units.h"

namespace muster::control {

using access::FieldChange;

namespace {

std::string amount(const std::optional<int64_t>& milli) {
  return milli ? base::format_milli(*milli) : "unlimited";
}

std::string bytes(const std::optional<int64_t>& amount) {
  return amount ? std::to_string(*amount) : "unlimited";
}

void add_texts(FieldTexts& fields, const std::string& path, const job::Share& share) {
  fields[path + ".gpus"] = amount(share.gpu_milli);
  fields[path + ".cpus"] = amount(share.cpu_milli);
  fields[path + ".memory_bytes"] = bytes(share.memory_bytes);
}

void add_texts(FieldTexts& fields, const std::string& path, const job::Quota& quota) {
  add_texts(fields, path + ".deserved", quota.deserved);
  add_texts(fields, path + ".limit", quota.limit);
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
  add_texts(fields, "quota", project.quota);
  for (const auto& [pool, quota] : project.pools) add_texts(fields, "pools." + pool, quota);
  return fields;
}

std::string gpus_of(const job::Resources& resources) {
  return base::format_milli(resources.gpus * int64_t{1000} + resources.gpu_share_milli);
}

/// "nightly, team=vision".
std::string in_words(const std::map<std::string, std::string>& labels) {
  std::string words;
  for (const auto& [name, value] : labels) {
    words += (words.empty() ? "" : ", ") + name + (value.empty() ? "" : "=" + value);
  }
  return words;
}

/// The host paths that the tasks see.
std::string host_paths_of(const job::JobSpec& spec) {
  std::string paths;
  for (const job::Volume& volume : spec.volumes) {
    if (volume.kind != job::Volume::Kind::kHostPath) continue;
    paths += (paths.empty() ? "" : ", ") + volume.source;
  }
  return paths;
}

/// The capabilities of the containers beside the default ones.
std::string capabilities_of(const job::JobSpec& spec) {
  return base::joined(spec.container.capabilities);
}

/// Fields that most jobs do not set, and that are left out then.
void add_extras(FieldTexts& fields, const job::JobSpec& spec) {
  fields["image"] = spec.image;
  if (spec.leader.resources != job::Resources()) {
    fields["leader.gpus"] = gpus_of(spec.leader.resources);
  }
  if (spec.parameter_servers > 0) {
    fields["parameter_servers"] = std::to_string(spec.parameter_servers);
    fields["parameter_server.gpus"] = gpus_of(spec.parameter_server.resources);
  }
  if (spec.evaluators > 0) {
    fields["evaluators"] = std::to_string(spec.evaluators);
    fields["evaluator.gpus"] = gpus_of(spec.evaluator.resources);
  }
  if (spec.scheduling.min_workers) {
    fields["min_workers"] = std::to_string(*spec.scheduling.min_workers);
  }
  fields["host_paths"] = host_paths_of(spec);
  fields["capabilities"] = capabilities_of(spec);
  if (spec.container.new_privileges) fields["new_privileges"] = "true";
  fields["labels"] = in_words(spec.labels);
}

FieldTexts fields_of(const job::Job& job) {
  const job::JobSpec& spec = job.spec;
  FieldTexts fields{{"id", job.id},
                    {"kind", std::string(job::to_string(spec.kind))},
                    {"workers", std::to_string(spec.workers)},
                    {"gpus", gpus_of(spec.resources)},
                    {"phase", std::string(job::to_string(job.phase))},
                    {"suspended", in_words(job.suspended)},
                    {"stop_requested", in_words(job.stop_requested)}};
  add_extras(fields, spec);
  return fields;
}

}  // namespace

std::vector<FieldChange> changes_of(const job::Project* before, const job::Project* after) {
  return differences(before, after, [](const auto& thing) { return fields_of(thing); });
}

std::vector<FieldChange> changes_of(const job::Job* before, const job::Job* after) {
  return differences(before, after, [](const auto& thing) { return fields_of(thing); });
}

namespace {

FieldTexts account_fields(const access::User& user) {
  FieldTexts texts{{"server_role", std::string(to_string(user.server_role))},
                   {"disabled", user.disabled ? "true" : "false"}};
  for (const auto& [project, role] : user.projects) texts["projects." + project] = to_string(role);
  if (!user.account.empty()) texts["account"] = user.account;
  return texts;
}

FieldTexts account_fields(const access::Token& token) {
  FieldTexts texts{{"user", token.user},
                   {"kind", std::string(to_string(token.kind))},
                   {"description", token.description},
                   {"ceiling", std::string(to_string(token.ceiling))}};
  if (token.expires) texts["expires"] = base::to_rfc3339(*token.expires);
  texts["projects"] = base::joined(token.projects, ",");
  return texts;
}

}  // namespace

std::vector<FieldChange> changes_of(const access::User* before, const access::User* after) {
  return differences(before, after, [](const auto& thing) { return account_fields(thing); });
}

std::vector<FieldChange> changes_of(const access::Token* before, const access::Token* after) {
  return differences(before, after, [](const auto& thing) { return account_fields(thing); });
}

std::vector<FieldChange> differences(const FieldTexts& before, const FieldTexts& after) {
  std::map<std::string, FieldChange> changes;
  for (const auto& [field, text] : before) changes[field].before = text;
  for (const auto& [field, text] : after) changes[field].after = text;
  std::vector<FieldChange> differing;
  for (auto& [field, change] : changes) {
    if (change.before == change.after) continue;
    change.field = field;
    differing.push_back(std::move(change));
  }
  return differing;
}

std::vector<access::AuditRecord> audit_records(base::Time time, const access::Actor& by,
                                               std::string action, std::string target,
                                               std::string project,
                                               std::vector<access::FieldChange> changes) {
  if (by.user.empty() || changes.empty()) return {};
  return {{.time = time,
           .actor = by,
           .action = std::move(action),
           .target = std::move(target),
           .project = std::move(project),
           .changes = std::move(changes)}};
}

std::vector<access::AuditRecord> audit_records(base::Time time, const access::Actor& by,
                                               std::string action, const job::Job* before,
                                               const job::Job* after) {
  if (by.user.empty()) return {};
  const job::JobSpec& spec = (after == nullptr ? before : after)->spec;
  return audit_records(time, by, std::move(action), spec.name, spec.project,
                       changes_of(before, after));
}

}  // namespace muster::control
