#include "control/sweeps.h"

#include <algorithm>
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

/// What subscribers get. REQUIRES: the sweep has ended.
job::ObjectEnd object_end_of(const sweep::SweepRecord& record,
                             const sweep::SweepProgress& progress) {
  const sweep::SweepSummary summary = sweep::summary_of(record, progress);
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
                     .ended = *progress.ended};
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
        search(record.spec, std::move(progress.search)) {}

  struct TrialJob {
    std::string id;
    std::shared_ptr<void> watch;
    bool asking = false;  ///< its metrics are being read
  };

  sweep::SweepProgress progress() const { return {.search = search.state(), .ended = ended}; }

  const sweep::SweepRecord record;
  std::optional<base::Time> ended;
  bool is_end_told = false;  ///< its end was stored, and handed to notifications
  Search search;
  std::map<int, TrialJob> jobs;  ///< by trial
  bool unsaved = false;          ///< the state has changed since it was stored
  bool settled = false;          ///< ended, and so have all jobs
};

Sweeps::Sweeps(SweepDependencies parts) : parts_(parts) {}
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
}

void Sweeps::link_jobs() {
  parts_.jobs.each_job(false, std::nullopt, [&](const job::JobFacts& job) {
    if (!job.origin || job.origin->kind != job::JobOrigin::Kind::kSweep) return true;
    const auto found = entries_.find(std::string(job.origin->id));
    if (found != entries_.end()) link(*found->second, job.origin->member, std::string(job.id));
    return true;
  });
}

void Sweeps::link(Entry& entry, int trial, const std::string& id) {
  entry.jobs[trial] = {.id = id, .watch = parts_.jobs.watch(id, [this] { look_soon(); })};
}

/// nullptr: it was not submitted yet, or was deleted.
const Job* Sweeps::job_of(const Entry& entry, int trial) const {
  const auto found = entry.jobs.find(trial);
  return found == entry.jobs.end() ? nullptr : parts_.jobs.with_id(found->second.id);
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
                         .created = parts_.clock.now(),
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

Result<Sweeps::Entry*> Sweeps::entry_of(const std::string& id) {
  const auto found = entries_.find(id);
  if (found != entries_.end()) return found->second.get();
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
    const Job* const job = job_of(*entry, trial);
    if (job != nullptr && !job::is_final(job->phase)) {
      return not_ended("job " + name_in_quotes(job->spec.name));
    }
  }
  for (const auto& [trial, link] : entry->jobs) {
    if (job_of(*entry, trial) == nullptr) continue;
    MUSTER_CHECK(parts_.controller.remove(std::string(link.id)));
  }
  std::vector<access::FieldChange> changes{
      {.field = "trials", .before = std::to_string(entry->jobs.size())}};
  if (!rule.empty()) changes.push_back({.field = "rule", .after = rule});
  MUSTER_CHECK(
      parts_.journal.flush({.removed_objects = {{kSweepKind, id}, {kProgressKind, id}},
                            .audit = audit_records(parts_.clock.now(), by, "sweep.delete",
                                                   spec.name, spec.project, std::move(changes))}));
  const JobName name = name_of(spec);
  const std::string removed = id;
  entries_.erase(removed);
  parts_.jobs.watchers().removed(removed, name.first, name.second);
  parts_.jobs.watchers().feed().call_watchers();
  return {};
}

std::vector<EndedJob> Sweeps::ended() const {
  std::vector<EndedJob> all;
  for (const auto& [id, entry] : entries_) {
    const job::JobSpec& spec = entry->record.spec.job;
    if (!entry->settled) continue;
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

void Sweeps::job_leaves(const Job& job, store::Batch& batch) {
  if (!job.origin || job.origin->kind != job::JobOrigin::Kind::kSweep) return;
  const auto found = entries_.find(job.origin->id);
  if (found == entries_.end()) return;
  // The commit may fail: only the stored state changes here, and the next look does the same.
  sweep::SweepProgress progress = found->second->progress();
  for (Trial& trial : progress.search.trials) {
    const bool is_open = trial.phase == TrialPhase::kActive || trial.phase == TrialPhase::kPaused;
    if (trial.number != job.origin->member || !is_open) continue;
    trial.phase = TrialPhase::kStopped;
    batch.objects.push_back(progress_object(found->second->record, progress));
  }
}

std::vector<sweep::SweepSummary> Sweeps::list() const {
  std::vector<sweep::SweepSummary> sweeps;
  for (const auto& [id, entry] : entries_) {
    sweeps.push_back(sweep::summary_of(entry->record, entry->progress()));
  }
  std::sort(sweeps.begin(), sweeps.end(),
            [](const auto& a, const auto& b) { return a.created < b.created; });
  return sweeps;
}

void Sweeps::each(const Visit& visit) const {
  for (const auto& [id, entry] : entries_) {
    visit(entry->record, sweep::summary_of(entry->record, entry->progress()));
  }
}

std::vector<sweep::SweepSummary> Sweeps::named(const std::string& name) const {
  std::vector<sweep::SweepSummary> found = list();
  std::erase_if(found, [&](const auto& each) { return each.id != name && each.name != name; });
  return found;
}

std::optional<sweep::Sweep> Sweeps::with_id(const std::string& id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return std::nullopt;
  return sweep::sweep_of(found->second->record, found->second->progress());
}

std::optional<sweep::SweepSummary> Sweeps::summary_with_id(const std::string& id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return std::nullopt;
  return sweep::summary_of(found->second->record, found->second->progress());
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
  std::vector<int> active;
  for (const Trial& trial : entry.search.state().trials) {
    if (trial.phase == TrialPhase::kActive) active.push_back(trial.number);
  }
  for (const int number : active) {
    const auto link = entry.jobs.find(number);
    if (link == entry.jobs.end() || link->second.asking) continue;
    const Job* const job = job_of(entry, number);
    if (job == nullptr) {
      entry.search.note_stopped(number);  // a user deleted it
      entry.unsaved = true;
      continue;
    }
    const bool over = is_over(entry, number, *job);
    if (over || job->phase == Phase::kRunning) ask(entry, number, *job, over);
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
        if (found == entries_.end()) return;
        found->second->jobs.at(number).asking = false;
        const Job* const now = job_of(*found->second, number);
        if (now == nullptr || now->attempt != attempt) return look_soon();
        // It may have been promoted meanwhile.
        measured(*found->second, number, series ? *series : std::vector<job::MetricSeries>(),
                 over && is_over(*found->second, number, *now));
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
    ends.push_back(object_end_of(entry.record, entry.progress()));
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
  const std::vector<Trial> trials = entry.search.state().trials;
  for (const Trial& trial : trials) {
    const Desired desired = sweep::desired_of(trial);
    const Job* const job = job_of(entry, trial.number);
    const bool has_ended = job == nullptr || job::is_final(job->phase);
    if (desired == Desired::kRuns) {
      all_ended = false;
      start_or_resume(entry, trial);
    } else if (!has_ended) {
      all_ended = false;
      const std::string id = job->id;
      if (desired == Desired::kHasEnded) {
        if (!job->stop_requested) (void)parts_.controller.stop(id, false);
      } else if (!job->suspended) {
        (void)parts_.controller.suspend(id);
      }
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
    if (job) return link(entry, trial.number, job->id);
    // A store that is full or unavailable for a moment is not a fault of the trial.
    const ErrorCode code = job.error().code;
    if (code == ErrorCode::kUnavailable || code == ErrorCode::kExhausted) return;
    entry.search.note_ended(trial.number, false, job.error().what);
    entry.unsaved = true;
    return look_soon();
  }
  const Job* const job = job_of(entry, trial.number);
  if (job == nullptr || !job->suspended || rung_of(*job) >= trial.rung) return;
  // While its tasks are being ended, the rung in the spec is that of the program that still runs.
  if (job->phase != Phase::kQueued) return;
  JobEntry* const held = parts_.jobs.entry_with_id(job->id);
  sweep::set_rung(spec, trial.rung, held->job.spec);
  held->job.spec.annotations.erase(kEndedAtRung);
  parts_.jobs.change(*held);
  const std::string id = job->id;
  (void)parts_.controller.resume(id);
}

}  // namespace muster::control
