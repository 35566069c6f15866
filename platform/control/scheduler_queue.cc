#include "control/scheduler_queue.h"

#include <algorithm>
#include <unordered_map>

#include "control/gang_tasks.h"
#include "launch/elastic.h"
#include "words/sentence.h"
#include "words/sight.h"

namespace muster::control {

using base::Error;
using job::Job;
using job::Notice;
using job::Phase;
using schedule::TaskPlace;

namespace {

/// Whether these places, in seats as the spec numbers them, are enough for the job to start.
bool are_enough(const SeatPlaces& places, const Job& job) {
  int workers = 0;
  for (const job::Task& task : job::tasks_of(job.spec)) {
    const auto seat = static_cast<size_t>(task.seat);
    const bool has_place = seat < places.size() && places[seat];
    if (task.role == job::TaskRole::kWorker) {
      workers += has_place;
    } else if (!has_place) {
      return false;
    }
  }
  return workers >= least_workers(job.spec);
}

}  // namespace

SchedulerQueue::SchedulerQueue(base::EventLoop& loop, JobTable& jobs, Journal& journal,
                               const NodeTable& nodes, SchedulerBook& book, Attempts& attempts,
                               Metrics& metrics, std::function<void()> wake)
    : loop_(loop),
      jobs_(jobs),
      journal_(journal),
      nodes_(nodes),
      book_(book),
      attempts_(attempts),
      metrics_(metrics),
      wake_(std::move(wake)) {}

// --- questions

Result<void> SchedulerQueue::check(const Job& job, uint64_t sequence) const {
  // Before the first node is reported, any gang may fit.
  if (nodes_.all().empty()) return {};
  const auto never = book_.scheduler().refuses(book_.gang_of(job, sequence));
  if (!never) return {};
  // This text is for a reader who sees only the job's own project. For a caller who sees more, the
  // server builds another text from the detail.
  Error error = words::refusal(
      {job.spec.name, words::seen_by(words::sight_of_project(job.spec.project), never->reason)});
  error.detail = std::make_shared<job::NeverStarts>(job.spec.name, never->reason);
  return error;
}

job::Fact SchedulerQueue::first_reason() const {
  return Notice{Notice::What::kWaitsForScheduler};
}

void SchedulerQueue::explain(const JobEntry& entry, job::Explanation& answer) const {
  schedule::WaitVerdict verdict = book_.scheduler().explain(entry.job.id, book_.now());
  if (verdict.constraint != schedule::Constraint::kNone) {
    answer.constraint = schedule::to_string(verdict.constraint);
    answer.reason = std::move(verdict.reason);
    answer.may_start = verdict.may_start;
  }
  if (const auto before = book_.scheduler().place_in_queue(entry.job.id)) {
    answer.position = static_cast<int>(*before) + 1;
  }
}

std::vector<const Job*> SchedulerQueue::queue() const {
  std::vector<const Job*> jobs;
  std::set<uint64_t> listed;
  for (const std::string& id : book_.scheduler().queue()) {
    const JobEntry* const entry = jobs_.entry_with_id(id);
    if (entry == nullptr || entry->job.phase != Phase::kQueued) continue;
    jobs.push_back(&entry->job);
    listed.insert(entry->sequence);
  }
  for (const uint64_t sequence : jobs_.waiting()) {
    if (!listed.contains(sequence)) jobs.push_back(&jobs_.at(sequence).job);
  }
  return jobs;
}

job::Forecast SchedulerQueue::forecast(const Job& job, uint64_t sequence,
                                       const job::Project& project,
                                       const job::ProjectStatus& before) const {
  const schedule::Forecast seen =
      book_.scheduler().forecast(book_.gang_of(job, sequence), book_.now());
  job::Forecast answer{.starts_now = !seen.start.empty(),
                       .reason = seen.verdict.reason,
                       .may_start = seen.verdict.may_start,
                       .before = before,
                       .after = status_of(project, seen.project_then)};
  answer.after.running = before.running + (answer.starts_now ? 1 : 0);
  answer.after.waiting = before.waiting + (answer.starts_now ? 0 : 1);
  for (const schedule::PlannedStart& start : seen.start) {
    for (size_t i = 0; i < start.tasks.size(); ++i) {
      const TaskPlace& place = start.places[i];
      answer.placing.push_back({.task = job.tasks[static_cast<size_t>(start.tasks[i])].name,
                                .node = place.node,
                                .devices = place.devices,
                                .gpu_share_milli = place.share_milli});
    }
  }
  for (const schedule::Eviction& eviction : seen.evictions) {
    job::JobRef ref{.id = eviction.id};
    if (const Job* const victim = jobs_.with_id(eviction.id)) {
      ref.name = victim->spec.name;
      ref.project = victim->spec.project;
    }
    answer.evictions.push_back({.job = std::move(ref), .why = eviction.why});
  }
  return answer;
}

// --- plans

void SchedulerQueue::plan() {
  // After a restart, jobs are recovered before a cluster reports the nodes on which they run. Until
  // then the scheduler does not have the resources that they hold.
  if (nodes_.all().empty() && !attempts_.all().empty()) return;
  const auto began = std::chrono::steady_clock::now();
  const schedule::Plan plan = book_.scheduler().plan(book_.now());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  metrics_.cycle_seconds.add(took.count());
  for (const schedule::Eviction& eviction : plan.evictions) carry_out(eviction);
  carry_out_starts(plan);
  start_partly_evicted();
  for (const schedule::WaitingGang& wait : plan.waits) note_wait(wait);
  plan_timer_.reset();
  if (plan.again_at) plan_timer_ = loop_.after(book_.delay_until(*plan.again_at), wake_);
  if (plan.starts.empty() && plan.evictions.empty()) return;
  // Committed before it is carried out: the next server finds it after a crash.
  [[maybe_unused]] const auto kept_for_later_if_it_fails = journal_.flush();
}

void SchedulerQueue::note_wait(const schedule::WaitingGang& wait) {
  JobEntry* const entry = jobs_.entry_with_id(wait.id);
  // An elastic gang that runs with some of its workers waits for the others; that is not shown.
  if (entry == nullptr || attempts_.of(*entry) || job::is_final(entry->job.phase)) return;
  Job& job = entry->job;
  job.may_start = wait.verdict->may_start;
  job::Reason reason = wait.verdict->reason;
  if (auto* const over = std::get_if<job::OverCapacity>(&reason.what)) over->job = job.spec.name;
  const bool is_news = job.reason.what != reason.what;
  job.reason = std::move(reason);
  if (!is_news) return;
  jobs_.note(job, job.reason.what);
  jobs_.announce(job);
}

void SchedulerQueue::carry_out_starts(const schedule::Plan& plan) {
  // A plan starts a gang in parts: one for its minimum and one for each task beyond.
  std::vector<std::string> order;
  std::unordered_map<std::string, SeatPlaces> places_of_gang;
  for (const schedule::PlannedStart& start : plan.starts) {
    JobEntry* const entry = jobs_.entry_with_id(start.id);
    if (entry == nullptr) continue;
    if (Attempt* const attempt = attempts_.of(*entry)) {
      attempt->offer(start);
      continue;
    }
    const auto [found, is_new] = places_of_gang.try_emplace(start.id);
    SeatPlaces& places = found->second;
    if (is_new) {
      order.push_back(start.id);
      if (const auto kept = kept_.find(entry->sequence); kept != kept_.end()) places = kept->second;
      places.resize(std::max(places.size(), entry->job.tasks.size()));
    }
    for (size_t i = 0; i < start.tasks.size(); ++i) {
      places[static_cast<size_t>(start.tasks[i])] = start.places[i];
    }
  }
  for (const std::string& id : order) {
    start(*jobs_.entry_with_id(id), std::move(places_of_gang.at(id)));
  }
}

/// Unless a node has gone or has shrunk since the places were planned.
void SchedulerQueue::start(JobEntry& entry, SeatPlaces places) {
  if (!book_.still_has(places)) {
    requeue(entry, {});
    return wake_();
  }
  const bool kept_some = kept_.erase(entry.sequence) > 0;
  attempts_.place(entry, {.places = std::move(places), .kept_some = kept_some});
}

/// Partly evicted gangs wait for the places promised to their evicted tasks. If the scheduler has
/// withdrawn the promise, they start on the places that they kept.
void SchedulerQueue::start_partly_evicted() {
  std::vector<uint64_t> sequences;
  for (const auto& [sequence, places] : kept_) sequences.push_back(sequence);
  for (const uint64_t sequence : sequences) {
    JobEntry& entry = jobs_.at(sequence);
    const auto constraint = book_.scheduler().explain(entry.job.id, book_.now()).constraint;
    if (constraint == schedule::Constraint::kReleasing) continue;
    const bool is_live = launch::resizes_live(entry.job.spec);
    if (is_live && !are_enough(kept_.at(sequence), entry.job)) {
      requeue(entry, {});
    } else {
      start_on_kept(entry);
    }
  }
}

void SchedulerQueue::start_on_kept(JobEntry& entry) {
  start(entry, SeatPlaces(kept_.at(entry.sequence)));
}

void SchedulerQueue::carry_out(const schedule::Eviction& eviction) {
  JobEntry* const entry = jobs_.entry_with_id(eviction.id);
  if (entry == nullptr || entry->job.unreadable) return;
  Attempt* const attempt = attempts_.of(*entry);
  if (attempt == nullptr || job::is_final(entry->job.phase)) {
    // A gang that waits for the rest of its places releases the places that it kept.
    if (kept_.contains(entry->sequence)) {
      requeue(*entry, {});
    } else {
      book_.scheduler().released(eviction.id, eviction.tasks);
    }
    return wake_();
  }
  if (attempt->shrink(eviction.tasks, eviction.why)) {
    ++metrics_.evictions;
    return;
  }
  attempt->evict_seats(eviction.tasks, !eviction.moved.empty(), eviction.why);
}

// --- changes

void SchedulerQueue::enqueue(JobEntry& entry, std::chrono::milliseconds delay) {
  book_.scheduler().submit(book_.gang_of(entry));
  if (delay > std::chrono::milliseconds(0)) {
    book_.scheduler().requeue(entry.job.id, book_.now() + delay);
  }
}

void SchedulerQueue::requeue(JobEntry& entry, std::chrono::milliseconds delay) {
  if (entry.job.suspended) return ended(entry);
  kept_.erase(entry.sequence);
  enqueue(entry, delay);
}

bool SchedulerQueue::evicted(JobEntry& entry, EvictedGang gang) {
  for (const int seat : gang.evicted) {
    if (static_cast<size_t>(seat) < gang.places.size()) {
      gang.places[static_cast<size_t>(seat)].reset();
    }
  }
  const Job& job = entry.job;
  const bool is_live = launch::resizes_live(job.spec);
  const bool all_go =
      gang.is_evicted_whole || std::none_of(gang.places.begin(), gang.places.end(),
                                            [](const auto& place) { return place.has_value(); });
  // The scheduler knew it by the workers that were placed: now it waits for all of them again.
  const bool asks_for_more = gang.known_by_placed && (is_live || (all_go && !gang.moves));
  const bool keeps_too_little = is_live && !all_go && !gang.moves && !are_enough(gang.places, job);
  if (job.suspended || gang.is_evicted_whole || asks_for_more || keeps_too_little) {
    requeue(entry, {});
    return false;
  }
  book_.scheduler().released(job.id, gang.evicted);
  if (all_go) return false;
  kept_[entry.sequence] = std::move(gang.places);
  // A gang that shrank starts again at once; a gang that moves waits for its new places.
  return !gang.moves;
}

void SchedulerQueue::ended(JobEntry& entry) {
  kept_.erase(entry.sequence);
  book_.scheduler().ended(entry.job.id);
}

void SchedulerQueue::restore(JobEntry& entry) {
  if (entry.job.phase == Phase::kQueued && !entry.job.suspended) {
    book_.scheduler().submit(book_.gang_of(entry));
  }
}

/// The jobs that run on these nodes were recovered before the nodes were reported.
void SchedulerQueue::nodes_added(const std::set<std::string>& nodes) {
  for (const auto& [sequence, attempt] : attempts_.all()) {
    const auto& tasks = attempt->job().tasks;
    const bool is_there = std::any_of(tasks.begin(), tasks.end(), [&](const job::Task& task) {
      return task.phase != job::TaskPhase::kEnded && nodes.contains(task.node);
    });
    if (is_there) book_.adopt(attempt->entry(), attempt->shape());
  }
}

void SchedulerQueue::pools_changed() {
  // A waiting job that names no pool may use any present pool.
  for (const uint64_t sequence : jobs_.waiting()) {
    const Job& job = jobs_.at(sequence).job;
    const bool takes_any = job.spec.scheduling.node_pools.empty();
    if (takes_any) book_.scheduler().set_pools(job.id, nodes_.pools());
  }
}

void SchedulerQueue::release_node(const std::string& node) {
  std::vector<uint64_t> affected;
  for (const auto& [sequence, places] : kept_) {
    const bool is_there = std::any_of(places.begin(), places.end(), [&](const auto& place) {
      return place && place->node == node;
    });
    if (is_there) affected.push_back(sequence);
  }
  for (const uint64_t sequence : affected) requeue(jobs_.at(sequence), {});
}

}  // namespace muster::control
