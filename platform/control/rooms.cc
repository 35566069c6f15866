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
#include "control/room_wish.h"
#include "control/run.h"
#include "control/schedule_view.h"

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

namespace {

Gang next_gang(const Job& job) {
  return {job.id, job.attempt + 1};
}

std::string refusal_text(const Error& error) {
  std::string text = error.what;
  for (const base::Fault& fault : error.faults) {
    text += "; " + (fault.field.empty() ? "" : fault.field + ": ") + fault.what;
  }
  return text;
}

}  // namespace

// --- asking, and giving back

bool Controller::asks_a_cluster() const {
  return parts_.engine.asks_for_room();
}

/// Kept to what can be asked for at all; how much the cluster has is its own to say.
Result<void> Controller::check_wish(const Job& job) const {
  MUSTER_CHECK(check_places_wished(job.spec, parts_.engine.cluster_name()));
  return parts_.engine.check_room(wish_of(job, {}));
}

/// Its next attempt is asked for after `delay`.
void Controller::line_up_for_room(Entry& entry, std::chrono::milliseconds delay) {
  Seeking& seeking = entry.seeking;
  const bool was_taken = seeking.was_taken;
  seeking = {.turn = seeking.turn + 1};
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

/// Unless it was made to give up its place meanwhile: that comes first, also where it wants one
/// again.
void Controller::ask_once_committed(Entry& entry) {
  journal_.once_committed([this, id = entry.job.id, turn = entry.seeking.turn] {
    Entry* const waiting = by_id(id);
    if (waiting != nullptr && waiting->seeking.turn == turn) ask_for_room(*waiting);
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
  entry.seeking = {.turn = entry.seeking.turn + 1};
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
  // Its tasks may run there: they keep the room until the record is set aside.
  if (entry != nullptr && entry->job.unreadable) return;
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
  const bool is_the_same = job.reason == waits.reason && job.may_start == waits.may_start &&
                           entry.seeking.constraint == waits.constraint;
  if (is_the_same) return;
  const bool has_the_same_word =
      !waits.constraint.empty() && entry.seeking.constraint == waits.constraint;
  const bool is_of_a_kind = has_the_same_word || are_alike(job.reason.what, waits.reason.what);
  job.reason = waits.reason;
  job.may_start = waits.may_start;
  entry.seeking.constraint = waits.constraint;
  // Another estimate is shown, and that is all.
  if (is_of_a_kind) return tell(job);
  note(job, job.reason.what);
  change(entry);
}

void Controller::room_given(Entry& entry, const RoomGiven& given) {
  auto places = places_in(given, entry.job);
  if (!places) return room_refused(entry, places.error());
  place(entry, *std::move(places), given.slurm_job);
}

void Controller::room_refused(Entry& entry, const Error& error) {
  fail(entry, {.cause = job::Remark{refusal_text(error)}, .advice = error.advice});
  finish(entry, Phase::kFailed);
}

job::Fact Controller::asking_reason(std::optional<job::SlurmEnded> after) const {
  return job::AsksForRoom{.cluster = parts_.engine.cluster_name(), .after = std::move(after)};
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
  job::Forecast answer{.reason = job::ClusterDecides{.cluster = parts_.engine.cluster_name(),
                                                     .tasks = static_cast<int>(job.tasks.size())},
                       .before = status_of(*project, count_jobs())};
  for (std::string& line : lines_of(wish_of(job, cordoned_))) {
    answer.reason.details.emplace_back(job::Remark{std::move(line)});
  }
  answer.after = answer.before;
  ++answer.after.waiting;
  add(answer.after.requested, amounts_of(job));
  return answer;
}

}  // namespace muster::control
