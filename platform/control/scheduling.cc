// Telling the scheduler what changes, and carrying out what it answers.
#include <algorithm>

#include "base/text.h"
#include "control/controller.h"
#include "control/live_gang.h"
#include "control/run.h"
#include "control/schedule_view.h"
#include "launch/elastic.h"

namespace muster::control {

using job::Job;
using job::Notice;
using job::Phase;
using schedule::TaskPlace;

namespace {

using Places = std::vector<std::optional<TaskPlace>>;

/// The places that are one, in order, as places of tasks: an elastic gang that holds the 1st and
/// 4th of its workers' places runs two workers, and they are called worker-0 and worker-1. Of the
/// other tasks none is ever missing.
Places closed_up(Places places, const Job& job) {
  std::erase_if(places, [](const auto& place) { return !place.has_value(); });
  const size_t missing = job.tasks.size() - std::min(places.size(), job.tasks.size());
  const auto behind =
      static_cast<size_t>(job.spec.parameter_servers) + static_cast<size_t>(job.spec.evaluators);
  const auto at = places.end() - static_cast<std::ptrdiff_t>(std::min(behind, places.size()));
  places.insert(at, missing, std::nullopt);
  return places;
}

int placed_workers(const Job& job) {
  return static_cast<int>(std::count_if(
      job.tasks.begin(), job.tasks.end(),
      [](const job::Task& task) { return task.role == job::Role::kWorker && holds_room(task); }));
}

/// Whether these places hold the least that the job starts with; seats as its spec numbers them.
bool are_enough(const Places& places, const Job& job) {
  int workers = 0;
  for (const job::Task& task : job::tasks_of(job.spec)) {
    const auto seat = static_cast<size_t>(task.seat);
    const bool has_place = seat < places.size() && places[seat];
    if (task.role == job::Role::kWorker) {
      workers += has_place;
    } else if (!has_place) {
      return false;
    }
  }
  return workers >= job.spec.scheduling.min_workers.value_or(job.spec.workers);
}

/// Each once, in order.
std::vector<std::string> where(const Job& job) {
  std::set<std::string> nodes;
  for (const job::Task& task : job.tasks) {
    if (!task.node.empty()) nodes.insert(task.node);
  }
  return {nodes.begin(), nodes.end()};
}

}  // namespace

/// Of a job that nobody has looked at yet.
job::Fact Controller::first_reason() const {
  return asks_a_cluster() ? asking_reason() : Notice{Notice::What::kWaitsForScheduler};
}

void Controller::wake() {
  if (std::exchange(woken_, true)) return;
  soon([this] {
    woken_ = false;
    schedule();
  });
}

/// Whether the scheduler is to know an elastic gang that runs as one of as many as were placed:
/// more could join it only by a restart, and nobody wants to be restarted for that.
bool Controller::knows_by_placed(const Entry& entry) const {
  const job::JobSpec& spec = entry.job.spec;
  if (entry.run == nullptr || !launch::is_elastic(spec)) return false;
  return !launch::resizes_live(spec) || !entry.run->can_grow;
}

schedule::Gang Controller::gang_of(const Entry& entry) const {
  schedule::Gang gang = to_schedule(
      entry.job, entry.sequence, pools_,
      knows_by_placed(entry) ? std::optional<int>(placed_workers(entry.job)) : std::nullopt);
  gang.submitted = forward_.of(gang.submitted);
  if (entry.run) {
    const std::vector<std::string>& unfit = entry.run->unfit;
    gang.excluded_nodes.insert(gang.excluded_nodes.end(), unfit.begin(), unfit.end());
  }
  return gang;
}

void Controller::schedule() {
  if (asks_a_cluster()) return ask_for_the_rested();
  // What an earlier server was evicting for frees room that this one has not reckoned with: it
  // takes nothing more from anybody until that is done.
  const unsigned actions = evictions_from_before_ > 0 ? schedule::kAllocate : schedule::kAllActions;
  const auto began = std::chrono::steady_clock::now();
  const schedule::Plan plan = scheduler_.plan(forward_.now(), actions);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  metrics_.cycle_seconds.add(took.count());
  for (const schedule::Eviction& eviction : plan.evictions) take_eviction(eviction);
  prepare_starts(plan);
  start_without_the_moved();
  // One that starts with some of its workers waits for the others, and that is no news of it.
  for (const schedule::Wait& wait : plan.waits) note_wait(wait);
  plan_again_at(plan.again_at);
  if (plan.starts.empty() && plan.evictions.empty()) return;
  // Committed first: a server that dies in between finds out what of it had come to be.
  [[maybe_unused]] const auto kept_for_later_if_it_fails = journal_.flush();
}

void Controller::note_wait(const schedule::Wait& wait) {
  Entry* const entry = by_id(wait.id);
  if (entry == nullptr || entry->run || job::is_final(entry->job.phase)) return;
  Job& job = entry->job;
  job.may_start = wait.verdict->may_start;
  const bool is_news = job.reason.what != wait.verdict->reason.what;
  job.reason = wait.verdict->reason;
  if (!is_news) return;
  note(job, job.reason.what);
  tell(job);
}

void Controller::prepare_starts(const schedule::Plan& plan) {
  // A gang comes in one piece for its minimum and one for each task beyond.
  std::vector<std::string> order;
  std::unordered_map<std::string, Places> places_of_gang;
  for (const schedule::Start& start : plan.starts) {
    Entry* const entry = by_id(start.id);
    if (entry == nullptr) continue;
    if (entry->run) {
      take_room(*entry, start);
      continue;
    }
    const auto [found, is_new] = places_of_gang.try_emplace(start.id);
    Places& places = found->second;
    if (is_new) {
      order.push_back(start.id);
      places = entry->kept;
      places.resize(std::max(places.size(), entry->job.tasks.size()));
    }
    for (size_t i = 0; i < start.tasks.size(); ++i) {
      places[static_cast<size_t>(start.tasks[i])] = start.places[i];
    }
  }
  for (const std::string& id : order) prepare(*by_id(id), std::move(places_of_gang.at(id)));
}

/// Those that kept some places wait for the new ones that the others were promised. Where a promise
/// was taken back they go on with what they have.
void Controller::start_without_the_moved() {
  const std::set<uint64_t> parted = parted_;
  for (const uint64_t sequence : parted) {
    Entry& entry = *entries_.at(sequence);
    const auto constraint = scheduler_.explain(entry.job.id, forward_.now()).constraint;
    if (constraint == schedule::Constraint::kReleasing) continue;
    const bool is_live = launch::resizes_live(entry.job.spec);
    is_live && !are_enough(entry.kept, entry.job) ? queue_anew(entry) : prepare(entry, entry.kept);
  }
}

/// A node may have gone or shrunk since these were given.
bool Controller::has_room_for(const Places& places) const {
  return std::all_of(places.begin(), places.end(), [&](const auto& place) {
    if (!place) return true;
    const engine::Node* const node = node_named(place->node);
    if (node == nullptr || is_silent(place->node)) return false;
    return std::all_of(place->devices.begin(), place->devices.end(),
                       [&](int device) { return device < node->gpus; });
  });
}

void Controller::prepare(Entry& entry, Places places) {
  if (!has_room_for(places)) {
    queue_anew(entry);
    return wake();
  }
  place(entry, std::move(places));
}

/// `slurm_job`: whose room that is; 0 where Slurm gave none.
void Controller::place(Entry& entry, Places places, uint64_t slurm_job) {
  Job& job = entry.job;
  const bool is_given = asks_a_cluster();
  const bool is_live = launch::resizes_live(job.spec) && !is_given;
  ++job.attempt;
  job.phase = Phase::kStarting;
  job.reason = starting_reason(job);
  job.may_start.reset();
  job.launch.reset();
  job.tasks = job::tasks_of(job.spec);
  if (!is_live) places = closed_up(std::move(places), job);
  for (size_t i = 0; i < places.size() && i < job.tasks.size(); ++i) {
    if (places[i]) put(job.tasks[i], *places[i]);
  }
  if (!is_live) close_up_seats(job);
  entry.run = std::make_unique<Run>();
  entry.run->can_grow = is_live;
  if (is_given) entry.run->cannot_grow = parts_.engine.cluster_name() + "'s room does not grow";
  entry.run->placed = parts_.clock.now();
  const bool had_kept = !entry.kept.empty();
  entry.kept.clear();
  entry.seeking = {.turn = entry.seeking.turn + 1};
  parted_.erase(entry.sequence);
  if (is_given || (!is_live && (launch::is_elastic(job.spec) || had_kept))) hold_as_placed(entry);
  job::Placed fact{.nodes = where(job), .slurm_job = slurm_job, .attempt = job.attempt};
  if (launch::is_elastic(job.spec)) fact.workers = workers_of(job, placed_workers(job));
  note(job, std::move(fact));
  change(entry);
  journal_.once_committed([this, id = job.id, attempt = job.attempt] {
    Entry* const placed = by_id(id);
    if (placed != nullptr && placed->run && placed->job.attempt == attempt) begin(*placed);
  });
}

/// Makes the scheduler's idea of the gang what runs of it, under the same numbers.
void Controller::hold_as_placed(Entry& entry) {
  const schedule::Gang gang = gang_of(entry);
  auto places = places_of(entry.job);
  places.resize(static_cast<size_t>(schedule::task_count(gang)));
  scheduler_.ended(entry.job.id);
  const base::Time now = forward_.now();
  scheduler_.adopt(gang, places, std::min(entry.job.started.value_or(now), now));
}

// --- evictions

void Controller::take_eviction(const schedule::Eviction& eviction) {
  Entry* const entry = by_id(eviction.id);
  if (entry == nullptr || entry->job.unreadable) return;
  if (!entry->run || job::is_final(entry->job.phase)) {
    // Of what waits for the rest of its places, none is left to keep.
    entry->kept.empty() ? scheduler_.released(eviction.id, eviction.tasks) : queue_anew(*entry);
    return wake();
  }
  if (shrink(*entry, eviction.tasks, eviction.why)) {
    ++metrics_.evictions;
    return;
  }
  Run& run = *entry->run;
  const bool moves = !eviction.moved.empty();
  // Where it is on its way out already, these go with the rest.
  run.moves = run.evicted.empty() ? moves : run.moves && moves;
  run.evicted.insert(run.evicted.end(), eviction.tasks.begin(), eviction.tasks.end());
  evict(*entry, eviction.why);
}

/// Ends the whole attempt: a program that is not made for it does not go on with some of its ranks
/// gone.
void Controller::evict(Entry& entry, const job::Eviction& why) {
  Job& job = entry.job;
  if (job.eviction) return;
  job.eviction = why;
  job.reason = job::Evicted{.why = why, .stage = job::Evicted::Stage::kBeingEnded};
  note(job, job::Evicted{.why = why});
  change(entry);
  journal_.once_committed([this, id = job.id, attempt = job.attempt] {
    Entry* const evicted = by_id(id);
    if (evicted == nullptr || !evicted->run || evicted->job.attempt != attempt) return;
    end_gang_gently(*evicted);
    finish_if_over(*evicted);
  });
}

/// All of an evicted attempt is gone.
void Controller::evicted(Entry& entry) {
  Job& job = entry.job;
  const bool was_known_by_placed = knows_by_placed(entry);
  const bool is_live = launch::resizes_live(job.spec);
  const std::unique_ptr<Run> run = std::move(entry.run);
  job::Eviction why = *std::exchange(job.eviction, std::nullopt);
  if (run->taken_up_evicted) --evictions_from_before_;
  ++metrics_.evictions;
  end_attempt(job);
  Places held = places_of(job);
  for (const auto& [seat, place] : run->given) {
    held.resize(std::max(held.size(), static_cast<size_t>(seat) + 1));
    held[static_cast<size_t>(seat)] = place;
  }
  ++job.restarts;
  job.phase = Phase::kQueued;
  job.failure.reset();
  job.started.reset();
  job.reason = job.suspended
                   ? suspended_reason(job)
                   : job::Evicted{.why = std::move(why), .stage = job::Evicted::Stage::kWaitsAgain};
  job.tasks = job::tasks_of(job.spec);

  for (const int seat : run->evicted) {
    if (static_cast<size_t>(seat) < held.size()) held[static_cast<size_t>(seat)].reset();
  }
  const bool all_go =
      run->goes_whole ||
      std::none_of(held.begin(), held.end(), [](const auto& place) { return place.has_value(); });
  // An elastic gang was known by as many tasks as it had: now it asks for all of them again.
  const bool asks_for_more = was_known_by_placed && (is_live || (all_go && !run->moves));
  const bool keeps_too_little = is_live && !all_go && !run->moves && !are_enough(held, job);
  if (job.suspended || run->goes_whole || asks_for_more || keeps_too_little || asks_a_cluster()) {
    queue_anew(entry);
  } else {
    scheduler_.released(job.id, run->evicted);
    if (!all_go) {
      entry.kept = std::move(held);
      parted_.insert(entry.sequence);
    }
  }
  note(job,
       Notice{job.suspended ? Notice::What::kSuspendedAndGone : Notice::What::kEvictedAndGone});
  change(entry);
  // What shrank starts again at once on what it keeps; what moves waits for its new places.
  if (!entry.kept.empty() && !run->moves) prepare(entry, entry.kept);
  wake();
}

/// Tells the scheduler from the beginning: the gang holds nothing, and waits unless it is
/// suspended.
void Controller::queue_anew(Entry& entry, std::chrono::milliseconds delay) {
  entry.kept.clear();
  parted_.erase(entry.sequence);
  scheduler_.ended(entry.job.id);
  if (!entry.job.suspended) return line_up(entry, delay);
  if (asks_a_cluster()) give_back_rooms(entry);
}

/// It waits from now on, and for `delay` whatever room there is.
void Controller::line_up(Entry& entry, std::chrono::milliseconds delay) {
  if (asks_a_cluster()) return line_up_for_room(entry, delay);
  scheduler_.submit(gang_of(entry));
  if (delay > std::chrono::milliseconds(0)) {
    scheduler_.requeue(entry.job.id, forward_.now() + delay);
  }
}

/// After a failure that is not final.
void Controller::wait_again(Entry& entry, const job::Fact& why, std::chrono::milliseconds delay) {
  Job& job = entry.job;
  const std::unique_ptr<Run> run = std::move(entry.run);
  end_attempt(job);
  job.phase = Phase::kQueued;
  job.reason = why;
  job.failure.reset();
  job.started.reset();
  job.tasks = job::tasks_of(job.spec);
  note(job, why);
  job.eviction.reset();
  // Told anew: the nodes it avoids have changed, or the number of its tasks.
  queue_anew(entry, delay);
  if (job.suspended) job.reason = suspended_reason(job);
  change(entry);
  wake();
}

void Controller::plan_again_at(std::optional<base::Time> time) {
  plan_timer_.reset();
  if (!time) return;
  // A clock that was set back must not put the scheduler to sleep for as long.
  constexpr std::chrono::nanoseconds kLongest = std::chrono::minutes(1);
  const auto delay = std::clamp<std::chrono::nanoseconds>(*time - forward_.now(),
                                                          std::chrono::nanoseconds(0), kLongest);
  plan_timer_ = parts_.loop.after(delay, [this] { wake(); });
}

}  // namespace muster::control
