// What a cluster says of a job that has room there, and what becomes of the job when the cluster
// takes its room away: as elsewhere of one that is evicted, whose node is lost, that is stopped or
// fails by itself.
#include <algorithm>
#include <sstream>

#include "control/controller.h"
#include "control/failure.h"
#include "control/room_wish.h"
#include "control/run.h"

namespace muster::control {

using engine::RoomSays;
using engine::RoomTaken;
using job::Job;
using job::Phase;
using job::Task;
using job::TaskPhase;

namespace {

/// Its first line, with the node that was lost where that does not name it.
std::string first_line_of(const RoomTaken& taken) {
  const std::string what = taken.what.substr(0, taken.what.find('\n'));
  const bool names_it = taken.node.empty() || what.find(taken.node) != std::string::npos;
  return names_it ? what : what + " (node " + taken.node + ")";
}

/// The lines behind it: what was printed on the node.
std::vector<std::string> printed_lines(const RoomTaken& taken) {
  std::vector<std::string> lines;
  std::istringstream text(taken.what);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  if (!lines.empty()) lines.erase(lines.begin());
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
  culprit.exit = {.lost = true, .error = taken.what};
  return culprit;
}

}  // namespace

void Controller::cluster_says(Entry& entry, const RoomSays& says) {
  Job& job = entry.job;
  Run& run = *entry.run;
  const std::string before = std::exchange(run.room_says, says.text);
  if (before == says.text) return;
  if (job.phase == Phase::kRunning && !run.ending && !job.eviction && !job.stop_requested) {
    job.reason = running_reason(job);
  }
  if (says.text.empty()) {
    note(job, "no more: " + before);
  } else if (!says_the_same(before, says.text)) {
    note(job, says.text);
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
  const std::string cause = first_line_of(taken);
  switch (taken.why) {
    case RoomTaken::Why::kEvicted:
      run.goes_whole = true;
      job.eviction = cause;
      job.reason = "is being ended: " + cause;
      return note(job, cause);
    case RoomTaken::Why::kCancelled:
      job.stop_requested = true;
      entry.ended_by = cause;
      job.reason = cause;
      return note(job, cause);
    case RoomTaken::Why::kNodeLost:
      if (!was_begun(job)) {
        if (const auto pause = pause_before_another_try(entry)) {
          run.requeue = cause + "; " + asking_reason();
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
               .cause = cause,
               .advice = taken.advice,
               .last_lines = std::move(lines)});
}

/// Nothing of the attempt has been started, and it is not asked for any more: the next one is.
void Controller::room_taken_before_it_was_given(Entry& entry, const RoomTaken& taken) {
  Job& job = entry.job;
  ++job.attempt;
  entry.seeking.was_taken = true;
  const std::string cause = first_line_of(taken);
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
      entry.ended_by = cause;
      note(job, cause);
      return finish(entry, Phase::kStopped);
    case RoomTaken::Why::kFailed:
      break;
  }
  fail(entry, {.cause = cause, .advice = taken.advice, .last_lines = printed_lines(taken)});
  finish(entry, Phase::kFailed);
}

void Controller::wait_for_another_room(Entry& entry, const RoomTaken& taken,
                                       std::chrono::milliseconds delay) {
  Job& job = entry.job;
  job.reason = first_line_of(taken) + "; " + asking_reason();
  job.reason_details = printed_lines(taken);
  if (!taken.advice.empty()) job.reason_details.push_back(taken.advice);
  job.may_start.reset();
  note(job, job.reason);
  change(entry);
  line_up_for_room(entry, delay);
}

}  // namespace muster::control
