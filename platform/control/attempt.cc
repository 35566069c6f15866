#include "control/attempt.h"

#include <algorithm>
#include <utility>

#include "control/allocation.h"
#include "control/gang_tasks.h"
#include "control/retry.h"
#include "control/schedule_view.h"
#include "control/sweeps.h"
#include "launch/elastic.h"
#include "words/sentence.h"

namespace muster::control {

using engine::AdoptionResult;
using engine::AllocationRevoked;
using engine::StopMode;
using engine::TaskEnded;
using job::AttemptAbandoned;
using job::Job;
using job::Notice;
using job::Phase;
using job::Task;
using job::TaskPhase;
using job::TaskRole;

namespace {

/// Whether an earlier server was letting the task join a running gang.
bool was_joining(const Job& job, const Task& task) {
  return job.phase == Phase::kRunning && task.phase != TaskPhase::kRunning &&
         task.role == TaskRole::kWorker && launch::resizes_live(job.spec);
}

/// The task never ran, or its end was not recorded, and the job continues without it.
void drop_task(Task& task) {
  if (!task.started) return clear_place(task);
  task.left = true;
  task.phase = TaskPhase::kEnded;
}

/// The lines that were printed on the node, indented below the cause.
std::vector<std::string> indented(const std::vector<std::string>& printed) {
  std::vector<std::string> lines;
  for (const std::string& line : printed) lines.push_back("  " + line);
  return lines;
}

bool was_begun(const Job& job) {
  return std::any_of(job.tasks.begin(), job.tasks.end(),
                     [](const Task& task) { return task.started.has_value(); });
}

/// The task that the loss of the allocation is attributed to: a task on the node that failed, else
/// the leader.
Task culprit_of_loss(const Job& job, const AllocationRevoked& taken) {
  const auto there = std::find_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return !taken.node.empty() && task.node == taken.node;
  });
  Task culprit = there == job.tasks.end() ? job::deciding_task(job) : *there;
  culprit.exit = {.lost = true, .error = words::sentence(taken.end)};
  const auto* const in_slurm = std::get_if<job::SlurmEnded>(&taken.end);
  if (in_slurm != nullptr && in_slurm->cause == job::SlurmEnded::Cause::kOutOfMemory) {
    culprit.exit->out_of_memory = true;
    culprit.exit->limit = {job::Limit::kMemory,
                           job::resources_of(job.spec, culprit.role).memory_bytes};
  }
  for (const std::string& line : indented(taken.printed)) culprit.exit->error += "\n" + line;
  return culprit;
}

/// Whether no task of the gang was ever started in its allocation. The job keeps the allocation,
/// for which it has waited. Without a cluster, Muster's own scheduler places the gang again within
/// moments.
bool keeps_unused_allocation(const AttemptContext& context) {
  const Job& job = context.job();
  if (context.services.cluster.empty() || job.phase != Phase::kStarting) return false;
  return !job.stop_requested && !job.eviction &&
         std::all_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
           return task.phase == TaskPhase::kPending && !task.started;
         });
}

}  // namespace

Attempt::Attempt(const AttemptServices& services, JobEntry& entry, bool grows,
                 std::string cannot_grow, AttemptEvents events)
    : context_{services, entry, alive_},
      events_(std::move(events)),
      start_(context_, grows, start_hooks()),
      resizing_(context_, start_.images(), grows, std::move(cannot_grow), resizing_hooks()),
      end_(
          context_, start_, resizing_, [this] { end_has_begun(); },
          [this] { return is_suspended(); }),
      ranks_(
          context_, [this] { return end_.is_ending(); },
          [this](job::Failure failure) {
            end_.fail(std::move(failure));
            context_.change();
            end_.stop_gently();
          }),
      placed_(services.clock.now()) {}

GangStart::Hooks Attempt::start_hooks() {
  return {
      .is_ending = [this] { return end_.is_ending(); },
      .has_lost_allocation = [this] { return allocation_.is_lost; },
      .fail = [this](job::Failure failure) { end_.fail(std::move(failure)); },
      .abandon = [this](job::Fact why,
                        std::chrono::milliseconds delay) { end_.abandon(std::move(why), delay); },
      .blame = [this](const Task& task,
                      std::vector<std::string> lines) { end_.blame(task, std::move(lines)); },
      .kill_all = [this] { end_.stop(StopMode::kNow); },
      .finish_if_over = [this] { finish_if_over(); },
      .keep_seed = [this](const KeptSeed& kept) { resizing_.keep_seed(kept); },
      .leader_started = [this] { ranks_.learn_mpi(); }};
}

Resizing::Hooks Attempt::resizing_hooks() {
  return {.is_ending = [this] { return end_.is_ending(); },
          .evict_all = [this](const job::Eviction& why) { evict_whole(why); },
          .keeps_no_places =
              [this] { return evicted_.seats.empty() && (!job().eviction || evicted_.whole); },
          .finish_if_over = [this] { finish_if_over(); },
          .reshape = [this] { context_.services.book.replace(entry(), shape()); },
          .running_reason = [this] { return reason_while_running(); },
          .wake = events_.wake};
}

// --- how others see it

job::Fact Attempt::reason_while_running() const {
  return running_reason(job(), context_.services.nodes, allocation_.state);
}

/// For the scheduler, a gang that can grow only in another attempt has as many workers as were
/// placed: a few more workers are not worth a restart of a running job.
bool Attempt::is_known_by_placed() const {
  const job::JobSpec& spec = job().spec;
  return launch::is_elastic(spec) && (!launch::resizes_live(spec) || !resizing_.can_grow());
}

GangShape Attempt::shape() const {
  GangShape shape{.workers = {},
                  .excluded_nodes = resizing_.unfit_nodes(),
                  .offered = resizing_.offers(),
                  .leaving = leaving_seats(),
                  .all_leave = all_leave()};
  if (is_known_by_placed()) shape.workers = count_placed_workers(job());
  return shape;
}

EvictedGang Attempt::evicted_gang() const {
  SeatPlaces places = places_of(job());
  for (const auto& [seat, place] : resizing_.offers()) {
    places.resize(std::max(places.size(), static_cast<size_t>(seat) + 1));
    places[static_cast<size_t>(seat)] = place;
  }
  return {.places = std::move(places),
          .evicted = evicted_.seats,
          .is_evicted_whole = evicted_.whole,
          .moves = evicted_.moves,
          .known_by_placed = is_known_by_placed()};
}

/// Whether all tasks end, and none keeps its place for another attempt. A cluster evicts by its own
/// rules.
bool Attempt::all_leave() const {
  if (!context_.services.cluster.empty()) return false;
  return (job().eviction && evicted_.whole) || (end_.is_ending() && evicted_.seats.empty());
}

/// No other gang has to be evicted for the resources of a gang that ends.
void Attempt::end_has_begun() {
  if (all_leave()) context_.services.book.leaves(job());
  events_.wake();
}

/// The seats whose tasks end for others. For a cluster that evicts by its own rules, none: its
/// jobs count until they have ended.
std::vector<int> Attempt::leaving_seats() const {
  std::vector<int> seats;
  if (!context_.services.cluster.empty()) return seats;
  for (const Task& task : job().tasks) {
    const auto& evicted = evicted_.seats;
    const bool is_evicted = std::find(evicted.begin(), evicted.end(), task.seat) != evicted.end();
    if (holds_place(task) && (task.left || is_evicted)) seats.push_back(task.seat);
  }
  return seats;
}

std::vector<std::string> Attempt::tasks_on(const std::string& node) const {
  std::vector<std::string> names;
  for (const Task& task : job().tasks) {
    if (task.node == node && task.phase != TaskPhase::kEnded) names.push_back(task.name);
  }
  return names;
}

// --- tasks

void Attempt::report(const std::string& name, const engine::TaskNews& news) {
  Task* const task = find_task(context_.job(), name);
  if (task == nullptr || task->phase == TaskPhase::kEnded) return;
  if (const auto* const end = std::get_if<TaskEnded>(&news)) {
    task_ended(*task, *end);
  } else if (std::holds_alternative<engine::TaskAnswered>(news)) {
    task_answers(*task);
  } else {
    ranks_.ranks_changed();
  }
}

void Attempt::task_answers(Task& task) {
  task.phase = TaskPhase::kRunning;
  if (leads(job(), task)) return leader_runs();
  if (!resizing_.worker_answers(task)) start_.worker_is_up(task);
}

void Attempt::leader_runs() {
  Job& job = context_.job();
  if (job.phase == Phase::kRunning) return;  // recovered
  job.phase = Phase::kRunning;
  job.started = context_.services.clock.now();
  context_.entry.unanswered_starts = 0;
  const auto since = [&](base::Time begin) {
    return std::chrono::duration<double>(*job.started - begin).count();
  };
  Metrics& metrics = context_.services.metrics;
  metrics.start_seconds.add(since(placed_));
  if (job.restarts == 0) metrics.wait_seconds.add(since(job.submitted));
  if (!end_.is_ending()) job.reason = reason_while_running();
  context_.note(Notice{Notice::What::kRunning});
  context_.change();
  end_.limit_run_time();
  resizing_.grow();  // on places that were offered during the start
}

void Attempt::task_ended(Task& task, const TaskEnded& end) {
  if (resizing_.reject_unstarted(task, "it " + job::explain(end.status))) return;
  // The end of a short program may be reported before its answer.
  const bool has_run = !end.status.lost && !end.status.stopped && end.status.error.empty();
  const bool end_came_first = has_run && task.phase == TaskPhase::kStarting && leads(job(), task) &&
                              job().phase == Phase::kStarting;
  if (end_came_first) task_answers(task);
  task.phase = TaskPhase::kEnded;
  task.exit = end.status;
  task.ended = end.time;
  if (end.status.lost_log_bytes > 0) {
    context_.note(job::Remark{task.name + ": " + job::lost_output(end.status)});
  }
  react_to_end(task);
}

void Attempt::react_to_end(Task& task) {
  const bool was_joining = resizing_.end_joining(task);
  if (task.left) {
    resizing_.has_left(task);
  } else if (leads(job(), task)) {
    end_.leader_ended();
  } else if (!end_.is_ending() && is_loss(job(), task)) {
    if (resizing_.absorb_loss(task, was_joining)) return;
    end_.end_by_loss(task, resizing_.falls_over() ? kSoon : std::chrono::milliseconds(0));
  } else if (end_.leader_has_succeeded() && !others_come_to_their_end(job())) {
    end_.stop(StopMode::kGraceful);
  } else if (!end_.is_ending()) {
    resizing_.show_size();
    start_.worker_is_up(task);
  }
  finish_if_over();
}

void Attempt::note_silence(const std::string& node, bool is_silent) {
  Job& job = context_.job();
  if (!runs_on(job, node)) return;
  context_.note(job::NodeSilence{.node = node, .silent = is_silent});
  const bool is_ending = end_.is_ending() || job.eviction || job.stop_requested;
  if (job.phase == Phase::kRunning && !is_ending) job.reason = reason_while_running();
  context_.change();
}

/// While images are fetched no task has started, and nothing is lost.
bool Attempt::abandon_on_lost_node(const std::string& node) {
  if (!start_.is_fetching()) return false;
  const auto& tasks = job().tasks;
  const bool uses_it =
      std::any_of(tasks.begin(), tasks.end(), [&](const Task& task) { return task.node == node; });
  if (uses_it) {
    end_.abandon(AttemptAbandoned{.why = AttemptAbandoned::Why::kNodeGone, .node = node}, {});
    end_.stop(StopMode::kNow);
  }
  return true;
}

// --- evictions

void Attempt::evict(const job::Eviction& why) {
  Job& job = context_.job();
  if (job.eviction) return;
  job.eviction = why;
  job.reason = job::Evicted{.why = why, .stage = job::Evicted::Stage::kBeingEnded};
  context_.note(job::Evicted{.why = why});
  context_.change();
  context_.once_committed([this] {
    end_.stop_gently();
    finish_if_over();
  });
}

void Attempt::evict_whole(const job::Eviction& why) {
  evicted_.whole = true;
  evict(why);
}

void Attempt::evict_seats(const std::vector<int>& seats, bool moves, const job::Eviction& why) {
  // A gang that continues has survived the loss or the drain of its nodes (release_node()).
  if (!job().eviction && !end_.is_ending()) evicted_.whole = false;
  // If the attempt is ending already, these seats go with the others.
  evicted_.moves = evicted_.seats.empty() ? moves : evicted_.moves && moves;
  evicted_.seats.insert(evicted_.seats.end(), seats.begin(), seats.end());
  evict(why);
}

void Attempt::drain(const std::string& node) {
  if (job().eviction || job().stop_requested) return;
  std::vector<int> there;
  for (const Task& task : job().tasks) {
    if (task.node == node && !task.left) there.push_back(task.seat);
  }
  const job::NodeDrained why{node};
  if (!there.empty() && !shrink(there, why)) evict_whole(why);
}

void Attempt::release_node(const std::string& node) {
  resizing_.release_offers_on(node);
  const SeatPlaces places = places_of(job());
  const auto is_there = [&](const auto& place) { return place && place->node == node; };
  if (std::any_of(places.begin(), places.end(), is_there)) evicted_.whole = true;
}

// --- the end

void Attempt::stop(bool now) {
  if (now) {
    end_.stop(StopMode::kNow);
  } else {
    end_.stop_gently();
  }
}

void Attempt::finish_if_over() {
  const Job& job = this->job();
  if (start_.is_busy() || !live_tasks(job).empty()) return;
  // Workers may complete the program before their leader has started.
  if (start_.waits_for_workers() && !end_.is_ending()) return;
  resizing_.end_all_joining();
  end_.explain_loss();
  const bool ended_by_itself = job.failure || has_ended_by_itself(job);
  if (job.eviction && !job.stop_requested && !ended_by_itself) return events_.evicted(*this);
  if (const auto& next = end_.next_attempt(); next && !job.stop_requested) {
    return events_.abandoned(*this, next->why, next->delay);
  }
  conclude();
}

/// All tasks of the gang have ended, and no other attempt was decided on.
void Attempt::conclude() {
  Job& job = context_.job();
  const bool succeeded = has_succeeded(job) && !job.failure;
  if (succeeded) {
    if (auto fault = ranks_.fault_at_end()) end_.fail(*std::move(fault));
  } else if (!job.failure && !job.stop_requested) {
    end_.explain_failure();
  }
  if (succeeded && !job.failure && pauses_at_end(job)) return pause_at_rung();
  if (job.failure) {
    const auto next = end_.retry(!allocation_.is_lost, allocation_.went_too_far);
    if (next) return events_.abandoned(*this, next->why, next->delay);
  }
  events_.finished(*this, job.failure ? Phase::kFailed
                          : succeeded ? Phase::kSucceeded
                                      : Phase::kStopped);
}

/// The program of a trial has ended at its rung: the trial may be promoted, and continue then.
void Attempt::pause_at_rung() {
  Job& job = context_.job();
  note_end_at_rung(job.spec);
  job.suspended = true;
  job.eviction = job::SuspendedByUser{};
  events_.evicted(*this);
}

// --- allocations of a cluster

void Attempt::set_allocation_state(const std::optional<job::SlurmState>& state) {
  Job& job = context_.job();
  const std::optional<job::SlurmState> before = std::exchange(allocation_.state, state);
  if (before == state) return;
  if (job.phase == Phase::kRunning && !end_.is_ending() && !job.eviction && !job.stop_requested) {
    job.reason = reason_while_running();
  }
  if (!state) {
    job::SlurmState over = *before;
    over.over = true;
    context_.note(over);
  } else if (!before || !is_same_wait(*before, *state)) {
    context_.note(*state);
  }
  context_.change();
  // The job was suspended after its launcher received the stop request.
  if (is_suspended() && end_.is_ending() && is_reached_by_leader(job)) {
    end_.stop(StopMode::kGraceful);
  }
}

bool Attempt::is_suspended() const {
  return allocation_.state && allocation_.state->what == job::SlurmState::What::kSuspended;
}

void Attempt::lose_allocation(const AllocationRevoked& taken) {
  const Job& job = this->job();
  const bool is_decided = end_.is_ending() || end_.next_attempt() || job.failure || job.eviction ||
                          job.stop_requested || has_ended_by_itself(job);
  allocation_.is_lost = true;
  if (!is_decided) decide_without_allocation(taken);
  end_.all_lost();
  context_.change();
  context_.once_committed([this] { finish_if_over(); });
}

/// Whether no program of the job has run yet. Before their launcher starts, the workers of an MPI
/// job only run sshd; other tasks run the program themselves.
bool Attempt::has_run_nothing() const {
  const Job& job = this->job();
  if (job.phase != Phase::kStarting) return false;
  if (!was_begun(job)) return true;
  if (job.spec.kind == job::Kind::kMpi) return start_.is_busy() || start_.waits_for_workers();
  return start_.is_busy() && std::all_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
           return task.phase == TaskPhase::kPending || task.phase == TaskPhase::kStarting;
         });
}

void Attempt::decide_without_allocation(const AllocationRevoked& taken) {
  Job& job = context_.job();
  const auto end = job::widened<job::Fact>(taken.end);
  switch (taken.why) {
    case AllocationRevoked::Why::kEvicted:
      evicted_.whole = true;
      job.eviction = job::widened<job::Eviction>(taken.end);
      job.reason = job::Evicted{.why = *job.eviction, .stage = job::Evicted::Stage::kBeingEnded};
      return context_.note(end);
    case AllocationRevoked::Why::kCancelled:
      job.stop_requested = true;
      context_.entry.cancelled_by = end;
      job.reason = end;
      return context_.note(end);
    case AllocationRevoked::Why::kNodeLost:
      if (has_run_nothing()) {
        if (const auto pause = pause_before_another_start(context_.entry.unanswered_starts)) {
          return end_.abandon(
              job::RequestsAllocation{.cluster = context_.services.cluster, .after = taken.end},
              *pause);
        }
      }
      break;
    case AllocationRevoked::Why::kFailed:
      allocation_.went_too_far = true;
      break;
  }
  const Task culprit = culprit_of_loss(job, taken);
  std::vector<std::string> log = last_lines(context_.services.engine, context_.gang(), culprit);
  std::vector<std::string> lines = indented(taken.printed);
  if (lines.empty()) lines = failure_of(culprit, log).last_lines;
  end_.blame(culprit, std::move(log));
  end_.fail({.task = culprit.name,
             .cause = job::widened<job::FailureCause>(taken.end),
             .advice = taken.advice,
             .last_lines = std::move(lines)});
}

// --- recovery

// The stored job shows how far the attempt had got; the engine shows which of its tasks exist. A
// launcher that was ever started is recovered and never started again. A gang whose launcher was
// not started starts anew, as another attempt with new keys.
void Attempt::recover(bool may_grow) {
  Job& job = context_.job();
  const AttemptServices& services = context_.services;
  context_.note(Notice{Notice::What::kTakenUp});
  for (Task& task : job.tasks) recover_task(task);
  if (launch::resizes_live(job.spec)) {
    if (services.cluster.empty() && may_grow) resizing_.find_seed();
    if (!resizing_.can_grow()) renumber_seats(job);
  }
  // Only the earlier server knew which tasks were to keep their places.
  evicted_.whole = job.eviction.has_value();
  services.book.adopt(entry(), shape());
  job.failure.reset();  // found again, with its culprit, when the ended tasks are looked at
  if (keeps_unused_allocation(context_)) {
    context_.change();
    return context_.once_committed([this] { begin(); });
  }
  const Task& leader = job::deciding_task(job);
  if (leader.phase == TaskPhase::kPending) {
    // The keys and the launcher's plan were lost with the server: a new attempt makes new ones.
    end_.abandon(AttemptAbandoned{.why = AttemptAbandoned::Why::kServerRestarted}, {});
    end_.stop(StopMode::kNow);
    return context_.soon([this] { finish_if_over(); });
  }
  if (job.phase == Phase::kStarting) {
    job.phase = Phase::kRunning;
    job.started = leader.started;
    job.reason =
        job.eviction ? job::Fact(job::Evicted{.why = *job.eviction}) : reason_while_running();
  }
  ranks_.learn_mpi();
  ranks_.ranks_changed();
  context_.change();
  end_.limit_run_time();
  if (job.stop_requested || job.eviction) end_.stop_gently();
  resizing_.resume();
  // The engine reports no task again that had ended before; the earlier server may have stopped
  // before it acted on that end.
  for (const Task& task : job.tasks) {
    if (task.phase != TaskPhase::kEnded || !task.exit || task.left) continue;
    context_.soon([this, name = task.name] { react_to_end(*find_task(context_.job(), name)); });
  }
}

void Attempt::recover_task(Task& task) {
  const Job& job = this->job();
  // A task of an elastic gang without a place was never started.
  if (task.phase == TaskPhase::kEnded || task.node.empty()) return;
  const AttemptServices& services = context_.services;
  switch (services.engine.adopt(context_.gang(), task.name)) {
    case AdoptionResult::kRunning:
    case AdoptionResult::kEnded:
      task.phase = TaskPhase::kRunning;
      if (!task.started) task.started = services.clock.now();
      return;
    case AdoptionResult::kNothing:
      if (task.left || was_joining(job, task)) return drop_task(task);
      if (job.phase == Phase::kStarting) {
        task.phase = TaskPhase::kPending;
        return;
      }
      task.phase = TaskPhase::kRunning;
      context_.soon([this, name = task.name] {
        report(name, TaskEnded{.status = {.lost = true}, .time = context_.services.clock.now()});
      });
  }
}

}  // namespace muster::control
