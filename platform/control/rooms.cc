// Jobs of an engine that asks a cluster for room: what the scheduler does elsewhere is the
// cluster's to do, and it is not told here of those that wait. It knows of what runs alone, for
// what is said of nodes and projects.
//
// A job that waits has asked for room for its next attempt, and for nothing else; one that runs has
// the room of this attempt. Both are asked for and given back only after it is on disk that the job
// wants it, or no more: a server that dies in between finds a job that asks again for the same
// attempt, and the engine takes up what it had asked for. News of any other attempt are late.
#include <algorithm>
#include <tuple>

#include "control/controller.h"
#include "control/failure.h"
#include "control/room_wish.h"
#include "control/run.h"
#include "control/schedule_view.h"
#include "schedule/amount_text.h"

namespace muster::control {

using base::Error;
using engine::Gang;
using engine::RoomGiven;
using engine::RoomRefused;
using engine::RoomSays;
using engine::RoomTaken;
using engine::RoomWaits;
using job::Job;
using job::Phase;
using job::Task;
using job::TaskPhase;

namespace {

Gang next_gang(const Job& job) {
  return {job.id, job.attempt + 1};
}

std::string text_of(const Error& error) {
  std::string text = error.what;
  for (const base::Fault& fault : error.faults) {
    text += "; " + (fault.field.empty() ? "" : fault.field + ": ") + fault.what;
  }
  return text;
}

/// With the node that was lost, where its words do not name it.
std::string cause_of(const RoomTaken& taken) {
  const bool names_it = taken.node.empty() || taken.what.find(taken.node) != std::string::npos;
  return names_it ? taken.what : taken.what + " (node " + taken.node + ")";
}

bool was_begun(const Job& job) {
  return std::any_of(job.tasks.begin(), job.tasks.end(),
                     [](const Task& task) { return task.started.has_value(); });
}

/// Whom the loss of the room is put down to: who was on the node that failed, else who decides.
Task culprit_of(const Job& job, const RoomTaken& taken) {
  const auto there = std::find_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return !taken.node.empty() && task.node == taken.node;
  });
  Task culprit = there == job.tasks.end() ? job::deciding_task(job) : *there;
  culprit.exit = {.lost = true, .error = taken.what};
  return culprit;
}

}  // namespace

// --- asking, and giving back

bool Controller::asks_a_cluster() const {
  return parts_.engine.asks_for_room();
}

/// Its next attempt is asked for after `delay`.
void Controller::line_up_for_room(Entry& entry, std::chrono::milliseconds delay) {
  Seeking& seeking = entry.seeking;
  const bool was_taken = seeking.was_taken;
  seeking = {};
  if (delay <= std::chrono::milliseconds(0)) return ask_once_committed(entry);
  // What the cluster took may be what it gives again; any other room is held for nothing.
  if (!was_taken && entry.job.attempt > 0) {
    journal_.once_committed(
        [this, gang = engine_gang(entry.job)] { parts_.engine.give_back_room(gang); });
  }
  seeking.rests_until = forward_.now() + delay;
  resting_.insert(entry.sequence);
  wake();
}

/// What the scheduler's turn is where there is nothing for it to plan.
void Controller::ask_for_the_rested() {
  std::optional<base::Time> next;
  const std::set<uint64_t> resting = std::exchange(resting_, {});
  for (const uint64_t sequence : resting) {
    const auto found = entries_.find(sequence);
    if (found == entries_.end()) continue;
    std::optional<base::Time>& until = found->second->seeking.rests_until;
    if (!until) continue;
    if (*until <= forward_.now()) {
      until.reset();
      ask_once_committed(*found->second);
    } else {
      next = std::min(next.value_or(*until), *until);
      resting_.insert(sequence);
    }
  }
  plan_again_at(next);
}

void Controller::ask_once_committed(Entry& entry) {
  journal_.once_committed([this, id = entry.job.id] {
    if (Entry* const waiting = by_id(id)) ask_for_room(*waiting);
  });
}

void Controller::ask_for_room(Entry& entry) {
  const Job& job = entry.job;
  Seeking& seeking = entry.seeking;
  const bool waits = job.phase == Phase::kQueued && !job.suspended && !entry.run;
  if (!waits || seeking.asked || seeking.rests_until) return;
  seeking.asked = true;
  parts_.engine.ask_for_room(next_gang(job), wish_of(job, cordoned_));
  // After that: what the cluster had taken away to give it again is the next attempt's by now.
  if (job.attempt > 0) parts_.engine.give_back_room(engine_gang(job));
}

/// Of a job that neither runs nor waits for room any more.
void Controller::give_back_rooms(Entry& entry) {
  entry.seeking = {};
  journal_.once_committed([this, last = engine_gang(entry.job), next = next_gang(entry.job)] {
    if (last.attempt > 0) parts_.engine.give_back_room(last);
    parts_.engine.give_back_room(next);
  });
}

/// What an earlier server had asked for it, or had not come to give back.
void Controller::take_up_room(Entry& entry) {
  const bool waits = entry.job.phase == Phase::kQueued && !entry.job.suspended;
  waits ? ask_for_room(entry) : give_back_rooms(entry);
}

// --- news of a job that waits

void Controller::hear_of_room(const Gang& gang, const engine::RoomNews& news) {
  Entry* const entry = by_id(gang.job_id);
  if (run_of(gang.job_id, gang.attempt) != nullptr) {
    if (const auto* says = std::get_if<RoomSays>(&news)) cluster_says(*entry, *says);
    if (const auto* taken = std::get_if<RoomTaken>(&news)) room_taken(*entry, *taken);
    return;
  }
  if (entry == nullptr || !entry->seeking.asked || gang != next_gang(entry->job)) {
    const bool has_some =
        std::holds_alternative<RoomGiven>(news) || std::holds_alternative<RoomWaits>(news);
    if (has_some) parts_.engine.give_back_room(gang);
    return;
  }
  if (const auto* waits = std::get_if<RoomWaits>(&news)) {
    room_waits(*entry, *waits);
  } else if (const auto* given = std::get_if<RoomGiven>(&news)) {
    room_given(*entry, *given);
  } else if (const auto* refused = std::get_if<RoomRefused>(&news)) {
    room_refused(*entry, refused->error);
  } else if (const auto* taken = std::get_if<RoomTaken>(&news)) {
    room_taken_before_it_was_given(*entry, *taken);
  }
}

void Controller::room_waits(Entry& entry, const RoomWaits& waits) {
  Job& job = entry.job;
  const bool is_the_same = job.reason == waits.reason && job.reason_details == waits.details &&
                           job.may_start == waits.may_start &&
                           entry.seeking.constraint == waits.constraint;
  if (is_the_same) return;
  const bool is_of_a_kind = says_the_same(job.reason, waits.reason);
  job.reason = waits.reason;
  job.reason_details = waits.details;
  job.may_start = waits.may_start;
  entry.seeking.constraint = waits.constraint;
  // Another estimate is shown, and that is all.
  if (is_of_a_kind) return tell(job);
  note(job, job.reason);
  change(entry);
}

void Controller::room_given(Entry& entry, const RoomGiven& given) {
  auto places = places_in(given, entry.job);
  if (!places) return room_refused(entry, places.error());
  place(entry, *std::move(places), given.text);
}

void Controller::room_refused(Entry& entry, const Error& error) {
  fail(entry, {.cause = text_of(error), .advice = error.advice});
  finish(entry, Phase::kFailed);
}

/// Nothing of the attempt has been started, and it is not asked for any more: the next one is.
void Controller::room_taken_before_it_was_given(Entry& entry, const RoomTaken& taken) {
  Job& job = entry.job;
  ++job.attempt;
  entry.seeking.was_taken = true;
  const std::string cause = cause_of(taken);
  switch (taken.why) {
    case RoomTaken::Why::kEvicted:
      return wait_for_another_room(entry, cause, {});
    case RoomTaken::Why::kNodeLost:
      if (const auto pause = pause_before_another_try(entry)) {
        return wait_for_another_room(entry, cause, *pause);
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
  fail(entry, {.cause = cause, .advice = taken.advice});
  finish(entry, Phase::kFailed);
}

void Controller::wait_for_another_room(Entry& entry, const std::string& why,
                                       std::chrono::milliseconds delay) {
  Job& job = entry.job;
  job.reason = why + "; " + asking_reason();
  job.reason_details.clear();
  job.may_start.reset();
  note(job, job.reason);
  change(entry);
  line_up_for_room(entry, delay);
}

std::string Controller::asking_reason() const {
  return "asks " + parts_.engine.cluster_name() + " for room";
}

// --- news of a job that has room

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
  const std::string cause = cause_of(taken);
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
  run.culprit = culprit_of(job, taken);
  run.culprit_lines = last_lines(parts_.engine, engine_gang(job), *run.culprit);
  fail(entry, {.task = run.culprit->name,
               .cause = cause,
               .advice = taken.advice,
               .last_lines = run.culprit_lines});
}

// --- questions

/// By when they may start, as far as the cluster says it; then in the order of their submission.
std::vector<const Job*> Controller::queue_at_the_cluster() const {
  std::vector<const Job*> jobs;
  for (const uint64_t sequence : waiting_) jobs.push_back(&entries_.at(sequence)->job);
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job* left, const Job* right) {
    const auto rank = [](const Job& job) {
      return std::tuple(job.suspended, !job.may_start, job.may_start.value_or(base::Time{}));
    };
    return rank(*left) < rank(*right);
  });
  return jobs;
}

/// What would be asked for; what becomes of it, nobody but the cluster knows.
Result<job::Forecast> Controller::forecast_at_the_cluster(const Job& job) const {
  MUSTER_TRY(const job::Project* const project, projects_.find(job.spec.project));
  const std::string tasks = schedule::count_text(static_cast<int64_t>(job.tasks.size()), "task");
  job::Forecast answer{.reason = parts_.engine.cluster_name() +
                                 " decides when it starts; it would be asked for room for " + tasks,
                       .details = lines_of(wish_of(job, cordoned_)),
                       .before = status_of(*project, count_jobs())};
  answer.after = answer.before;
  ++answer.after.waiting;
  add(answer.after.requested, amounts_of(job));
  return answer;
}

}  // namespace muster::control
