#include "control/job_table.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "base/units.h"
#include "control/unknown_name.h"
#include "job/validate.h"
#include "store/records.h"
#include "words/sentence.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::JobFacts;
using job::Phase;

namespace {

constexpr size_t kKeptEvents = 200;

/// Stands for a job that cannot be unpacked.
Job shell_of(const JobFacts& facts, const Error& error) {
  Job job{.id = std::string(facts.id),
          .spec = {.name = std::string(facts.name),
                   .project = std::string(facts.project),
                   .kind = facts.kind},
          .owner = std::string(facts.owner),
          .phase = facts.phase,
          .reason = {job::Remark{"cannot be unpacked: " + error.what},
                     {job::Remark{"restart the server, which reads the job from its store"}}},
          .attempt = facts.attempt,
          .submitted = facts.submitted,
          .started = facts.started,
          .ended = facts.ended,
          .exit_code = facts.exit_code,
          .unreadable = true};
  job.tasks = job::tasks_of(job.spec);
  return job;
}

}  // namespace

JobTable::JobTable(const base::Clock& clock, base::RandomSource& random, Journal& journal)
    : clock_(clock), journal_(journal), watchers_(clock, random, journal) {
  journal_.on_ended([this](const Job& job, std::string_view document) {
    JobSlot* const slot = index_.with_id(job.id);
    const bool is_own = slot != nullptr && slot->entry != nullptr && &slot->entry->job == &job;
    if (is_own && !job.unreadable) slot->packed = store::PackedJob(job, document);
  });
}

// --- questions

Result<const Job*> JobTable::find(const std::string& name) const {
  MUSTER_TRY(const JobEntry* const entry, entry_of(name));
  return &entry->job;
}

std::vector<const Job*> JobTable::named(const std::string& name) const {
  std::vector<const Job*> jobs;
  each_job_from(name, "", [&](const JobFacts& job) {
    if (job.name != name) return false;
    jobs.push_back(with_id(std::string(job.id)));
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

std::optional<JobFacts> JobTable::facts_with_id(const std::string& id) const {
  const JobSlot* const slot = index_.with_id(id);
  return slot == nullptr ? std::nullopt : std::optional(index_.facts_of(*slot));
}

bool JobTable::visit_whole(std::string_view id,
                           const std::function<void(const Job&)>& visit) const {
  const JobSlot* const slot = index_.with_id(id);
  if (slot == nullptr) return false;
  if (slot->entry != nullptr) {
    visit(slot->entry->job);
  } else {
    visit(unpacked(*slot));
  }
  return true;
}

JobEntry* JobTable::entry_with_id(const std::string& id) const {
  JobSlot* const slot = index_.with_id(id);
  return slot == nullptr ? nullptr : whole(*slot);
}

std::vector<const Job*> JobTable::list() const {
  std::vector<std::string> ids;
  each_job(false, std::nullopt, [&](const JobFacts& job) {
    ids.emplace_back(job.id);
    return true;
  });
  std::vector<const Job*> jobs;
  for (const std::string& id : ids) jobs.push_back(with_id(id));
  return jobs;
}

// --- names with numbers

uint64_t NamePattern::number_in(std::string_view name, std::string_view of_project) const {
  // A number near the largest would leave none for the next name.
  constexpr uint64_t kHighestCounted = 1'000'000'000'000'000'000;
  const bool fits = of_project == project && name.size() > before.size() + behind.size() &&
                    name.starts_with(before) && name.ends_with(behind);
  if (!fits) return 0;
  name = name.substr(before.size(), name.size() - before.size() - behind.size());
  const uint64_t number = base::number_of<uint64_t>(name).value_or(0);
  return number <= kHighestCounted ? number : 0;
}

std::optional<uint64_t> HighestNumbers::of(const NamePattern& pattern) const {
  const auto found = highest_.find(pattern);
  return found == highest_.end() ? std::nullopt : std::optional(found->second);
}

void HighestNumbers::set(const NamePattern& pattern, uint64_t highest) {
  constexpr size_t kMostPatterns = 64;  // each is compared with every new name
  if (highest_.size() >= kMostPatterns) highest_.clear();
  highest_[pattern] = highest;
}

void HighestNumbers::name_added(std::string_view name, std::string_view project) {
  for (auto& [pattern, highest] : highest_) {
    highest = std::max(highest, pattern.number_in(name, project));
  }
}

void HighestNumbers::name_removed(std::string_view name, std::string_view project) {
  std::erase_if(highest_, [&](const auto& known) {
    const auto& [pattern, highest] = known;
    return highest > 0 && pattern.number_in(name, project) == highest;
  });
}

uint64_t JobTable::highest_number(const NamePattern& pattern) const {
  if (const auto known = highest_numbers_.of(pattern)) return *known;
  uint64_t highest = 0;
  each_job_from(pattern.before, "", [&](const JobFacts& job) {
    highest = std::max(highest, pattern.number_in(job.name, job.project));
    return job.name.starts_with(pattern.before);
  });
  highest_numbers_.set(pattern, highest);
  return highest;
}

std::string JobTable::next_name(const std::string& project, const std::string& pattern,
                                const std::function<bool(const std::string& name)>& is_held) const {
  const size_t place = pattern.find(job::kNumberPlace);
  const NamePattern numbered{.project = project,
                             .before = pattern.substr(0, place),
                             .behind = pattern.substr(place + job::kNumberPlace.size())};
  uint64_t highest = highest_number(numbered);
  for (const auto& [used, entry] : uncommitted_) {
    highest = std::max(highest, numbered.number_in(used.first, used.second));
  }
  const auto is_used = [&](const std::string& name) {
    return index_.has_name({name, project}) || uncommitted_.contains({name, project});
  };
  const std::string& before = numbered.before;
  const bool has_stem = before.size() > 1 && before.ends_with('-');
  if (highest == 0 && has_stem && is_used(before.substr(0, before.size() - 1) + numbered.behind))
    highest = 1;
  std::string name;
  do {
    name = before + std::to_string(++highest) + numbered.behind;
  } while (is_used(name) || is_held(name) ||
           std::any_of(makers_.begin(), makers_.end(),
                       [&](const JobMaker* maker) { return maker->holds({name, project}); }));
  return name;
}

FileTrees trees_of(const job::JobSpec& spec) {
  FileTrees trees;
  for (const job::Volume& volume : spec.volumes) {
    if (volume.kind == job::Volume::Kind::kTree && !volume.source.empty()) {
      trees.emplace(spec.project, volume.source);
    }
  }
  return trees;
}

FileTrees JobTable::trees_in_use() const {
  FileTrees trees;
  each_job(false, std::nullopt, [&](const JobFacts& job) {
    job.each_tree([&](std::string_view id) { trees.emplace(job.project, id); });
    return true;
  });
  return trees;
}

bool JobTable::is_taken(const job::JobSpec& spec) const {
  const JobName name = name_of(spec);
  return index_.has_name(name) ||
         std::any_of(makers_.begin(), makers_.end(),
                     [&](const JobMaker* maker) { return maker->holds(name); });
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
        .advice = "name the project: --project NAME"};
  }
  std::vector<std::string> names;
  each_job(true, std::nullopt, [&](const JobFacts& job) {
    names.emplace_back(job.name);
    return names.size() < kMostComparedNames;
  });
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
        enter(kept);
        announce(kept.job);
        added(&kept);
      },
      std::move(audit));
}

JobEntry* JobTable::restore(Job job) {
  if (index_.with_id(job.id) != nullptr) return nullptr;
  last_stamp_ = std::max(last_stamp_, job.submitted);
  if (!job.events.empty()) last_stamp_ = std::max(last_stamp_, job.events.back().time);
  auto entry = std::make_unique<JobEntry>();
  entry->job = std::move(job);
  entry->sequence = next_sequence_++;
  enter(*entry);
  return (entries_[entry->sequence] = std::move(entry)).get();
}

void JobTable::restore(store::PackedJob job) {
  const JobFacts facts = job.facts();
  if (index_.with_id(facts.id) != nullptr) return;
  last_stamp_ = std::max({last_stamp_, facts.submitted, facts.last_event()});
  if (facts.origin) {
    for (JobMaker* const maker : makers_) maker->job_changed(facts);
  }
  highest_numbers_.name_added(facts.name, facts.project);
  index_.add({.entry = nullptr, .packed = std::move(job), .sequence = next_sequence_++});
}

/// REQUIRES: the entry is in `entries_`, or is about to be.
void JobTable::enter(JobEntry& entry) {
  index_.add({.entry = &entry, .packed = {}, .sequence = entry.sequence});
  highest_numbers_.name_added(entry.job.spec.name, entry.job.spec.project);
  for (JobMaker* const maker : makers_) maker->job_changed(job::facts_of(entry.job));
  if (job::is_final(entry.job.phase)) keep_among_whole(entry);
  if (job::is_final(entry.job.phase)) return;
  ++not_ended_;
  if (entry.job.phase == Phase::kQueued && !entry.job.unreadable) waiting_.insert(entry.sequence);
}

Result<void> JobTable::remove(const std::vector<JobEntry*>& entries,
                              std::vector<access::AuditRecord> audit) {
  store::Batch batch{.audit = std::move(audit)};
  for (JobEntry* const entry : entries) {
    journal_.forget(entry->job);
    batch.removed_jobs.push_back(entry->job.id);
    for (JobMaker* const maker : makers_) maker->job_leaves(entry->job, batch);
  }
  if (const auto removed = journal_.flush(std::move(batch)); !removed) {
    // The jobs stay, and their changes are still to be committed.
    for (const JobEntry* const entry : entries) {
      journal_.change(entry->job);
      for (JobMaker* const maker : makers_) maker->job_changed(job::facts_of(entry->job));
    }
    return removed.error();
  }
  for (JobEntry* const entry : entries) {
    const std::string id = entry->job.id;
    const JobName name = name_of(entry->job.spec);
    const base::Time submitted = entry->job.submitted;
    index_.erase(*index_.with_id(id));
    highest_numbers_.name_removed(name.first, name.second);
    entries_.erase(entry->sequence);
    watchers_.removed(id, name.first, name.second, submitted);
    if (removed_) removed_(id);
  }
  watchers_.feed().call_watchers();
  return {};
}

void JobTable::change(JobEntry& entry) {
  const bool waits = entry.job.phase == Phase::kQueued;
  if (waits) {
    waiting_.insert(entry.sequence);
  } else {
    waiting_.erase(entry.sequence);
  }
  JobSlot* const slot = index_.with_id(entry.job.id);
  if (slot != nullptr) index_.count(*slot);
  if (job::is_final(entry.job.phase)) {
    // The packed form is no longer that of the job.
    slot->packed = {};
    keep_among_whole(entry);
  }
  journal_.change(entry.job);
  for (JobMaker* const maker : makers_) maker->job_changed(job::facts_of(entry.job));
  announce(entry.job);
}

// --- packing

JobEntry* JobTable::whole(JobSlot& slot) const {
  if (slot.entry != nullptr) return slot.entry;
  auto entry = std::make_unique<JobEntry>();
  entry->sequence = slot.sequence;
  entry->job = unpacked(slot);
  slot.entry = entry.get();
  keep_among_whole(*entry);
  return (entries_[slot.sequence] = std::move(entry)).get();
}

/// REQUIRES: the job is packed.
Job JobTable::unpacked(const JobSlot& slot) const {
  auto read = slot.packed.job();
  if (!read) {
    // Every document was read once: this means that the memory is damaged.
    base::log_error("job " + std::string(slot.names().id) +
                    " cannot be unpacked: " + read.error().to_string());
  }
  Job job = read ? *std::move(read) : shell_of(slot.facts(), read.error());
  if (complete_) complete_(job);
  return job;
}

void JobTable::keep_among_whole(JobEntry& entry) const {
  if (!std::exchange(entry.is_in_whole, true)) whole_.push_back(entry.sequence);
  if (whole_.size() <= kept_whole_ || std::exchange(packs_soon_, true)) return;
  // Not in this turn: callers have pointers to jobs.
  journal_.later([this] {
    packs_soon_ = false;
    pack_old();
  });
}

void JobTable::pack_old() const {
  for (size_t left = whole_.size(); left > 0 && whole_.size() > kept_whole_; --left) {
    const uint64_t sequence = whole_.front();
    whole_.pop_front();
    const auto found = entries_.find(sequence);
    if (found == entries_.end()) continue;  // removed
    JobEntry& entry = *found->second;
    if (journal_.owes(entry.job)) {
      whole_.push_back(sequence);
      continue;
    }
    entry.is_in_whole = false;
    JobSlot* const slot = index_.with_id(entry.job.id);
    if (!job::is_final(entry.job.phase) || entry.job.unreadable) continue;
    if (!slot->packed) slot->packed = store::PackedJob(entry.job, store::to_document(entry.job));
    index_.pack(*slot);
    entries_.erase(found);
  }
}

base::Time JobTable::stamp() {
  last_stamp_ = std::max(clock_.now(), last_stamp_ + std::chrono::nanoseconds(1));
  return last_stamp_;
}

void JobTable::note(Job& job, job::Fact what) {
  if (job.events.size() >= kKeptEvents) job.events.erase(job.events.begin());
  job.events.push_back({.time = stamp(), .what = std::move(what)});
}

std::shared_ptr<void> JobTable::watch(const std::string& name,
                                      std::function<void()> changed) const {
  const auto entry = entry_of(name);
  return watchers_.watch(entry ? (*entry)->job.id : name, std::move(changed));
}

}  // namespace muster::control
