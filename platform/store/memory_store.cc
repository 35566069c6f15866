#include "store/memory_store.h"

#include <algorithm>

namespace muster::store {

using base::Error;
using base::ErrorCode;
using job::Job;

namespace {

/// The ids, names or keys that will be taken once what goes has gone: known ones, and those of the
/// new jobs as they are looked at.
class Taken {
 public:
  Taken(const std::map<std::string, std::string>& owners, const std::set<std::string>& leaving)
      : owners_(owners), leaving_(leaving) {}

  /// False: somebody has it.
  bool take(const std::string& name) {
    const auto owner = owners_.find(name);
    const bool is_owned = owner != owners_.end() && !leaving_.contains(owner->second);
    return !is_owned && new_.insert(name).second;
  }

 private:
  const std::map<std::string, std::string>& owners_;
  const std::set<std::string>& leaving_;
  std::set<std::string> new_;
};

Error taken(const Job& job) {
  return {.code = ErrorCode::kConflict,
          .what = "the id, the name or the key of job '" + job.spec.name + "' is taken"};
}

}  // namespace

Result<Contents> MemoryStore::load() {
  Contents contents;
  for (const auto& [number, entry] : jobs_) contents.jobs.push_back(entry.job);
  for (const auto& [name, project] : projects_) contents.projects.push_back(project);
  std::stable_sort(contents.projects.begin(), contents.projects.end(),
                   [](const job::Project& left, const job::Project& right) {
                     return left.sequence < right.sequence;
                   });
  contents.cordoned_nodes.assign(cordoned_nodes_.begin(), cordoned_nodes_.end());
  return contents;
}

Result<void> MemoryStore::commit(const Batch& batch) {
  MUSTER_CHECK(check(batch));
  for (const std::string& id : batch.removed_jobs) remove(id);
  for (const NewJob& job : batch.new_jobs) insert(job);
  for (const Job* job : batch.changed_jobs) jobs_.at(by_id_.at(job->id)).job = *job;
  for (const std::string& name : batch.removed_projects) projects_.erase(name);
  for (const job::Project& project : batch.projects) projects_[project.name] = project;
  for (const std::string& name : batch.uncordoned_nodes) cordoned_nodes_.erase(name);
  for (const std::string& name : batch.cordoned_nodes) cordoned_nodes_.insert(name);
  return {};
}

Result<std::optional<std::string>> MemoryStore::find_by_key(const std::string& idempotency_key) {
  const auto found = id_of_key_.find(idempotency_key);
  return found == id_of_key_.end() ? std::optional<std::string>() : std::optional(found->second);
}

Result<void> MemoryStore::check(const Batch& batch) const {
  const std::set<std::string> leaving(batch.removed_jobs.begin(), batch.removed_jobs.end());
  std::set<std::string> new_ids;
  Taken names(id_of_name_, leaving);
  Taken keys(id_of_key_, leaving);
  const auto is_there = [&](const std::string& id) {
    return new_ids.contains(id) || (by_id_.contains(id) && !leaving.contains(id));
  };
  for (const NewJob& job : batch.new_jobs) {
    if (is_there(job.job->id) || !names.take(job.job->spec.name)) return taken(*job.job);
    if (!job.idempotency_key.empty() && !keys.take(job.idempotency_key)) return taken(*job.job);
    new_ids.insert(job.job->id);
  }
  for (const Job* job : batch.changed_jobs) {
    if (is_there(job->id)) continue;
    return Error{.code = ErrorCode::kNotFound, .what = "the store has no job " + job->id};
  }
  return {};
}

void MemoryStore::insert(const NewJob& job) {
  const std::string& id = job.job->id;
  by_id_[id] = next_;
  id_of_name_[job.job->spec.name] = id;
  if (!job.idempotency_key.empty()) id_of_key_[job.idempotency_key] = id;
  jobs_[next_++] = {.job = *job.job, .idempotency_key = job.idempotency_key};
}

void MemoryStore::remove(const std::string& id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  const auto entry = jobs_.find(found->second);
  id_of_name_.erase(entry->second.job.spec.name);
  id_of_key_.erase(entry->second.idempotency_key);
  jobs_.erase(entry);
  by_id_.erase(found);
}

}  // namespace muster::store
