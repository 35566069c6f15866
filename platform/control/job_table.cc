#include "control/job_table.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "control/unknown_name.h"
#include "words/sentence.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::Phase;

namespace {

constexpr size_t kKeptEvents = 200;

uint64_t epoch_from(base::RandomSource& random) {
  const auto bytes = random.bytes<sizeof(uint64_t)>();
  uint64_t epoch = 0;
  std::memcpy(&epoch, bytes.data(), sizeof epoch);
  return epoch;
}

}  // namespace

JobTable::JobTable(const base::Clock& clock, base::RandomSource& random, Journal& journal)
    : clock_(clock), journal_(journal), feed_(epoch_from(random)) {}

// --- questions

Result<const Job*> JobTable::find(const std::string& name) const {
  MUSTER_TRY(const JobEntry* const entry, entry_of(name));
  return &entry->job;
}

std::vector<const Job*> JobTable::named(const std::string& name) const {
  std::vector<const Job*> jobs;
  each_job_from(name, "", [&](const Job& job) {
    if (job.spec.name != name) return false;
    jobs.push_back(&job);
    return true;
  });
  std::sort(jobs.begin(), jobs.end(),
            [](const Job* left, const Job* right) { return left->submitted < right->submitted; });
  return jobs;
}

const Job* JobTable::with_id(const std::string& id) const {
  const JobEntry* const entry = entry_with_id(id);
  return entry == nullptr ? nullptr : &entry->job;
}

std::vector<const Job*> JobTable::list() const {
  std::vector<const Job*> jobs;
  jobs.reserve(entries_.size());
  for (const auto& [sequence, entry] : entries_) jobs.push_back(&entry->job);
  return jobs;
}

void JobTable::each_job(bool newest_first, std::optional<base::Time> after,
                        const std::function<bool(const Job&)>& visit) const {
  if (newest_first) {
    auto at = after ? by_time_.lower_bound(*after) : by_time_.end();
    while (at != by_time_.begin()) {
      if (!visit((--at)->second->job)) return;
    }
    return;
  }
  auto at = after ? by_time_.upper_bound(*after) : by_time_.begin();
  while (at != by_time_.end() && visit(at->second->job)) ++at;
}

void JobTable::each_job_from(const std::string& name, const std::string& project,
                             const std::function<bool(const Job&)>& visit) const {
  auto at = by_name_.lower_bound({name, project});
  while (at != by_name_.end() && visit(at->second->job)) ++at;
}

bool JobTable::is_taken(const job::JobSpec& spec) const {
  return by_name_.contains(name_of(spec));
}

std::set<std::pair<std::string, std::string>> JobTable::trees_in_use() const {
  std::set<std::pair<std::string, std::string>> trees;
  for (const auto& [sequence, entry] : entries_) {
    const job::JobSpec& spec = entry->job.spec;
    for (const job::Volume& volume : spec.volumes) {
      if (volume.kind == job::Volume::Kind::kTree && !volume.source.empty()) {
        trees.emplace(spec.project, volume.source);
      }
    }
  }
  return trees;
}

JobEntry* JobTable::entry_with_id(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

Result<JobEntry*> JobTable::entry_of(const std::string& name) const {
  // An id first: a job whose name is the id of another job must not hide that job.
  if (JobEntry* entry = entry_with_id(name)) return entry;
  const std::vector<const Job*> jobs = named(name);
  if (jobs.size() == 1) return entry_with_id(jobs.front()->id);
  if (!jobs.empty()) {
    return Error{
        .code = ErrorCode::kConflict,
        .what = std::to_string(jobs.size()) + " projects have a job " + name_in_quotes(name),
        .advice = "say which: --project"};
  }
  std::vector<std::string> names;
  for (const auto& [sequence, entry] : entries_) names.push_back(entry->job.spec.name);
  return unknown_name("job", name, names, "muster list shows the jobs there are");
}

Result<JobEntry*> JobTable::readable_entry_of(const std::string& name) const {
  MUSTER_TRY(JobEntry* const entry, entry_of(name));
  if (!entry->job.unreadable) return entry;
  return Error{.code = ErrorCode::kConflict,
               .what = "job " + name_in_quotes(entry->job.spec.name) + " " +
                       words::sentence(entry->job.reason),
               .advice = base::joined(words::details(entry->job.reason), "; ")};
}

// --- changes

void JobTable::settle(const job::JobSpec& spec, const std::string& idempotency_key) {
  if (!uncommitted_.contains(name_of(spec)) && !uncommitted_keys_.contains(idempotency_key)) return;
  [[maybe_unused]] const auto reported_by_callback = journal_.flush();
}

void JobTable::add(Job job, const std::string& idempotency_key,
                   std::vector<access::AuditRecord> audit, Added added) {
  auto entry = std::make_unique<JobEntry>();
  entry->sequence = next_sequence_++;
  entry->job = std::move(job);
  const Job& added_job = entry->job;
  const JobName name = name_of(added_job.spec);
  uncommitted_[name] = std::move(entry);
  if (!idempotency_key.empty()) uncommitted_keys_.insert(idempotency_key);
  journal_.add(
      added_job, idempotency_key,
      [this, name, key = idempotency_key, added = std::move(added)](const Result<void>& committed) {
        auto node = uncommitted_.extract(name);
        uncommitted_keys_.erase(key);
        if (!committed) return added(committed.error());
        JobEntry& kept = *node.mapped();
        entries_[kept.sequence] = std::move(node.mapped());
        index(kept);
        announce(kept.job);
        added(&kept);
      },
      std::move(audit));
}

JobEntry* JobTable::restore(Job job) {
  if (by_id_.contains(job.id)) return nullptr;
  last_stamp_ = std::max(last_stamp_, job.submitted);
  if (!job.events.empty()) last_stamp_ = std::max(last_stamp_, job.events.back().time);
  auto entry = std::make_unique<JobEntry>();
  entry->job = std::move(job);
  entry->sequence = next_sequence_++;
  index(*entry);
  return (entries_[entry->sequence] = std::move(entry)).get();
}

void JobTable::index(JobEntry& entry) {
  by_id_[entry.job.id] = &entry;
  const auto [named, is_free] = by_name_.try_emplace(name_of(entry.job.spec), &entry);
  // The damaged name of an unreadable record may be the name of a readable job.
  if (!is_free && named->second->job.unreadable) named->second = &entry;
  // Jobs from an earlier release may have the same time of submission.
  base::Time time = entry.job.submitted;
  while (!by_time_.emplace(time, &entry).second) time += std::chrono::nanoseconds(1);
  if (job::is_final(entry.job.phase)) return;
  ++not_ended_;
  if (entry.job.phase == Phase::kQueued && !entry.job.unreadable) waiting_.insert(entry.sequence);
}

void JobTable::erase(JobEntry& entry) {
  by_id_.erase(entry.job.id);
  const auto is_it = [&](const auto& named) { return named.second == &entry; };
  by_time_.erase(std::find_if(by_time_.find(entry.job.submitted), by_time_.end(), is_it));
  by_name_.erase(name_of(entry.job.spec));
  entries_.erase(entry.sequence);
}

Result<void> JobTable::remove(const std::vector<JobEntry*>& entries,
                              std::vector<access::AuditRecord> audit) {
  store::Batch batch{.audit = std::move(audit)};
  for (JobEntry* const entry : entries) {
    journal_.forget(entry->job);
    batch.removed_jobs.push_back(entry->job.id);
  }
  if (const auto removed = journal_.flush(std::move(batch)); !removed) {
    // The jobs stay, and their changes are still to be committed.
    for (const JobEntry* const entry : entries) journal_.change(entry->job);
    return removed.error();
  }
  for (JobEntry* const entry : entries) {
    const std::string id = entry->job.id;
    feed_.removed(id, entry->job.spec.name, entry->job.spec.project, feed_hint());
    erase(*entry);
    call_watchers(id);
  }
  feed_.tell();
  return {};
}

void JobTable::change(JobEntry& entry) {
  const bool waits = entry.job.phase == Phase::kQueued;
  if (waits) {
    waiting_.insert(entry.sequence);
  } else {
    waiting_.erase(entry.sequence);
  }
  journal_.change(entry.job);
  announce(entry.job);
}

base::Time JobTable::stamp() {
  last_stamp_ = std::max(clock_.now(), last_stamp_ + std::chrono::nanoseconds(1));
  return last_stamp_;
}

void JobTable::note(Job& job, job::Fact what) {
  if (job.events.size() >= kKeptEvents) job.events.erase(job.events.begin());
  job.events.push_back({.time = stamp(), .what = std::move(what)});
}

// --- announcements

void JobTable::announce(const Job& job) {
  const bool is_planned = !to_announce_.empty();
  to_announce_.insert(job.id);
  if (!is_planned) journal_.then([this] { announce_now(); });
}

uint64_t JobTable::feed_hint() const {
  return static_cast<uint64_t>(clock_.now().time_since_epoch().count());
}

void JobTable::announce_now() {
  const std::set<std::string> ids = std::exchange(to_announce_, {});
  for (const std::string& id : ids) {
    if (by_id_.contains(id)) feed_.changed(id, feed_hint());
  }
  for (const std::string& id : ids) call_watchers(id);
  feed_.tell();
}

std::shared_ptr<void> JobTable::watch(const std::string& name,
                                      std::function<void()> changed) const {
  auto callback = std::make_shared<std::function<void()>>(std::move(changed));
  std::erase_if(watchers_, [](const auto& watcher) { return watcher.second.expired(); });
  const auto entry = entry_of(name);
  watchers_.emplace(entry ? (*entry)->job.id : name, callback);
  return callback;
}

bool JobTable::is_watched(const std::string& id) const {
  const auto [first, behind] = watchers_.equal_range(id);
  return std::any_of(first, behind, [](const auto& watcher) { return !watcher.second.expired(); });
}

void JobTable::call_watchers(const std::string& id) const {
  std::vector<std::shared_ptr<std::function<void()>>> callbacks;
  for (auto [at, end] = watchers_.equal_range(id); at != end; ++at) {
    if (auto callback = at->second.lock()) callbacks.push_back(std::move(callback));
  }
  for (const auto& callback : callbacks) (*callback)();
}

}  // namespace muster::control
