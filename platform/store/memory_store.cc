#include "store/memory_store.h"

#include <algorithm>
#include <utility>

#include "store/records.h"
#include "store/store.h"

namespace muster::store {

using job::Job;

namespace {

/// The names or keys in use after the removals: existing ones, and those of the new jobs checked so
/// far.
template <class Name>
class Taken {
 public:
  Taken(const std::map<Name, std::string>& owners, const std::set<std::string>& leaving)
      : owners_(owners), leaving_(leaving) {}

  /// False: it is in use.
  bool take(const Name& name) {
    const auto owner = owners_.find(name);
    const bool is_owned = owner != owners_.end() && !leaving_.contains(owner->second);
    return !is_owned && new_.insert(name).second;
  }

 private:
  const std::map<Name, std::string>& owners_;
  const std::set<std::string>& leaving_;
  std::set<Name> new_;
};

template <class Key, class Value>
std::vector<Value> values_of(const std::map<Key, Value>& map) {
  std::vector<Value> values;
  values.reserve(map.size());
  for (const auto& [key, value] : map) values.push_back(value);
  return values;
}

}  // namespace

Result<Contents> MemoryStore::load() {
  Contents contents;
  for (const auto& [number, entry] : jobs_) contents.jobs.push_back(entry.job);
  contents.objects = values_of(objects_);
  contents.projects = values_of(projects_);
  std::stable_sort(contents.projects.begin(), contents.projects.end(),
                   [](const job::Project& left, const job::Project& right) {
                     return left.sequence < right.sequence;
                   });
  contents.cordoned_nodes.assign(cordoned_nodes_.begin(), cordoned_nodes_.end());
  contents.users = values_of(users_);
  contents.tokens = values_of(tokens_);
  contents.secrets = values_of(secrets_);
  contents.subscriptions = values_of(subscriptions_);
  contents.deliveries = values_of(deliveries_);
  return contents;
}

Result<void> MemoryStore::commit(const Batch& batch) {
  MUSTER_CHECK(check(batch));
  MUSTER_CHECK(check_objects(batch));
  for (const std::string& id : batch.removed_jobs) remove(id);
  for (const NewJob& job : batch.new_jobs) insert(job);
  for (const Job* job : batch.changed_jobs) {
    if (batch.ended && job::is_final(job->phase)) batch.ended(*job, to_document(*job));
    jobs_.at(by_id_.at(job->id)).job = *job;
  }
  apply_objects(batch);
  for (const std::string& name : batch.removed_projects) projects_.erase(name);
  for (const job::Project& project : batch.projects) projects_[project.name] = project;
  for (const std::string& name : batch.uncordoned_nodes) cordoned_nodes_.erase(name);
  for (const std::string& name : batch.cordoned_nodes) cordoned_nodes_.insert(name);
  apply_accounts(batch);
  apply_notifications(batch);
  return {};
}

void MemoryStore::apply_accounts(const Batch& batch) {
  for (const std::string& name : batch.removed_users) users_.erase(name);
  for (const access::User& user : batch.users) users_[user.name] = user;
  for (const std::string& id : batch.removed_tokens) tokens_.erase(id);
  for (const access::Token& token : batch.tokens) tokens_[token.id] = token;
  for (const SecretName& name : batch.removed_secrets) secrets_.erase(name);
  for (const access::Secret& secret : batch.secrets) {
    secrets_[{.project = secret.project, .name = secret.name}] = secret;
  }
  for (const access::AuditRecord& record : batch.audit) {
    audit_.push_back(record);
    audit_.back().number = audit_.size();
  }
}

void MemoryStore::apply_notifications(const Batch& batch) {
  for (const std::string& id : batch.removed_subscriptions) subscriptions_.erase(id);
  for (const job::Subscription& each : batch.subscriptions) subscriptions_[each.id] = each;
  for (const std::string& id : batch.removed_deliveries) deliveries_.erase(id);
  for (const job::Delivery& each : batch.deliveries) deliveries_[each.id] = each;
}

Result<std::vector<access::AuditRecord>> MemoryStore::audit(const access::AuditQuery& query) {
  std::vector<access::AuditRecord> found;
  for (auto record = audit_.rbegin(); record != audit_.rend(); ++record) {
    if (std::cmp_greater_equal(found.size(), std::max(0, query.limit))) break;
    if (access::matches(query, *record)) found.push_back(*record);
  }
  return found;
}

Result<std::optional<std::string>> MemoryStore::find_by_key(const std::string& idempotency_key) {
  const auto found = id_of_key_.find(idempotency_key);
  return found == id_of_key_.end() ? std::optional<std::string>() : std::optional(found->second);
}

Result<void> MemoryStore::check(const Batch& batch) const {
  const std::set<std::string> leaving(batch.removed_jobs.begin(), batch.removed_jobs.end());
  std::set<std::string> new_ids;
  Taken<JobName> names(id_of_name_, leaving);
  Taken<std::string> keys(id_of_key_, leaving);
  const auto is_there = [&](const std::string& id) {
    return new_ids.contains(id) || (by_id_.contains(id) && !leaving.contains(id));
  };
  for (const NewJob& job : batch.new_jobs) {
    const JobName name(job.job->spec.project, job.job->spec.name);
    if (is_there(job.job->id) || !names.take(name)) return job_is_taken(*job.job);
    if (!job.idempotency_key.empty() && !keys.take(job.idempotency_key))
      return job_is_taken(*job.job);
    new_ids.insert(job.job->id);
  }
  for (const Job* job : batch.changed_jobs) {
    if (is_there(job->id)) continue;
    return job_is_missing(*job);
  }
  return {};
}

Result<void> MemoryStore::check_objects(const Batch& batch) const {
  std::map<ObjectKey, Object> after = objects_;
  for (const ObjectKey& key : batch.removed_objects) after.erase(key);
  for (const Object& object : batch.objects) {
    for (const auto& [key, other] : after) {
      if (key.kind == object.kind && key.id != object.id && other.project == object.project &&
          other.name == object.name) {
        return object_is_taken(object);
      }
    }
    after[{.kind = object.kind, .id = object.id}] = object;
  }
  return {};
}

void MemoryStore::apply_objects(const Batch& batch) {
  for (const ObjectKey& key : batch.removed_objects) objects_.erase(key);
  for (const Object& object : batch.objects) {
    objects_[{.kind = object.kind, .id = object.id}] = object;
  }
}

void MemoryStore::insert(const NewJob& job) {
  const std::string& id = job.job->id;
  by_id_[id] = next_;
  id_of_name_[{job.job->spec.project, job.job->spec.name}] = id;
  if (!job.idempotency_key.empty()) id_of_key_[job.idempotency_key] = id;
  jobs_[next_++] = {.job = *job.job, .idempotency_key = job.idempotency_key};
}

void MemoryStore::remove(const std::string& id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  const auto entry = jobs_.find(found->second);
  const job::JobSpec& spec = entry->second.job.spec;
  id_of_name_.erase({spec.project, spec.name});
  id_of_key_.erase(entry->second.idempotency_key);
  jobs_.erase(entry);
  by_id_.erase(found);
}

}  // namespace muster::store
