// The requests of callers to Sweeps: create, stop, pause, delete.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "control/audit_changes.h"
#include "control/controller.h"
#include "control/held_sweep.h"
#include "control/unknown_name.h"
#include "store/records.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using sweep::SweepEnd;
using sweep::SweepSpec;

namespace {

constexpr size_t kSweepIdLength = 12;

/// How many jobs of a deleted sweep are removed before the loop serves others.
constexpr size_t kTrialsRemovedAtOnce = 64;
/// After a failed commit, and while tasks of trials still run.
constexpr std::chrono::seconds kSweepRemovalPause{2};

}  // namespace

Result<void> Sweeps::check(const SweepSpec& spec) const {
  if (auto faults = sweep::validate(spec); !faults.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "sweep " + name_in_quotes(spec.job.name) + " is invalid",
                 .faults = std::move(faults)};
  }
  const std::string& project = spec.job.project;
  const auto is_taken = [&](const std::string& name) {
    job::JobSpec named;
    named.name = name;
    named.project = project;
    return parts_.jobs.is_taken(named) || takes(project, name);
  };
  std::optional<std::string> taken;
  if (is_taken(spec.job.name)) taken = spec.job.name;
  for (int trial = 1; !taken && trial <= sweep::trial_count(spec); ++trial) {
    const std::string name = sweep::trial_name(spec.job.name, trial);
    if (is_taken(name)) taken = name;
  }
  if (taken) {
    return Error{
        .code = ErrorCode::kConflict,
        .what = "the name " + name_in_quotes(*taken) + " is taken in project '" + project + "'",
        .advice = "choose another name for the sweep, or delete the object of this name"};
  }
  MUSTER_CHECK(parts_.controller.forecast(sweep::trial_job(spec, 1, 0)));
  return {};
}

Result<sweep::SweepPlan> Sweeps::plan(const SweepSpec& spec) const {
  MUSTER_CHECK(check(spec));
  return sweep::plan_of(spec);
}

Result<sweep::Sweep> Sweeps::create(const SweepSpec& spec, const access::Actor& by) {
  MUSTER_CHECK(check(spec));
  SweepSpec resolved = spec;
  resolved.job = parts_.controller.with_awaited_ids(spec.job);
  auto entry = std::make_unique<Entry>(
      sweep::SweepRecord{.id = base::random_name(parts_.random, kSweepIdLength),
                         .owner = by.user,
                         .created = parts_.jobs.stamp(),
                         .spec = std::move(resolved)});
  const sweep::SweepRecord& record = entry->record;
  const store::Object object{.kind = kSweepKind,
                             .id = record.id,
                             .project = spec.job.project,
                             .name = spec.job.name,
                             .document = store::to_document(record)};
  MUSTER_CHECK(parts_.journal.flush(
      {.objects = {object, sweep_progress_object(record, entry->progress())},
       .audit = audit_records(
           record.created, by, "sweep.create", spec.job.name, spec.job.project,
           {{.field = "trials", .after = std::to_string(sweep::trial_count(spec))}})}));
  const std::string id = record.id;
  entries_[id] = std::move(entry);
  parts_.jobs.watchers().announce(id);
  look_soon();
  return *with_id(id);
}

/// nullptr: no sweep has this id, or the sweep is being deleted.
const Sweeps::Entry* Sweeps::shown(const std::string& id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() || found->second->removing ? nullptr : found->second.get();
}

Result<Sweeps::Entry*> Sweeps::entry_of(const std::string& id) {
  if (shown(id) != nullptr) return entries_.at(id).get();
  return Error{.code = ErrorCode::kNotFound,
               .what = "there is no sweep " + name_in_quotes(id),
               .advice = "muster sweep list shows all sweeps"};
}

Result<sweep::Sweep> Sweeps::change(const std::string& id, const access::Actor& by,
                                    const std::string& action,
                                    const std::function<void(sweep::Search&)>& change) {
  MUSTER_TRY(Entry* const entry, entry_of(id));
  if (entry->search.state().end == SweepEnd::kNone) {
    const sweep::SearchState before = entry->search.state();
    change(entry->search);
    if (before != entry->search.state()) {
      if (entry->search.state().end != SweepEnd::kNone) entry->ended = parts_.clock.now();
      entry->unsaved = true;
      const job::JobSpec& spec = entry->record.spec.job;
      parts_.journal.note(audit_records(parts_.clock.now(), by, action, spec.name, spec.project,
                                        {{.field = "state", .after = action}}));
      if (const Result<void> stored = save(*entry); !stored) {
        look_soon();
        return stored_later("the change of sweep " + name_in_quotes(spec.name) + " takes effect",
                            stored.error());
      }
    }
    look_soon();
  }
  return *with_id(id);
}

Result<sweep::Sweep> Sweeps::stop(const std::string& id, const access::Actor& by) {
  return change(id, by, "sweep.stop", [](sweep::Search& search) { search.stop(); });
}

Result<sweep::Sweep> Sweeps::set_paused(const std::string& id, bool paused,
                                        const access::Actor& by) {
  MUSTER_TRY(const Entry* const entry, entry_of(id));
  if (entry->search.state().end != SweepEnd::kNone) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "sweep " + name_in_quotes(entry->record.spec.job.name) + " has ended"};
  }
  return change(id, by, paused ? "sweep.pause" : "sweep.resume",
                [&](sweep::Search& search) { search.set_paused(paused); });
}

Result<void> Sweeps::remove(const std::string& id, const access::Actor& by,
                            const std::string& rule) {
  MUSTER_TRY(Entry* const entry, entry_of(id));
  const job::JobSpec& spec = entry->record.spec.job;
  const auto not_ended = [&](const std::string& what) {
    return Error{.code = ErrorCode::kConflict,
                 .what = what + " has not ended",
                 .advice = "stop the sweep first: muster sweep stop " + spec.name};
  };
  if (entry->search.state().end == SweepEnd::kNone) {
    return not_ended("sweep " + name_in_quotes(spec.name));
  }
  for (const auto& [trial, link] : entry->jobs) {
    const auto job = facts_of(*entry, trial);
    if (job && !job::is_final(job->phase)) {
      return not_ended("job " + name_in_quotes(std::string(job->name)));
    }
  }
  if (parts_.has_tasks(id)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "tasks of sweep " + name_in_quotes(spec.name) +
                         " still run, although it has ended; they are being ended",
                 .advice = "try again in a moment"};
  }
  std::vector<access::FieldChange> changes{
      {.field = "trials", .before = std::to_string(entry->search.state().trials.size())}};
  if (!rule.empty()) changes.push_back({.field = "rule", .after = rule});
  entry->removing = true;
  const auto committed = save(*entry, audit_records(parts_.clock.now(), by, "sweep.delete",
                                                    spec.name, spec.project, std::move(changes)));
  if (!committed) {
    entry->removing = false;
    return committed.error();
  }
  entry->settled = true;
  remove_some();
  return {};
}

void Sweeps::remove_soon() {
  if (std::exchange(removes_soon_, true)) return;
  parts_.loop.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    removes_soon_ = false;
    remove_some();
  });
}

/// Removes some jobs of a sweep that is being deleted, and with its last jobs the sweep. A sweep with
/// running tasks does not delay the others.
void Sweeps::remove_some() {
  const auto try_again = [this] {
    removal_retry_ = parts_.loop.after(kSweepRemovalPause, [this] { remove_some(); });
  };
  bool any_waits = false;
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& each) {
    if (!each.second->removing) return false;
    const bool waits = parts_.has_tasks(each.first);
    any_waits |= waits;
    return !waits;
  });
  if (found == entries_.end()) return any_waits ? try_again() : void();
  Entry& entry = *found->second;
  const JobName name = name_of(entry.record.spec.job);
  std::vector<JobEntry*> gone;
  for (auto link = entry.jobs.begin();
       link != entry.jobs.end() && gone.size() < kTrialsRemovedAtOnce;) {
    JobEntry* const held = parts_.jobs.entry_with_id(link->second.id);
    if (held == nullptr) {
      link = entry.jobs.erase(link);
      continue;
    }
    // Files first: a crash between the two leaves a job without logs, not logs without a job.
    if (const auto removed = parts_.engine.remove(held->job.id); !removed) {
      base::log_error("cannot remove a job of sweep '" + name.first +
                      "': " + removed.error().to_string());
    }
    gone.push_back(held);
    ++link;
  }
  const std::string id = entry.record.id;
  const bool is_last = gone.size() < kTrialsRemovedAtOnce;
  bool is_committed = gone.empty() || parts_.jobs.remove(gone, {});  // the journal logs the error
  if (is_committed && is_last) {
    is_committed = bool(
        parts_.journal.flush({.removed_objects = {{kSweepKind, id}, {kSweepProgressKind, id}}}));
  }
  if (!is_committed) return try_again();
  if (is_last) {
    const base::Time created = entry.record.created;
    entries_.erase(id);
    parts_.jobs.watchers().removed(id, name.first, name.second, created);
    parts_.jobs.watchers().feed().call_watchers();
  }
  remove_soon();
}

}  // namespace muster::control
