#include "control/start_gate.h"

#include <algorithm>

#include "control/gang_end.h"

namespace muster::control {

using job::Job;
using job::Phase;

namespace {

std::tuple<std::string, std::string, std::string> singleton_key(const Job& job) {
  return {job.spec.project, job.owner, job.spec.scheduling.singleton};
}

job::JobRef reference_to(const Job& job) {
  return {.id = job.id, .name = job.spec.name, .project = job.spec.project};
}

bool has_start_conditions(const Job& job) {
  const job::Scheduling& scheduling = job.spec.scheduling;
  return job.attempt == 0 &&
         (!job.awaited.empty() || scheduling.begin || !scheduling.singleton.empty());
}

}  // namespace

StartGate::StartGate(std::unique_ptr<Placement> behind, base::EventLoop& loop, JobTable& jobs,
                     OtherJobs others, const base::Clock& clock, Attempts& attempts,
                     std::function<void()> wake,
                     std::function<bool(const job::Job&)> lacks_isolation)
    : behind_(std::move(behind)),
      loop_(loop),
      jobs_(jobs),
      others_(std::move(others)),
      clock_(clock),
      attempts_(attempts),
      wake_(std::move(wake)),
      lacks_isolation_(std::move(lacks_isolation)) {}

void StartGate::enter(JobEntry& entry) {
  const Job& job = entry.job;
  if (!job.spec.scheduling.singleton.empty()) {
    singletons_[singleton_key(job)].insert(entry.sequence);
  }
  if (job.attempt > 0) return;
  // A suspended job is decided about later, and the other job may be deleted before.
  note_met(entry);
  for (const job::AwaitedJob& other : job.awaited) {
    if (!other.is_met && may_end_yet(other.id)) dependents_[other.id].push_back(entry.sequence);
  }
}

/// Also of an array that has ended: its failed members may run again.
bool StartGate::may_end_yet(const std::string& id) const {
  const auto job = jobs_.facts_with_id(id);
  return job ? !job::is_final(job->phase) : others_.phase_of(id).has_value();
}

// --- questions

bool StartGate::has_conditions(const Job& job) const {
  return has_start_conditions(job) || lacks_isolation_(job);
}

StartConditions StartGate::conditions_of(const Job& job, uint64_t sequence) const {
  const std::string unisolated = lacks_isolation_(job) ? job.owner : "";
  if (job.attempt > 0) return {.unisolated = unisolated};
  StartConditions conditions{.begin = job.spec.scheduling.begin,
                             .singleton = job.spec.scheduling.singleton,
                             .unisolated = unisolated};
  for (size_t i = 0; i < job.awaited.size() && i < job.spec.after.size(); ++i) {
    const job::AwaitedJob& awaited = job.awaited[i];
    conditions.after.push_back(
        {.end = {.job = {.id = awaited.id, .name = awaited.name, .project = job.spec.project},
                 .condition = job.spec.after[i].condition},
         .is_met = awaited.is_met,
         .phase = others_.phase_of(awaited.id)});
  }
  if (conditions.singleton.empty()) return conditions;
  const auto found = singletons_.find(singleton_key(job));
  if (found != singletons_.end() && *found->second.begin() < sequence) {
    conditions.ahead = reference_to(jobs_.at(*found->second.begin()).job);
  }
  return conditions;
}

job::Forecast StartGate::forecast(const Job& job, uint64_t sequence, const job::Project& project,
                                  const job::ProjectStatus& before) const {
  StartDecision decision = decide_start(conditions_of(job, sequence), clock_.now());
  if (decision.what == StartDecision::What::kMayStart) {
    return behind_->forecast(job, sequence, project, before);
  }
  job::Forecast answer{.may_start = decision.may_start, .before = before, .after = before};
  if (decision.unmet) {
    answer.reason = job::Failed{*decision.unmet};
  } else {
    answer.reason = std::move(decision.reason);
    ++answer.after.waiting;
  }
  return answer;
}

void StartGate::explain(const JobEntry& entry, job::Explanation& answer) const {
  const auto found = held_.find(entry.sequence);
  if (found == held_.end()) return behind_->explain(entry, answer);
  answer.constraint = found->second;
}

schedule::Amounts StartGate::requested(const Job& job) const {
  const JobEntry* const entry = jobs_.entry_with_id(job.id);
  if (entry != nullptr && held_.contains(entry->sequence)) return {};
  return behind_->requested(job);
}

// --- changes

void StartGate::enqueue(JobEntry& entry, std::chrono::milliseconds delay) {
  if (!has_conditions(entry.job)) return behind_->enqueue(entry, delay);
  decide(entry);
}

void StartGate::requeue(JobEntry& entry, std::chrono::milliseconds delay) {
  if (entry.job.suspended || !has_conditions(entry.job)) {
    forget(entry);
    return behind_->requeue(entry, delay);
  }
  // An attempt of an earlier server, which isolated it, gives up its places.
  if (lacks_isolation_(entry.job)) behind_->ended(entry);
  decide(entry);
}

bool StartGate::evicted(JobEntry& entry, EvictedGang gang) {
  if (!lacks_isolation_(entry.job)) return behind_->evicted(entry, std::move(gang));
  requeue(entry, {});
  return false;
}

void StartGate::restore(JobEntry& entry) {
  const Job& job = entry.job;
  const bool waits = job.phase == Phase::kQueued && !job.suspended;
  if (!waits || !has_conditions(job)) return behind_->restore(entry);
  entry.is_held_back = true;
  held_.try_emplace(entry.sequence);
  undecided_.insert(entry.sequence);
}

void StartGate::decide(JobEntry& entry) {
  undecided_.erase(entry.sequence);
  note_met(entry);
  StartDecision decision = decide_start(conditions_of(entry.job, entry.sequence), clock_.now());
  switch (decision.what) {
    case StartDecision::What::kMayStart:
      return pass(entry);
    case StartDecision::What::kWaits:
      return hold(entry, std::move(decision));
    case StartDecision::What::kNever:
      break;
  }
  const std::string advice =
      "muster get " + decision.unmet->awaited.job.name + " shows how that job ended";
  set_failure(jobs_, entry.job, {.cause = *decision.unmet, .advice = advice});
  attempts_.finish(entry, Phase::kFailed);
}

/// Stores which dependencies are met: the other job or array may be deleted afterwards.
void StartGate::note_met(JobEntry& entry) {
  Job& job = entry.job;
  for (size_t i = 0; i < job.awaited.size(); ++i) {
    job::AwaitedJob& awaited = job.awaited[i];
    const auto phase = awaited.is_met ? std::nullopt : others_.phase_of(awaited.id);
    if (!phase || !meets(job.spec.after[i].condition, *phase)) continue;
    awaited.is_met = true;
    jobs_.change(entry);
  }
}

void StartGate::hold(JobEntry& entry, StartDecision decision) {
  entry.is_held_back = true;
  held_[entry.sequence] = decision.constraint;
  const auto is_array = [&](const job::AwaitedJob& other) {
    return !other.is_met && jobs_.with_id(other.id) == nullptr;
  };
  const auto& awaited = entry.job.awaited;
  if (std::any_of(awaited.begin(), awaited.end(), is_array)) behind_arrays_.insert(entry.sequence);
  if (decision.may_start && begins_.emplace(*decision.may_start, entry.sequence).second) wake_();
  Job& job = entry.job;
  if (job.reason == decision.reason && job.may_start == decision.may_start) return;
  const bool is_other_condition = job.reason.what.index() != decision.reason.what.index();
  job.reason = std::move(decision.reason);
  job.may_start = decision.may_start;
  // A reason that only names another job is worked out anew after a restart. A thousand jobs of a
  // singleton get another one with each end.
  if (!is_other_condition) return jobs_.announce(job);
  jobs_.note(job, job.reason.what);
  jobs_.change(entry);
}

void StartGate::pass(JobEntry& entry) {
  if (entry.is_held_back) {
    forget(entry);
    entry.job.reason = behind_->first_reason();
    entry.job.may_start.reset();
    jobs_.change(entry);
  }
  behind_->enqueue(entry, {});
  wake_();
}

/// The job is not held back any more.
void StartGate::forget(JobEntry& entry) {
  if (!entry.is_held_back) return;
  entry.is_held_back = false;
  held_.erase(entry.sequence);
  behind_arrays_.erase(entry.sequence);
  undecided_.erase(entry.sequence);
  if (const auto& begin = entry.job.spec.scheduling.begin) begins_.erase({*begin, entry.sequence});
}

void StartGate::ended(JobEntry& entry) {
  forget(entry);
  behind_->ended(entry);
  const Job& job = entry.job;
  if (!job.spec.scheduling.singleton.empty()) {
    const auto found = singletons_.find(singleton_key(job));
    if (found != singletons_.end()) {
      found->second.erase(entry.sequence);
      undecided_.insert(found->second.begin(), found->second.end());
      if (found->second.empty()) singletons_.erase(found);
    }
  }
  object_ended(job.id);
}

void StartGate::object_ended(const std::string& id) {
  // All members of an array ("ARRAY/INDEX") have ended with it.
  const auto is_of_it = [&](const std::string& other) {
    return other.starts_with(id) && (other.size() == id.size() || other[id.size()] == '/');
  };
  for (auto at = dependents_.lower_bound(id); at != dependents_.end() && is_of_it(at->first);) {
    const std::string& ended = at->first;
    const bool may_end_again = may_end_yet(ended);
    std::erase_if(at->second, [&](uint64_t sequence) {
      const auto waiting = jobs_.entries().find(sequence);
      if (waiting == jobs_.entries().end()) return true;
      JobEntry& dependent = *waiting->second;
      if (job::is_final(dependent.job.phase)) return true;
      note_met(dependent);
      undecided_.insert(sequence);
      const auto& awaited = dependent.job.awaited;
      return !may_end_again ||
             std::none_of(awaited.begin(), awaited.end(), [&](const job::AwaitedJob& other) {
               return other.id == ended && !other.is_met;
             });
    });
    at = at->second.empty() ? dependents_.erase(at) : std::next(at);
  }
}

JobEntry* StartGate::held_entry(uint64_t sequence) const {
  return held_.contains(sequence) ? &jobs_.at(sequence) : nullptr;
}

/// The end of a job may decide about others in turn: they are added to `undecided_` meanwhile.
void StartGate::decide_due() {
  while (!begins_.empty() && begins_.begin()->first <= clock_.now()) {
    undecided_.insert(begins_.begin()->second);
    begins_.erase(begins_.begin());
  }
  undecided_.insert(behind_arrays_.begin(), behind_arrays_.end());
  while (!undecided_.empty()) {
    const uint64_t sequence = *undecided_.begin();
    undecided_.erase(undecided_.begin());
    if (JobEntry* const entry = held_entry(sequence)) decide(*entry);
  }
}

void StartGate::plan() {
  decide_due();
  timer_.reset();
  if (!begins_.empty()) {
    // The clock may be set meanwhile.
    const std::chrono::nanoseconds wait = begins_.begin()->first - clock_.now();
    timer_ = loop_.after(std::min<std::chrono::nanoseconds>(wait, std::chrono::minutes(1)), wake_);
  }
  behind_->plan();
}

}  // namespace muster::control
