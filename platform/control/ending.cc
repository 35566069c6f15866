// What the engine reports, and how a gang ends: done, failed, or to start again.
#include <algorithm>

#include "base/units.h"
#include "control/controller.h"
#include "control/failure.h"
#include "control/live_gang.h"
#include "control/retry.h"
#include "control/run.h"

namespace muster::control {

using engine::StopMode;
using engine::TaskEnded;
using job::Job;
using job::Notice;
using job::Phase;
using job::Role;
using job::Task;
using job::TaskPhase;

namespace {

// What a launcher has to say about a lost worker, it says at once; a job ends soon after.
constexpr std::chrono::seconds kLastWords{2};

// Workers of one program end within moments of each other.
constexpr std::chrono::seconds kFarewell{2};

/// Whether a launcher starts and ends what the workers run.
bool is_reached_by_its_leader(const Job& job) {
  return job.spec.kind == job::Kind::kMpi;
}

/// Of a gang that ended without a word from the control loop: who began it.
const Task& task_at_fault(const Job& job) {
  const Task& leader = job::deciding_task(job);
  const Task* first = nullptr;
  for (const Task& task : job.tasks) {
    // A launcher fails because a worker was lost, whichever was noticed first. Where all run the
    // program, those that end later do so because the first has left them.
    const bool is_before_leader = is_reached_by_its_leader(job) || task.ended < leader.ended;
    if (task.left || !is_loss(job, task) || !is_before_leader) continue;
    if (first == nullptr || task.ended < first->ended) first = &task;
  }
  return first == nullptr ? leader : *first;
}

/// The task whose exit code is the job's: the one that failed first, unless Muster ended that, too
/// (a worker whose rank failed). A launcher that ended by itself has a code for what went wrong.
const Task& task_with_exit_code(const Job& job) {
  const Task& leader = job::deciding_task(job);
  const bool speaks_for_all = is_reached_by_its_leader(job) && leader.exit && !leader.exit->stopped;
  if (!job.failure || speaks_for_all) return leader;
  const auto failed = std::find_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return task.name == job.failure->task && task.exit && !task.exit->stopped;
  });
  return failed == job.tasks.end() ? leader : *failed;
}

/// Whether others may still be at the last lines of what their leader has brought to its end.
bool others_come_to_their_end(const Job& job) {
  const Task& leader = job::deciding_task(job);
  return !job.failure && leader.exit && leader.exit->succeeded() &&
         std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
           return task.role == Role::kWorker && task.phase != TaskPhase::kEnded && !task.left &&
                  !task.node.empty();
         });
}

}  // namespace

void Controller::hear(const engine::TaskReport& report) {
  Entry* const entry = by_id(report.gang.job_id);
  if (entry != nullptr && entry->job.unreadable) return stray_reported(*entry, report);
  if (entry == nullptr || entry->job.attempt != report.gang.attempt || !entry->run) return;
  Task* task = find_task(entry->job, report.task);
  if (task == nullptr || task->phase == TaskPhase::kEnded) return;
  if (const auto* end = std::get_if<TaskEnded>(&report.what)) {
    ended(*entry, *task, *end);
  } else if (std::holds_alternative<engine::TaskAnswered>(report.what)) {
    answered(*entry, *task);
  } else {
    ranks_changed(*entry);
  }
}

void Controller::ended(Entry& entry, Task& task, const TaskEnded& end) {
  const auto newcomer = entry.run->newcomers.find(task.name);
  if (newcomer != entry.run->newcomers.end() && !newcomer->second.is_started) {
    return turn_away(entry, task, "it " + job::explain(end.status));
  }
  task.phase = TaskPhase::kEnded;
  task.exit = end.status;
  task.ended = end.time;
  if (end.status.lost_log_bytes > 0) {
    note(entry.job, job::Remark{task.name + ": " + job::lost_output(end.status)});
  }
  react_to_end(entry, task);
}

void Controller::react_to_end(Entry& entry, Task& task) {
  Run& run = *entry.run;
  const bool was_joining = run.newcomers.erase(task.name) > 0;
  if (task.left) {
    has_left(entry, task);
  } else if (leads(entry.job, task)) {
    end_what_was_led(entry);
  } else if (!run.ending && is_loss(entry.job, task)) {
    note_loss(entry, task);
    if (was_joining && may_resize(entry) && !falls_over(entry)) return did_not_join(entry, task);
    if (goes_on_without(entry, task)) return lose_worker(entry, task);
    fail_by(entry, task, falls_over(entry) ? kSoon : std::chrono::milliseconds(0));
    end_gang_gently(entry);
    if (!is_reached_by_its_leader(entry.job)) return finish_if_over(entry);
    run.last_words_timer = parts_.loop.after(kLastWords, [this, id = entry.job.id] {
      Entry* const late = by_id(id);
      if (late != nullptr && late->run) end_gang(*late, StopMode::kNow);
    });
  } else if (run.led_to_the_end && !others_come_to_their_end(entry.job)) {
    end_gang(entry, StopMode::kGraceful);
  } else if (!run.ending) {
    show_size(entry);
    is_up(entry, task);
  }
  finish_if_over(entry);
}

/// The leader has ended, and with it the job. Workers that a launcher reaches have nothing more to
/// do; those that ran the program beside their leader may end by themselves, and parameter servers
/// once nobody asks them any more.
void Controller::end_what_was_led(Entry& entry) {
  Run& run = *entry.run;
  if (is_reached_by_its_leader(entry.job)) return end_gang(entry, StopMode::kNow);
  if (run.ending || !others_come_to_their_end(entry.job)) {
    return end_gang(entry, StopMode::kGraceful);
  }
  begin_to_end(entry);
  run.led_to_the_end = true;
  run.last_words_timer = parts_.loop.after(kFarewell, [this, id = entry.job.id] {
    Entry* const late = by_id(id);
    if (late != nullptr && late->run) end_gang(*late, StopMode::kGraceful);
  });
}

void Controller::fail(Entry& entry, job::Failure failure) {
  Job& job = entry.job;
  if (job.failure) return;  // the first cause is the one that explains the others
  note(job, job::Failed{failure.cause});
  job.failure = std::move(failure);
  job.reason = Notice{Notice::What::kBeingEnded};
}

/// `third_loss_within`: more than zero where too many workers were lost in a row.
void Controller::fail_by(Entry& entry, const Task& culprit,
                         std::chrono::milliseconds third_loss_within) {
  if (entry.job.failure) return;
  const Evidence evidence = evidence_of(parts_.engine, engine_gang(entry.job), entry.job, culprit,
                                        entry.run->tasks_by_address);
  entry.run->culprit = culprit_of(evidence);
  entry.run->culprit_lines = lines_of(evidence);
  job::Failure failure = failure_of(evidence);
  if (auto* const ended = std::get_if<job::TaskFailed>(&failure.cause)) {
    ended->third_loss_within = third_loss_within;
  }
  fail(entry, std::move(failure));
}

/// Nobody joins it any more, and the room that was kept for those who would is for others.
void Controller::begin_to_end(Entry& entry) {
  entry.run->ending = true;
  give_up_newcomers(entry);
  ask_for_less(entry);
  wake();
}

void Controller::end_gang(Entry& entry, StopMode mode) {
  give_up_fetching(entry);
  begin_to_end(entry);
  parts_.engine.stop(engine_gang(entry.job), live_tasks(entry.job), mode);
}

/// A launcher is asked first: it takes its ranks down in good order. The workers follow when it
/// has ended; where there is no launcher yet, they are all there is. Where each task runs the
/// program itself, each is asked.
void Controller::end_gang_gently(Entry& entry) {
  if (!is_reached_by_its_leader(entry.job)) return end_gang(entry, StopMode::kGraceful);
  const Task& deciding = job::deciding_task(entry.job);
  const bool up = deciding.phase == TaskPhase::kStarting || deciding.phase == TaskPhase::kRunning;
  if (!up) return end_gang(entry, StopMode::kNow);
  begin_to_end(entry);
  parts_.engine.stop(engine_gang(entry.job), {deciding.name}, StopMode::kGraceful);
}

void Controller::finish_if_over(Entry& entry) {
  const Run& run = *entry.run;
  Job& job = entry.job;
  if (run.fetch || run.stage_under_way || !live_tasks(job).empty()) return;
  // Workers that ran the program to its end before their leader has even started.
  if (!run.plan.then.empty() && !run.ending) return;
  give_up_newcomers(entry);
  const Task& deciding = job::deciding_task(job);
  const bool ended_by_itself =
      job.failure || (deciding.exit && !deciding.exit->stopped && !deciding.exit->lost);
  if (job.eviction && !job.stop_requested && !ended_by_itself) return evicted(entry);
  if (run.taken_up_evicted) --evictions_from_before_;
  if (run.requeue && !job.stop_requested) {
    return wait_again(entry, *run.requeue, run.requeue_delay);
  }
  conclude(entry);
}

/// Nothing of the gang runs any more, and nobody wants it elsewhere.
void Controller::conclude(Entry& entry) {
  Job& job = entry.job;
  const Task& deciding = job::deciding_task(job);
  const bool succeeded = deciding.exit && deciding.exit->succeeded() && !job.failure;
  if (succeeded) {
    const auto ranks = parts_.engine.ranks(engine_gang(job), names_of_tasks(job));
    if (auto fault = judge_at_end(job, ranks)) fail(entry, failure_of(job, *std::move(fault)));
  } else if (!job.failure && !job.stop_requested) {
    fail_by(entry, task_at_fault(job));
  }
  if (job.failure && start_again(entry)) return;
  finish(entry, job.failure ? Phase::kFailed : succeeded ? Phase::kSucceeded : Phase::kStopped);
}

/// Whether the failure is not the last word.
bool Controller::start_again(Entry& entry) {
  Job& job = entry.job;
  if (job.stop_requested || !entry.run->culprit) return false;
  const Run& run = *entry.run;
  const auto other_ports =
      run.room_is_taken ? std::nullopt
                        : start_under_other_ports(job, *run.culprit, run.culprit_lines, run.served);
  if (other_ports) {
    wait_again(entry, *other_ports, {});
    return true;
  }
  const auto retry = run.retries_by_rules_alone
                         ? retry_by_rules(job, *run.culprit, run.culprit_lines)
                         : retry_of(job, *run.culprit, run.culprit_lines);
  if (!retry) return false;
  if (retry->cost == job::Retry::Cost::kCounted) ++job.retries_used;
  if (!retry->node.empty()) job.avoided_nodes.push_back(retry->node);
  ++job.restarts;
  ++metrics_.restarts;
  const job::StartsAgain why{.cause = job.failure->cause, .retry = *retry};
  wait_again(entry, why, backoff(job.restarts));
  return true;
}

namespace {

/// `by`: who had it stopped, where that was none of Muster's users.
job::Fact end_reason(const Job& job, const std::optional<job::Fact>& by) {
  if (job.failure) return job::Failed{job.failure->cause};
  if (job.phase == Phase::kSucceeded) return Notice{Notice::What::kDone};
  return by.value_or(Notice{Notice::What::kWasStopped});
}

}  // namespace

void Controller::finish(Entry& entry, Phase phase) {
  Job& job = entry.job;
  job.phase = phase;
  job.eviction.reset();
  job.suspended = false;
  job.may_start.reset();
  if (const auto& exit = task_with_exit_code(job).exit) job.exit_code = exit->shell_code();
  if (phase == Phase::kFailed && job.exit_code.value_or(0) == 0) job.exit_code = 1;
  job.reason = end_reason(job, entry.ended_by);
  job.ended = parts_.clock.now();
  ++metrics_.finished[job.spec.project][std::string(job::to_string(phase))];
  note(job, job::PhaseReached{phase});
  if (job.attempt > 0) end_attempt(job);
  entry.run.reset();
  entry.kept.clear();
  parted_.erase(entry.sequence);
  --not_final_;
  scheduler_.ended(job.id);
  if (asks_a_cluster()) give_back_rooms(entry);
  note_end(entry);
  change(entry);
  wake();
}

}  // namespace muster::control
