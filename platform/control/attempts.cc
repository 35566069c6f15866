#include "control/attempts.h"

#include <algorithm>
#include <utility>

#include "control/gang_tasks.h"
#include "launch/elastic.h"

namespace muster::control {

using job::Job;
using job::Notice;
using job::Phase;
using job::Task;

namespace {

/// The places without gaps: an elastic gang that was given the 1st and the 4th of its workers'
/// places runs worker-0 and worker-1. Tasks other than workers are never missing.
SeatPlaces without_gaps(SeatPlaces places, const Job& job) {
  std::erase_if(places, [](const auto& place) { return !place.has_value(); });
  const size_t missing = job.tasks.size() - std::min(places.size(), job.tasks.size());
  const auto behind =
      static_cast<size_t>(job.spec.parameter_servers) + static_cast<size_t>(job.spec.evaluators);
  const auto at = places.end() - static_cast<std::ptrdiff_t>(std::min(behind, places.size()));
  places.insert(at, missing, std::nullopt);
  return places;
}

/// The task whose exit code is the job's: the task that failed first, unless Muster stopped it (a
/// worker whose rank failed). A task that was killed is named although Muster had asked it to stop,
/// where that came too late. A launcher that ended by itself has an exit code for the whole job.
const Task& task_with_exit_code(const Job& job) {
  const Task& leader = job::deciding_task(job);
  const bool speaks_for_all = is_reached_by_leader(job) && leader.exit && !leader.exit->stopped;
  if (!job.failure || speaks_for_all) return leader;
  const auto* const end = std::get_if<job::TaskFailed>(&job.failure->cause);
  const bool failed_itself = end != nullptr && !end->is_rank;
  const auto failed = std::find_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return task.name == job.failure->task && task.exit &&
           (!task.exit->stopped || (failed_itself && job::was_killed(*task.exit)));
  });
  return failed == job.tasks.end() ? leader : *failed;
}

/// When the job's last attempt ended: the latest end of its tasks. A server that was down meanwhile
/// learns of the end later. `now`, if the end of a task is unknown, or the job had no tasks. The
/// clocks of nodes may differ from the server's: never before the start, nor after `now`.
base::Time end_of_last_attempt(const Job& job, base::Time now) {
  std::optional<base::Time> last;
  for (const Task& task : job.tasks) {
    const bool is_unknown = !task.ended || *task.ended == base::Time{};
    if (task.started && is_unknown) return now;
    if (task.ended) last = std::max(last.value_or(*task.ended), *task.ended);
  }
  if (!last) return now;
  return std::min(std::max(*last, job.started.value_or(job.submitted)), now);
}

/// `cancelled_by`: the cause of the stop request, where it was not a user of Muster.
job::Fact end_reason(const Job& job, const std::optional<job::Fact>& cancelled_by) {
  if (job.failure) return job::Failed{job.failure->cause};
  if (job.phase == Phase::kSucceeded) return Notice{Notice::What::kDone};
  return cancelled_by.value_or(Notice{Notice::What::kWasStopped});
}

}  // namespace

void Attempts::connect(Placement& placement, std::function<void()> wake,
                       std::function<void(JobEntry&)> job_ended) {
  placement_ = &placement;
  wake_ = std::move(wake);
  job_ended_ = std::move(job_ended);
}

Attempt* Attempts::of(const JobEntry& entry) const {
  const auto found = attempts_.find(entry.sequence);
  return found == attempts_.end() ? nullptr : found->second.get();
}

Attempt* Attempts::of(const engine::GangId& gang) const {
  const JobEntry* const entry = services_.jobs.entry_with_id(gang.job_id);
  return entry == nullptr || entry->job.attempt != gang.attempt ? nullptr : of(*entry);
}

Attempt& Attempts::add(JobEntry& entry, bool grows, std::string cannot_grow) {
  AttemptEvents events{
      .finished = [this](Attempt& attempt, Phase phase) { finish(attempt.entry(), phase); },
      .evicted = [this](Attempt& attempt) { evicted(attempt); },
      .abandoned = [this](Attempt& attempt, const job::Fact& why,
                          std::chrono::milliseconds delay) { abandoned(attempt, why, delay); },
      .wake = wake_};
  auto attempt =
      std::make_unique<Attempt>(services_, entry, grows, std::move(cannot_grow), std::move(events));
  return *(attempts_[entry.sequence] = std::move(attempt));
}

/// The attempt may be the caller: it is destroyed later.
void Attempts::remove(JobEntry& entry) {
  auto attempt = attempts_.extract(entry.sequence);
  if (attempt.empty()) return;
  attempt.mapped()->retire();
  if (retired_.empty()) {
    services_.loop.post([this, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) retired_.clear();
    });
  }
  retired_.push_back(std::move(attempt.mapped()));
}

void Attempts::place(JobEntry& entry, Grant grant) {
  Job& job = entry.job;
  const bool is_allocated = !services_.cluster.empty();
  const bool is_elastic = launch::is_elastic(job.spec);
  const bool grows = launch::resizes_live(job.spec) && !is_allocated;
  ++job.attempt;
  job.phase = Phase::kStarting;
  job.reason = starting_reason(job);
  job.may_start.reset();
  job.launch.reset();
  job.tasks = job::tasks_of(job.spec);
  SeatPlaces places = std::move(grant.places);
  if (!grows) places = without_gaps(std::move(places), job);
  for (size_t i = 0; i < places.size() && i < job.tasks.size(); ++i) {
    if (places[i]) assign_place(job.tasks[i], *places[i]);
  }
  if (!grows) renumber_seats(job);
  Attempt& attempt =
      add(entry, grows,
          is_allocated ? "allocations of " + services_.cluster + " do not grow" : std::string());
  if (is_allocated || (!grows && (is_elastic || grant.kept_some))) {
    services_.book.replace(entry, attempt.shape());
  }
  job::Placed fact{.nodes = nodes_of(job), .slurm_job = grant.slurm_job, .attempt = job.attempt};
  if (is_elastic) fact.workers = workers_of(job, count_placed_workers(job));
  services_.jobs.note(job, std::move(fact));
  services_.jobs.change(entry);
  services_.journal.once_committed([this, gang = engine::GangId{job.id, job.attempt}] {
    if (Attempt* const placed = of(gang)) placed->begin();
  });
}

void Attempts::recover(JobEntry& entry, bool may_grow) {
  Attempt& attempt = add(entry, false, may_grow ? "" : "this server would not isolate them");
  attempt.recover(may_grow);
}

void Attempts::report(const JobEntry& entry, const engine::TaskReport& report) {
  if (entry.job.attempt != report.gang.attempt) return;
  if (Attempt* const attempt = of(entry)) attempt->report(report.task, report.what);
}

void Attempts::lose_node(const std::string& node, const std::function<void()>& release) {
  std::vector<engine::TaskReport> losses;
  for (const auto& [sequence, attempt] : attempts_) {
    if (attempt->abandon_on_lost_node(node)) continue;
    const Job& job = attempt->job();
    for (const std::string& task : attempt->tasks_on(node)) {
      losses.push_back({.gang = {job.id, job.attempt},
                        .task = task,
                        .what = engine::TaskEnded{
                            .status = {.lost = true, .error = "node " + node + " has gone"},
                            .time = services_.clock.now()}});
    }
  }
  release();
  for (const engine::TaskReport& loss : losses) {
    const JobEntry* const entry = services_.jobs.entry_with_id(loss.gang.job_id);
    if (entry != nullptr) report(*entry, loss);
  }
}

// --- ends

/// The engine removes the secrets of the attempt, and the job forgets them.
void Attempts::end_attempt(Job& job) {
  services_.engine.scrub({job.id, job.attempt});
  job.sealed_seed.clear();
}

/// All tasks of an evicted attempt have ended.
void Attempts::evicted(Attempt& attempt) {
  JobEntry& entry = attempt.entry();
  Job& job = entry.job;
  EvictedGang gang = attempt.evicted_gang();
  remove(entry);
  job::Eviction why = *std::exchange(job.eviction, std::nullopt);
  ++services_.metrics.evictions;
  end_attempt(job);
  ++job.restarts;
  wait_again(entry, job::Evicted{.why = std::move(why), .stage = job::Evicted::Stage::kWaitsAgain});
  if (job.suspended) job.reason = suspended_reason(job);
  const bool starts_at_once = placement_->evicted(entry, std::move(gang));
  services_.jobs.note(
      job, Notice{job.suspended ? Notice::What::kSuspendedAndGone : Notice::What::kEvictedAndGone});
  services_.jobs.change(entry);
  if (starts_at_once) placement_->start_on_kept(entry);
  wake_();
}

/// The attempt has failed, and another one follows. `why` is a copy, because the fact belongs to the
/// attempt, which remove() destroys.
void Attempts::abandoned(Attempt& attempt, job::Fact why, std::chrono::milliseconds delay) {
  JobEntry& entry = attempt.entry();
  Job& job = entry.job;
  remove(entry);
  end_attempt(job);
  wait_again(entry, why);
  services_.jobs.note(job, why);
  job.eviction.reset();
  // The scheduler gets the job anew: its excluded nodes or the number of its tasks have changed.
  placement_->requeue(entry, delay);
  if (job.suspended) job.reason = suspended_reason(job);
  services_.jobs.change(entry);
  wake_();
}

void Attempts::wait_again(JobEntry& entry, const job::Fact& why) {
  Job& job = entry.job;
  job.phase = Phase::kQueued;
  job.reason = why;
  job.failure.reset();
  job.started.reset();
  job.tasks = job::tasks_of(job.spec);
}

void Attempts::finish(JobEntry& entry, Phase phase) {
  Job& job = entry.job;
  job.phase = phase;
  job.eviction.reset();
  job.suspended = false;
  job.may_start.reset();
  if (const auto& exit = task_with_exit_code(job).exit) job.exit_code = exit->shell_code();
  if (phase == Phase::kFailed && job.exit_code.value_or(0) == 0) job.exit_code = 1;
  job.reason = end_reason(job, entry.cancelled_by);
  job.ended = end_of_last_attempt(job, services_.clock.now());
  ++services_.metrics.finished[job.spec.project][std::string(job::to_string(phase))];
  services_.jobs.note(job, job::PhaseReached{phase});
  if (job.attempt > 0) end_attempt(job);
  remove(entry);
  services_.jobs.count_end();
  placement_->ended(entry);
  job_ended_(entry);
  services_.jobs.change(entry);
  wake_();
}

}  // namespace muster::control
