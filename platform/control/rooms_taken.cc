// What a cluster says of a job that has room there, and what becomes of the job when the cluster
// takes its room away: as elsewhere of one that is evicted, whose node is lost, that is stopped or
// fails by itself.
#include <algorithm>
#include <sstream>

#include "control/controller.h"
#include "control/failure.h"
#include "control/room_wish.h"
#include "control/run.h"
#include "words/sentence.h"

namespace muster::control {

using engine::RoomSays;
using engine::RoomTaken;
using job::Job;
using job::Phase;
using job::Task;
using job::TaskPhase;

namespace {

/// What was printed on the node, below the cause.
std::vector<std::string> printed_lines(const RoomTaken& taken) {
  std::vector<std::string> lines;
  for (const std::string& line : taken.printed) lines.push_back("  " + line);
  return lines;
}

bool was_begun(const Job& job) {
  return std::any_of(job.tasks.begin(), job.tasks.end(),
                     [](const Task& task) { return task.started.has_value(); });
}

/// Whom the loss of the room is put down to: who was on the node that failed, else who decides.
Task culprit_task(const Job& job, const RoomTaken& taken) {
  const auto there = std::find_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return !taken.node.empty() && task.node == taken.node;
  });
  Task culprit = there == job.tasks.end() ? job::deciding_task(job) : *there;
  culprit.exit = {.lost = true, .error = words::sentence(taken.end)};
  for (const std::string& line : printed_lines(taken)) culprit.exit->error += "\n" + line;
  return culprit;
}

}  // namespace

void Controller::cluster_says(Entry& entry, const RoomSays& says) {
  Job& job = entry.job;
  Run& run = *entry.run;
  const std::optional<job::SlurmState> before = std::exchange(run.room_says, says.state);
  if (before == says.state) return;
  if (job.phase == Phase::kRunning && !run.ending && !job.eviction && !job.stop_requested) {
    job.reason = running_reason(job);
  }
  if (!says.state) {
    job::SlurmState over = *before;
    over.over = true;
    note(job, over);
  } else if (!before || !are_alike(*before, *says.state)) {
    note(job, *says.state);
  }
  change(entry);
}

/// Its tasks are lost with it, and that says nothing more of why.
void Controller::room_taken(Entry& entry, const RoomTaken& taken) {
  Job& job = entry.job;
  Run& run = *entry.run;
  const Task& deciding = job::deciding_task(job);
  const bool is_decided = run.ending || run.requeue || job.failure || job.eviction ||
                          job.stop_requested || deciding.phase == TaskPhase::kEnded;
  entry.seeking.was_taken = run.room_is_taken = true;
  if (!is_decided) decide_without_room(entry, taken);
  run.ending = true;
  give_up_fetching(entry);
  give_up_newcomers(entry);
  change(entry);
  journal_.once_committed([this, id = job.id, attempt = job.attempt] {
    if (Entry* const late = run_of(id, attempt)) finish_if_over(*late);
  });
}

void Controller::decide_without_room(Entry& entry, const RoomTaken& taken) {
  Job& job = entry.job;
  Run& run = *entry.run;
  switch (taken.why) {
    case RoomTaken::Why::kEvicted:
      run.goes_whole = true;
      job.eviction = taken.end;
      job.reason = job::Evicted{.why = taken.end, .stage = job::Evicted::Stage::kBeingEnded};
      return note(job, taken.end);
    case RoomTaken::Why::kCancelled:
      job.stop_requested = true;
      entry.ended_by = taken.end;
      job.reason = taken.end;
      return note(job, taken.end);
    case RoomTaken::Why::kNodeLost:
      if (!was_begun(job)) {
        if (const auto pause = pause_before_another_try(entry)) {
          run.requeue = asking_reason(taken.end);
          run.requeue_delay = *pause;
          return;
        }
      }
      break;
    case RoomTaken::Why::kFailed:
      run.retries_by_rules_alone = true;
      break;
  }
  run.culprit = culprit_task(job, taken);
  run.culprit_lines = last_lines(parts_.engine, engine_gang(job), *run.culprit);
  std::vector<std::string> lines = printed_lines(taken);
  if (lines.empty()) lines = failure_of(*run.culprit, run.culprit_lines).last_lines;
  fail(entry, {.task = run.culprit->name,
               .cause = taken.end,
               .advice = taken.advice,
               .last_lines = std::move(lines)});
}

/// Nothing of the attempt has been started, and it is not asked for any more: the next one is.
void Controller::room_taken_before_it_was_given(Entry& entry, const RoomTaken& taken) {
  Job& job = entry.job;
  ++job.attempt;
  entry.seeking.was_taken = true;
  switch (taken.why) {
    case RoomTaken::Why::kEvicted:
      return wait_for_another_room(entry, taken, {});
    case RoomTaken::Why::kNodeLost:
      if (const auto pause = pause_before_another_try(entry)) {
        return wait_for_another_room(entry, taken, *pause);
      }
      break;
    case RoomTaken::Why::kCancelled:
      job.stop_requested = true;
      entry.ended_by = taken.end;
      note(job, taken.end);
      return finish(entry, Phase::kStopped);
    case RoomTaken::Why::kFailed:
      break;
  }
  fail(entry, {.cause = taken.end, .advice = taken.advice, .last_lines = printed_lines(taken)});
  finish(entry, Phase::kFailed);
}

void Controller::wait_for_another_room(Entry& entry, const RoomTaken& taken,
                                       std::chrono::milliseconds delay) {
  Job& job = entry.job;
  job.reason = asking_reason(taken.end);
  for (std::string& line : printed_lines(taken)) {
    job.reason.details.emplace_back(job::Remark{std::move(line)});
  }
  if (!taken.advice.empty()) job.reason.details.emplace_back(job::Remark{taken.advice});
  job.may_start.reset();
  note(job, job.reason.what);
  change(entry);
  line_up_for_room(entry, delay);
}

}  // namespace muster::control
