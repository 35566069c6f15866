#include "control/sweeps.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "control/held_sweep.h"
#include "store/records.h"

namespace muster::control {

using job::Job;
using sweep::SweepSpec;
using sweep::Trial;
using sweep::TrialPhase;

namespace {

void sort_by_creation(std::vector<sweep::SweepSummary>& sweeps) {
  std::sort(sweeps.begin(), sweeps.end(),
            [](const auto& a, const auto& b) { return a.created < b.created; });
}

}  // namespace

store::Object sweep_progress_object(const sweep::SweepRecord& record,
                                    const sweep::SweepProgress& progress) {
  return {.kind = kSweepProgressKind,
          .id = record.id,
          .project = record.spec.job.project,
          .name = record.spec.job.name,
          .document = store::to_document(progress)};
}

Sweeps::Sweeps(SweepDependencies parts) : parts_(std::move(parts)) {}
Sweeps::~Sweeps() = default;

// --- recovery

void Sweeps::load(const std::vector<store::Object>& objects) {
  std::map<std::string, sweep::SweepProgress> known;
  for (const store::Object& object : objects) {
    if (object.kind != kSweepProgressKind) continue;
    auto progress = store::from_document<sweep::SweepProgress>(object.document);
    if (progress) {
      known[object.id] = *std::move(progress);
    } else {
      base::log_error("sweep '" + object.name + "' of project '" + object.project +
                      "': " + progress.error().to_string());
    }
  }
  for (const store::Object& object : objects) {
    if (object.kind != kSweepKind) continue;
    auto record = store::from_document<sweep::SweepRecord>(object.document);
    // Without its state a sweep would start its trials again.
    if (!record || !known.contains(object.id)) {
      base::log_error("sweep '" + object.name + "' of project '" + object.project +
                      "' cannot be read");
      continue;
    }
    entries_[object.id] = std::make_unique<Entry>(*std::move(record), known[object.id]);
  }
  link_jobs();
  look_soon();
  remove_soon();
}

void Sweeps::link_jobs() {
  parts_.jobs.each_job(false, std::nullopt, [&](const job::JobFacts& job) {
    Entry* const entry = sweep_of(job);
    if (entry != nullptr) entry->jobs[job.origin->member] = {.id = std::string(job.id)};
    return true;
  });
}

/// nullptr: it was not submitted yet, or was deleted.
JobEntry* Sweeps::job_entry_of(const Entry& entry, int trial) const {
  const auto found = entry.jobs.find(trial);
  return found == entry.jobs.end() ? nullptr : parts_.jobs.entry_with_id(found->second.id);
}

const Job* Sweeps::job_of(const Entry& entry, int trial) const {
  const JobEntry* const held = job_entry_of(entry, trial);
  return held == nullptr ? nullptr : &held->job;
}

/// The facts, which do not unpack an ended job.
std::optional<job::JobFacts> Sweeps::facts_of(const Entry& entry, int trial) const {
  const auto found = entry.jobs.find(trial);
  return found == entry.jobs.end() ? std::nullopt : parts_.jobs.facts_with_id(found->second.id);
}

/// nullptr: the job is not that of a trial.
Sweeps::Entry* Sweeps::sweep_of(const job::JobFacts& job) const {
  if (!job.origin || job.origin->kind != job::JobOrigin::Kind::kSweep) return nullptr;
  const auto found = entries_.find(std::string(job.origin->id));
  return found == entries_.end() ? nullptr : found->second.get();
}

std::vector<EndedJob> Sweeps::ended() const {
  std::vector<EndedJob> all;
  for (const auto& [id, entry] : entries_) {
    const job::JobSpec& spec = entry->record.spec.job;
    if (!entry->settled || entry->removing) continue;
    all.push_back({.id = id,
                   .project = spec.project,
                   .ended = *entry->ended,
                   .keep_for = spec.keep_for,
                   .bytes = {},
                   .in_use = parts_.has_tasks(id)});
  }
  return all;
}

FileTrees Sweeps::trees_in_use() const {
  FileTrees trees;
  for (const auto& [id, entry] : entries_) trees.merge(trees_of(entry->record.spec.job));
  return trees;
}

/// The metrics of an active trial are read once more after its job has ended. A paused trial has
/// reported everything already.
bool Sweeps::needs(const job::JobFacts& job) const {
  const Entry* const entry = sweep_of(job);
  if (entry == nullptr) return false;
  const Trial* const trial = entry->trial(job.origin->member);
  return entry->unsaved || (trial != nullptr && trial->phase == TrialPhase::kActive);
}

void Sweeps::job_changed(const job::JobFacts& job) {
  const Entry* const entry = sweep_of(job);
  if (entry != nullptr && !entry->settled) look_soon();
}

void Sweeps::job_leaves(const Job& job, store::Batch& batch) {
  const Entry* const entry = sweep_of(job::facts_of(job));
  if (entry == nullptr || entry->removing) return;
  if (!entry->settled) look_soon();
  const Trial* const left = entry->trial(job.origin->member);
  if (left == nullptr || !may_change(*left)) return;
  // The commit may fail: only the stored state changes here, and the next look does the same. More
  // jobs of the sweep may leave in this batch.
  sweep::SweepProgress progress = entry->progress();
  const std::set<std::string> leaving(batch.removed_jobs.begin(), batch.removed_jobs.end());
  for (Trial& trial : progress.search.trials) {
    const auto link = entry->jobs.find(trial.number);
    const bool leaves = link != entry->jobs.end() && leaving.contains(link->second.id);
    if (leaves && may_change(trial)) trial.phase = TrialPhase::kStopped;
  }
  std::erase_if(batch.objects, [&](const store::Object& other) {
    return other.kind == kSweepProgressKind && other.id == entry->record.id;
  });
  batch.objects.push_back(sweep_progress_object(entry->record, progress));
}

std::vector<sweep::SweepSummary> Sweeps::list() const {
  std::vector<sweep::SweepSummary> sweeps;
  for (const auto& [id, entry] : entries_) {
    if (!entry->removing) sweeps.push_back(entry->summary());
  }
  sort_by_creation(sweeps);
  return sweeps;
}

void Sweeps::each(const Visit& visit) const {
  for (const auto& [id, entry] : entries_) {
    if (!entry->removing && !visit(entry->record, entry->summary())) return;
  }
}

std::vector<sweep::SweepSummary> Sweeps::named(const std::string& name) const {
  std::vector<sweep::SweepSummary> sweeps;
  for (const auto& [id, entry] : entries_) {
    const bool is_meant = id == name || entry->record.spec.job.name == name;
    if (is_meant && !entry->removing) sweeps.push_back(entry->summary());
  }
  sort_by_creation(sweeps);
  return sweeps;
}

std::optional<sweep::Sweep> Sweeps::with_id(const std::string& id) const {
  const Entry* const entry = shown(id);
  if (entry == nullptr) return std::nullopt;
  sweep::Sweep sweep = sweep::sweep_of(entry->record, entry->search.state(), entry->ended);
  for (Trial& trial : sweep.trials) {
    if (const auto job = facts_of(*entry, trial.number)) trial.job = job->id;
  }
  return sweep;
}

std::optional<sweep::SweepSummary> Sweeps::summary_with_id(const std::string& id) const {
  const Entry* const entry = shown(id);
  return entry == nullptr ? std::nullopt : std::optional(entry->summary());
}

const sweep::SweepRecord* Sweeps::record_with_id(const std::string& id) const {
  const Entry* const entry = shown(id);
  return entry == nullptr ? nullptr : &entry->record;
}

bool Sweeps::are_busy() const {
  return std::any_of(entries_.begin(), entries_.end(), [](const auto& each) {
    const Entry& entry = *each.second;
    return !entry.settled && (entry.ended || !entry.search.state().paused);
  });
}

bool Sweeps::takes(const std::string& project, const std::string& name) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& each) {
    const SweepSpec& spec = each.second->record.spec;
    if (spec.job.project != project || !name.starts_with(spec.job.name)) return false;
    if (name == spec.job.name) return true;
    const auto number = name[spec.job.name.size()] == '-'
                            ? base::number_of<int>(name.substr(spec.job.name.size() + 1))
                            : std::nullopt;
    return number && *number >= 1 && *number <= sweep::trial_count(spec) &&
           name == sweep::trial_name(spec.job.name, *number);
  });
}

}  // namespace muster::control
