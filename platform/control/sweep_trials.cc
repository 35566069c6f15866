// The trials of sweeps: what their jobs have reported, and what the search decides from it.
#include <algorithm>
#include <utility>

#include "base/units.h"
#include "control/controller.h"
#include "control/held_sweep.h"
#include "job/fact.h"
#include "job/obstacle.h"

namespace muster::control {

using base::ErrorCode;
using job::Job;
using job::Phase;
using sweep::Desired;
using sweep::SweepEnd;
using sweep::SweepSpec;
using sweep::Trial;

namespace {

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

/// The rung for which the program was started, if the program has ended by itself; -1 if it has not, or
/// if the job was resumed since.
int ended_at_rung(const Job& job) {
  if (!job.suspended || job.phase != Phase::kQueued) return -1;
  return number_of_text(job.spec.annotations, kEndedAtRung, -1);
}

/// Whether the program has ended, at a rung or for good, so that it reports nothing more.
bool has_program_ended(const Job& job) {
  return job::is_final(job.phase) || ended_at_rung(job) >= 0;
}

/// Whether the reason for which a job was not accepted may pass by itself.
bool may_pass(const base::Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kExhausted ||
         base::detail_of<job::NeverStarts>(error) != nullptr ||
         base::detail_of<job::RefusedForNow>(error) != nullptr;
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

void Sweeps::look_at(Entry& entry) {
  std::vector<int> open;
  for (const Trial& trial : entry.search.state().trials) {
    if (may_change(trial)) open.push_back(trial.number);
  }
  for (const int number : open) {
    const auto link = entry.jobs.find(number);
    if (link == entry.jobs.end() || link->second.asking) continue;
    if (!parts_.jobs.facts_with_id(link->second.id)) {
      entry.search.note_stopped(number);  // it was deleted
      entry.unsaved = true;
      continue;
    }
    if (entry.trial(number)->phase != sweep::TrialPhase::kActive) continue;
    const Job& job = *job_of(entry, number);
    const bool over = has_program_ended(job);
    if (over || job.phase == Phase::kRunning) ask(entry, number, job, over);
  }
  advance(entry);
}

void Sweeps::ask(Entry& entry, int number, const Job& job, bool over) {
  entry.jobs.at(number).asking = true;
  parts_.controller.read_metrics(
      job.id, {.metrics = sweep::observed_metrics(entry.record.spec), .unmerged = true},
      [this, alive = std::weak_ptr<bool>(alive_), id = entry.record.id, number, over,
       attempt = job.attempt](const Result<std::vector<job::MetricSeries>>& series) {
        if (alive.expired()) return;
        const auto found = entries_.find(id);
        if (found == entries_.end() || found->second->removing) return;
        Entry& asked = *found->second;
        asked.jobs.at(number).asking = false;
        const Job* const now = job_of(asked, number);
        if (now == nullptr || now->attempt != attempt) return look_soon();
        // It may have been resumed meanwhile.
        measured(asked, number, series ? *series : std::vector<job::MetricSeries>(),
                 over && has_program_ended(*now));
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
    entry.jobs.at(number).read_of = job->attempt;
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
  // The trial has passed the rung for which its program was started: the program is started again for
  // the present rung.
  if (ended_at_rung(job) < trial.rung) return;
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
  if (entry.ended && !entry.is_end_reported)
    ends.push_back(object_end_of(entry.record, entry.summary()));
  MUSTER_CHECK(
      parts_.journal.flush({.objects = {sweep_progress_object(entry.record, entry.progress())},
                            .audit = std::move(audit),
                            .ends = std::move(ends)}));
  entry.is_end_reported = entry.ended.has_value();
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

/// A trial whose job is not accepted for now is tried again at the next look, and shows the reason: the
/// store may be full for a moment, the only node that is large enough may come back, and a limit may be
/// raised. Otherwise, a short disturbance would use up all trials. After any other error, such as a
/// refusal by the rules of the server, the trial has failed.
void Sweeps::submit_trial(Entry& entry, const Trial& trial) {
  const SweepSpec& spec = entry.record.spec;
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
  if (may_pass(job.error())) {
    if (entry.search.note_fault(trial.number, job.error().what)) entry.unsaved = true;
    return;
  }
  entry.search.note_ended(trial.number, false, job.error().what);
  entry.unsaved = true;
  look_soon();
}

void Sweeps::start_or_resume(Entry& entry, const Trial& trial) {
  const SweepSpec& spec = entry.record.spec;
  if (!entry.jobs.contains(trial.number)) submit_trial(entry, trial);
  const auto link = entry.jobs.find(trial.number);
  if (link == entry.jobs.end()) return;
  if (entry.search.note_fault(trial.number, "")) entry.unsaved = true;
  // While its tasks are being ended, the rung in the spec is that of the program that still runs.
  const auto facts = facts_of(entry, trial.number);
  if (!facts || !facts->suspended || facts->phase != Phase::kQueued) return;
  JobEntry& held = *job_entry_of(entry, trial.number);
  if (rung_of(held.job) >= trial.rung) return;
  // The program may have reported later rungs before it ended.
  if (ended_at_rung(held.job) >= 0 && link->second.read_of != held.job.attempt) {
    if (!link->second.asking) look_soon();
    return;
  }
  sweep::set_rung(spec, trial.rung, held.job.spec);
  held.job.spec.annotations.erase(kEndedAtRung);
  parts_.resume(held);
}

}  // namespace muster::control
