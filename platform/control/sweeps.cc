#include "control/sweeps.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "control/audit_changes.h"
#include "control/controller.h"
#include "control/unknown_name.h"
#include "store/records.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::Phase;
using sweep::Desired;
using sweep::Search;
using sweep::SweepEnd;
using sweep::SweepSpec;
using sweep::Trial;
using sweep::TrialPhase;

namespace {

constexpr const char* kSweepKind = "sweep";
constexpr const char* kProgressKind = "sweep-progress";
constexpr size_t kSweepIdLength = 12;

/// How many jobs of a deleted sweep are removed before the loop serves others.
constexpr size_t kTrialsRemovedAtOnce = 64;
constexpr std::chrono::seconds kSweepRemovalPause{2};  ///< after a failed commit

/// An annotation of a trial's job: the rung at which its program ended by itself.
constexpr const char* kEndedAtRung = "muster/sweep-ended-at-rung";
constexpr const char* kRungVariable = "MUSTER_SWEEP_RUNG";

int number_of_text(const std::map<std::string, std::string>& texts, const char* name, int missing) {
  const auto found = texts.find(name);
  return found == texts.end() ? missing : base::number_of<int>(found->second).value_or(missing);
}

/// The rung that the program was started for.
int rung_of(const Job& job) {
  return number_of_text(job.spec.environment, kRungVariable, 0);
}

/// The rung at which its program ended by itself; -1: it did not, or the job was resumed since.
int ended_at_rung(const Job& job) {
  if (!job.suspended || job.phase != Phase::kQueued) return -1;
  return number_of_text(job.spec.annotations, kEndedAtRung, -1);
}

}  // namespace

namespace {

store::Object progress_object(const sweep::SweepRecord& record,
                              const sweep::SweepProgress& progress) {
  return {.kind = kProgressKind,
          .id = record.id,
          .project = record.spec.job.project,
          .name = record.spec.job.name,
          .document = store::to_document(progress)};
}

void sort_by_creation(std::vector<sweep::SweepSummary>& sweeps) {
  std::sort(sweeps.begin(), sweeps.end(),
            [](const auto& a, const auto& b) { return a.created < b.created; });
}

/// Whether a fact about the job of the trial may still change the trial.
bool is_open(const Trial& trial) {
  return trial.phase == TrialPhase::kActive || trial.phase == TrialPhase::kPaused;
}

/// What subscribers get. REQUIRES: the sweep has ended.
job::ObjectEnd object_end_of(const sweep::SweepRecord& record, const sweep::SweepSummary& summary) {
  job::ObjectEnd end{.kind = kSweepKind,
                     .id = record.id,
                     .name = summary.name,
                     .project = summary.project,
                     .owner = record.owner,
                     .labels = record.spec.job.labels,
                     .phase = sweep::job_phase(summary.phase),
                     .counts = {{"trials", summary.started},
                                {"completed", summary.completed},
                                {"failed", summary.failed},
                                {"stopped", summary.stopped}},
                     .metric = summary.best,
                     .submitted = record.created,
                     .ended = *summary.ended};
  if (summary.best_trial) end.best = sweep::trial_name(summary.name, *summary.best_trial);
  return end;
}

}  // namespace

bool pauses_at_end(const Job& job) {
  return job.origin && job.origin->kind == job::JobOrigin::Kind::kSweep && !job.stop_requested &&
         sweep::may_go_on(job.spec);
}

void note_end_at_rung(job::JobSpec& trial) {
  trial.annotations[kEndedAtRung] = trial.environment[kRungVariable];
}

struct Sweeps::Entry {
  explicit Entry(sweep::SweepRecord stored, sweep::SweepProgress progress = {})
      : record(std::move(stored)),
        ended(progress.ended),
        is_end_told(ended.has_value()),
        search(record.spec, std::move(progress.search)),
        settled(progress.removing),
        removing(progress.removing) {}

  struct TrialJob {
    std::string id;
    bool asking = false;  ///< its metrics are being read
  };

  sweep::SweepProgress progress() const {
    return {.search = search.state(), .ended = ended, .removing = removing};
  }
  sweep::SweepSummary summary() const { return sweep::summary_of(record, search.state(), ended); }
  /// nullptr: the search has no such trial.
  const Trial* trial(int number) const {
    const std::vector<Trial>& trials = search.state().trials;
    const bool is_known = number >= 1 && static_cast<size_t>(number) <= trials.size();
    return is_known ? &trials[static_cast<size_t>(number - 1)] : nullptr;
  }

  const sweep::SweepRecord record;
  std::optional<base::Time> ended;
  bool is_end_told = false;  ///< its end was stored, and handed to notifications
  Search search;
  std::map<int, TrialJob> jobs;  ///< by trial; a job that was removed may still be here
  bool unsaved = false;          ///< the state has changed since it was stored
  bool settled = false;          ///< ended, and so have all jobs
  bool removing = false;         ///< is being deleted
};

Sweeps::Sweeps(SweepDependencies parts) : parts_(std::move(parts)) {}
Sweeps::~Sweeps() = default;

// --- recovery

void Sweeps::load(const std::vector<store::Object>& objects) {
  std::map<std::string, sweep::SweepProgress> known;
  for (const store::Object& object : objects) {
    if (object.kind != kProgressKind) continue;
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

// --- requests of callers

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
  auto entry = std::make_unique<Entry>(
      sweep::SweepRecord{.id = base::random_name(parts_.random, kSweepIdLength),
                         .owner = by.user,
                         .created = parts_.jobs.stamp(),
                         .spec = spec});
  const sweep::SweepRecord& record = entry->record;
  const store::Object object{.kind = kSweepKind,
                             .id = record.id,
                             .project = spec.job.project,
                             .name = spec.job.name,
                             .document = store::to_document(record)};
  MUSTER_CHECK(parts_.journal.flush(
      {.objects = {object, progress_object(record, entry->progress())},
       .audit = audit_records(
           record.created, by, "sweep.create", spec.job.name, spec.job.project,
           {{.field = "trials", .after = std::to_string(sweep::trial_count(spec))}})}));
  const std::string id = record.id;
  entries_[id] = std::move(entry);
  parts_.jobs.watchers().announce(id);
  look_soon();
  return *with_id(id);
}

/// nullptr: there is none, or it is being deleted.
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
                                    const std::function<void(Search&)>& change) {
  MUSTER_TRY(Entry* const entry, entry_of(id));
  if (entry->search.state().end == SweepEnd::kNone) {
    const sweep::SearchState before = entry->search.state();
    change(entry->search);
    if (before != entry->search.state()) {
      if (entry->search.state().end != SweepEnd::kNone) entry->ended = parts_.clock.now();
      entry->unsaved = true;
      const job::JobSpec& spec = entry->record.spec.job;
      MUSTER_CHECK(
          save(*entry, audit_records(parts_.clock.now(), by, action, spec.name, spec.project,
                                     {{.field = "state", .after = action}})));
    }
    look_soon();
  }
  return *with_id(id);
}

Result<sweep::Sweep> Sweeps::stop(const std::string& id, const access::Actor& by) {
  return change(id, by, "sweep.stop", [](Search& search) { search.stop(); });
}

Result<sweep::Sweep> Sweeps::set_paused(const std::string& id, bool paused,
                                        const access::Actor& by) {
  return change(id, by, paused ? "sweep.pause" : "sweep.resume",
                [&](Search& search) { search.set_paused(paused); });
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

/// Removes some jobs of a sweep that is being deleted, and with its last jobs the sweep.
void Sweeps::remove_some() {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [](const auto& each) { return each.second->removing; });
  if (found == entries_.end()) return;
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
    is_committed =
        bool(parts_.journal.flush({.removed_objects = {{kSweepKind, id}, {kProgressKind, id}}}));
  }
  if (!is_committed) {
    removal_retry_ = parts_.loop.after(kSweepRemovalPause, [this] { remove_some(); });
    return;
  }
  if (is_last) {
    entries_.erase(id);
    parts_.jobs.watchers().removed(id, name.first, name.second);
    parts_.jobs.watchers().feed().call_watchers();
  }
  remove_soon();
}

std::vector<EndedJob> Sweeps::ended() const {
  std::vector<EndedJob> all;
  for (const auto& [id, entry] : entries_) {
    const job::JobSpec& spec = entry->record.spec.job;
    if (!entry->settled || entry->removing) continue;
    all.push_back(
        {.id = id, .project = spec.project, .ended = *entry->ended, .keep_for = spec.keep_for});
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
  if (left == nullptr || !is_open(*left)) return;
  // The commit may fail: only the stored state changes here, and the next look does the same. More
  // jobs of the sweep may leave in this batch.
  sweep::SweepProgress progress = entry->progress();
  const std::set<std::string> leaving(batch.removed_jobs.begin(), batch.removed_jobs.end());
  for (Trial& trial : progress.search.trials) {
    const auto link = entry->jobs.find(trial.number);
    const bool leaves = link != entry->jobs.end() && leaving.contains(link->second.id);
    if (leaves && is_open(trial)) trial.phase = TrialPhase::kStopped;
  }
  std::erase_if(batch.objects, [&](const store::Object& other) {
    return other.kind == kProgressKind && other.id == entry->record.id;
  });
  batch.objects.push_back(progress_object(entry->record, progress));
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
    if (!entry->removing) visit(entry->record, entry->summary());
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
  return sweep::sweep_of(entry->record, entry->search.state(), entry->ended);
}

std::optional<sweep::SweepSummary> Sweeps::summary_with_id(const std::string& id) const {
  const Entry* const entry = shown(id);
  return entry == nullptr ? std::nullopt : std::optional(entry->summary());
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

// --- facts about trials

void Sweeps::look_soon() {
  if (std::exchange(is_woken_, true)) return;
  parts_.loop.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    is_woken_ = false;
    look();
  });
}

void Sweeps::look_later() {
  const bool any = std::any_of(entries_.begin(), entries_.end(),
                               [](const auto& each) { return !each.second->settled; });
  timer_ = any ? parts_.loop.after(pace_, [this] { look(); }) : base::EventLoop::Interest();
}

void Sweeps::look() {
  std::vector<std::string> ids;  // a callback may change the table
  for (const auto& [id, entry] : entries_) {
    if (!entry->settled) ids.push_back(id);
  }
  for (const std::string& id : ids) {
    const auto found = entries_.find(id);
    if (found != entries_.end()) look_at(*found->second);
  }
  look_later();
}

/// Whether the trial's program has ended at the rung that the trial runs towards, or for good.
bool Sweeps::is_over(const Entry& entry, int number, const Job& job) {
  const Trial& trial = entry.search.state().trials[static_cast<size_t>(number - 1)];
  return job::is_final(job.phase) || ended_at_rung(job) == trial.rung;
}

void Sweeps::look_at(Entry& entry) {
  std::vector<int> open;
  for (const Trial& trial : entry.search.state().trials) {
    if (is_open(trial)) open.push_back(trial.number);
  }
  for (const int number : open) {
    const auto link = entry.jobs.find(number);
    if (link == entry.jobs.end() || link->second.asking) continue;
    if (!parts_.jobs.facts_with_id(link->second.id)) {
      entry.search.note_stopped(number);  // it was deleted
      entry.unsaved = true;
      continue;
    }
    if (entry.trial(number)->phase != TrialPhase::kActive) continue;
    const Job& job = *job_of(entry, number);
    const bool over = is_over(entry, number, job);
    if (over || job.phase == Phase::kRunning) ask(entry, number, job, over);
  }
  advance(entry);
}

void Sweeps::ask(Entry& entry, int number, const Job& job, bool over) {
  entry.jobs.at(number).asking = true;
  parts_.controller.read_metrics(
      job.id, {.metrics = sweep::observed_metrics(entry.record.spec)},
      [this, alive = std::weak_ptr<bool>(alive_), id = entry.record.id, number, over,
       attempt = job.attempt](const Result<std::vector<job::MetricSeries>>& series) {
        if (alive.expired()) return;
        const auto found = entries_.find(id);
        if (found == entries_.end() || found->second->removing) return;
        Entry& asked = *found->second;
        asked.jobs.at(number).asking = false;
        const Job* const now = job_of(asked, number);
        if (now == nullptr || now->attempt != attempt) return look_soon();
        // It may have been promoted meanwhile.
        measured(asked, number, series ? *series : std::vector<job::MetricSeries>(),
                 over && is_over(asked, number, *now));
      });
}

void Sweeps::measured(Entry& entry, int number, const std::vector<job::MetricSeries>& series,
                      bool over) {
  const Job* const job = job_of(entry, number);
  const SweepSpec& spec = entry.record.spec;
  const Trial& trial = entry.search.state().trials[static_cast<size_t>(number - 1)];
  const base::Time now = parts_.clock.now();
  const sweep::Observation seen = sweep::observe(spec, series,
                                                 {.started = over ? std::nullopt : job->started,
                                                  .now = now,
                                                  .ran_ms = trial.ran_ms,
                                                  .over = over});
  entry.search.note_values(number, seen.best, seen.last, seen.steps);
  for (size_t rung = trial.rungs.size(); rung < seen.rungs.size(); ++rung) {
    entry.search.note_rung(number, static_cast<int>(rung), seen.rungs[rung].value);
    entry.unsaved = true;
  }
  if (over) {
    note_end(entry, number, *job, seen);
  } else if (spec.metric_timeout && job->started &&
             now - std::max(*job->started, seen.newest.value_or(*job->started)) >
                 *spec.metric_timeout) {
    entry.search.note_ended(number, false,
                            "reported no value of '" + spec.metric + "' for " +
                                base::format_duration(*spec.metric_timeout));
    entry.unsaved = true;
  }
  advance(entry);
}

/// The program has ended, and everything that it reported was read.
void Sweeps::note_end(Entry& entry, int number, const Job& job, const sweep::Observation& seen) {
  entry.unsaved = true;
  const Trial& trial = entry.search.state().trials[static_cast<size_t>(number - 1)];
  if (job.phase == Phase::kStopped) return entry.search.note_stopped(number);
  if (job::is_final(job.phase)) {
    return entry.search.note_ended(number, job.phase == Phase::kSucceeded);
  }
  if (static_cast<int>(trial.rungs.size()) > trial.rung) return;
  if (seen.last) return entry.search.note_rung(number, trial.rung, seen.last);
  entry.search.note_ended(number, false, "reported no value of '" + entry.record.spec.metric + "'");
}

// --- decisions

void Sweeps::advance(Entry& entry) {
  while (const auto decision = entry.search.next_decision()) {
    entry.unsaved = true;
    if (decision->what == sweep::Decision::What::kPause && sweep::counts_time(entry.record.spec)) {
      entry.search.note_ran(decision->trial,
                            entry.search.budgets()[static_cast<size_t>(decision->rung)]);
    }
  }
  if (entry.search.state().end != SweepEnd::kNone && !entry.ended) {
    entry.ended = parts_.clock.now();
  }
  if (entry.unsaved && !save(entry)) return;  // tried again at the next look
  const bool was_settled = entry.settled;
  entry.settled = carry_out(entry) && entry.ended;
  if (entry.settled && !was_settled) parts_.settled();
}

Result<void> Sweeps::save(Entry& entry, std::vector<access::AuditRecord> audit) {
  std::vector<job::ObjectEnd> ends;
  if (entry.ended && !entry.is_end_told)
    ends.push_back(object_end_of(entry.record, entry.summary()));
  MUSTER_CHECK(parts_.journal.flush({.objects = {progress_object(entry.record, entry.progress())},
                                     .audit = std::move(audit),
                                     .ends = std::move(ends)}));
  entry.is_end_told = entry.ended.has_value();
  entry.unsaved = false;
  parts_.jobs.watchers().announce(entry.record.id);
  return {};
}

/// Brings the jobs to the state that the search demands. Whether all of them have ended.
bool Sweeps::carry_out(Entry& entry) {
  bool all_ended = true;
  // The search gets no new trial meanwhile.
  for (const Trial& trial : entry.search.state().trials) {
    const Desired desired = sweep::desired_of(trial);
    if (desired == Desired::kRuns) {
      all_ended = false;
      start_or_resume(entry, trial);
      continue;
    }
    const auto facts = facts_of(entry, trial.number);
    if (!facts || job::is_final(facts->phase)) continue;
    all_ended = false;
    JobEntry& held = *job_entry_of(entry, trial.number);
    if (desired == Desired::kHasEnded) {
      if (!held.job.stop_requested) parts_.stop(held);
    } else if (!held.job.suspended) {
      parts_.suspend(held);
    }
  }
  return all_ended;
}

void Sweeps::start_or_resume(Entry& entry, const Trial& trial) {
  const SweepSpec& spec = entry.record.spec;
  if (!entry.jobs.contains(trial.number)) {
    const auto job = parts_.controller.submit(
        sweep::trial_job(spec, trial.number, trial.rung), "", {.user = entry.record.owner},
        {.origin = job::JobOrigin{.kind = job::JobOrigin::Kind::kSweep,
                                  .name = spec.job.name,
                                  .id = entry.record.id,
                                  .member = trial.number}});
    if (job) {
      entry.jobs[trial.number] = {.id = job->id};
      return;
    }
    // A store that is full or unavailable for a moment is not a fault of the trial.
    const ErrorCode code = job.error().code;
    if (code == ErrorCode::kUnavailable || code == ErrorCode::kExhausted) return;
    entry.search.note_ended(trial.number, false, job.error().what);
    entry.unsaved = true;
    return look_soon();
  }
  // While its tasks are being ended, the rung in the spec is that of the program that still runs.
  const auto facts = facts_of(entry, trial.number);
  if (!facts || !facts->suspended || facts->phase != Phase::kQueued) return;
  JobEntry& held = *job_entry_of(entry, trial.number);
  if (rung_of(held.job) >= trial.rung) return;
  sweep::set_rung(spec, trial.rung, held.job.spec);
  held.job.spec.annotations.erase(kEndedAtRung);
  parts_.resume(held);
}

}  // namespace muster::control
