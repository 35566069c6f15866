#include "control/allocation_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "control/allocation.h"
#include "control/retry.h"

namespace muster::control {

using base::Error;
using engine::AllocationGranted;
using engine::AllocationPending;
using engine::AllocationRefused;
using engine::AllocationRevoked;
using engine::AllocationStateChange;
using engine::GangId;
using job::Job;
using job::Phase;

namespace {

GangId present_gang(const Job& job) {
  return {job.id, job.attempt};
}

GangId next_gang(const Job& job) {
  return {job.id, job.attempt + 1};
}

/// A queued job may still name the nodes of its last attempt.
Job without_nodes(Job job) {
  for (job::Task& task : job.tasks) task.node.clear();
  return job;
}

std::vector<const job::Task*> all_tasks(const Job& job) {
  std::vector<const job::Task*> all;
  for (const job::Task& task : job.tasks) all.push_back(&task);
  return all;
}

std::string refusal_text(const Error& error) {
  std::string text = error.what;
  for (const base::Fault& fault : error.faults) {
    text += "; " + (fault.field.empty() ? "" : fault.field + ": ") + fault.what;
  }
  return text;
}

/// The lines that were printed on the node, indented below the cause.
std::vector<std::string> printed_lines(const AllocationRevoked& taken) {
  std::vector<std::string> lines;
  for (const std::string& line : taken.printed) lines.push_back("  " + line);
  return lines;
}

}  // namespace

AllocationQueue::AllocationQueue(base::EventLoop& loop, engine::Engine& engine, JobTable& jobs,
                                 Journal& journal, const NodeTable& nodes, SchedulerBook& book,
                                 Attempts& attempts, const LaunchPlanner& planner,
                                 std::function<void()> wake)
    : loop_(loop),
      engine_(engine),
      jobs_(jobs),
      journal_(journal),
      nodes_(nodes),
      book_(book),
      attempts_(attempts),
      planner_(planner),
      wake_(std::move(wake)) {
  engine_.set_allocation_listener(
      [this](const GangId& gang, const engine::AllocationNews& news) { take_news(gang, news); });
}

AllocationQueue::~AllocationQueue() {
  engine_.set_allocation_listener(nullptr);
}

// --- questions

/// Whether it can be requested at all. How much the cluster has is for the cluster to decide.
Result<void> AllocationQueue::check(const Job& job, uint64_t) const {
  MUSTER_CHECK(check_topology(job.spec, engine_.cluster_name()));
  return engine_.check_allocation_request(allocation_request(job, {}));
}

job::Fact AllocationQueue::asking_reason(std::optional<job::AllocationEnd> after) const {
  return job::RequestsAllocation{.cluster = engine_.cluster_name(), .after = std::move(after)};
}

schedule::Amounts AllocationQueue::requested(const Job& job) const {
  return requested_amounts(job);
}

void AllocationQueue::explain(const JobEntry& entry, job::Explanation& answer) const {
  const auto found = requests_.find(entry.sequence);
  if (found != requests_.end()) answer.constraint = found->second.constraint;
}

std::vector<const Job*> AllocationQueue::queue() const {
  std::vector<const Job*> jobs;
  for (const uint64_t sequence : jobs_.waiting()) jobs.push_back(&jobs_.at(sequence).job);
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job* left, const Job* right) {
    const auto rank = [](const Job& job) {
      return std::tuple(job.suspended, !job.may_start, job.may_start.value_or(base::Time{}));
    };
    return rank(*left) < rank(*right);
  });
  return jobs;
}

/// Shows the request. Only the cluster could predict when it is granted.
job::Forecast AllocationQueue::forecast(const Job& job, uint64_t, const job::Project&,
                                        const job::ProjectStatus& before) const {
  job::Forecast answer{.reason = job::ClusterDecides{.cluster = engine_.cluster_name(),
                                                     .tasks = static_cast<int>(job.tasks.size())},
                       .before = before};
  for (std::string& line : describe(allocation_request(job, nodes_.cordoned()))) {
    answer.reason.details.emplace_back(job::Remark{std::move(line)});
  }
  answer.after = answer.before;
  ++answer.after.waiting;
  add(answer.after.requested, requested_amounts(job));
  return answer;
}

// --- requests and releases

AllocationQueue::Request& AllocationQueue::begin_turn(const JobEntry& entry) {
  return requests_[entry.sequence] = {.turn = ++turns_};
}

void AllocationQueue::enqueue(JobEntry& entry, std::chrono::milliseconds delay) {
  const bool was_taken = request_of(entry).was_taken;
  Request& request = begin_turn(entry);
  if (delay <= std::chrono::milliseconds(0)) return request_once_committed(entry);
  // The cluster may grant an allocation again that it took back. Any other is not needed meanwhile.
  if (!was_taken && entry.job.attempt > 0) {
    journal_.once_committed(
        [this, gang = present_gang(entry.job)] { engine_.release_allocation(gang); });
  }
  request.not_before = book_.now() + delay;
  delayed_.insert(entry.sequence);
  wake_();
}

void AllocationQueue::requeue(JobEntry& entry, std::chrono::milliseconds delay) {
  book_.scheduler().ended(entry.job.id);
  if (entry.job.suspended) {
    release(entry);
  } else {
    enqueue(entry, delay);
  }
}

bool AllocationQueue::evicted(JobEntry& entry, EvictedGang) {
  requeue(entry, {});
  return false;
}

void AllocationQueue::ended(JobEntry& entry) {
  book_.scheduler().ended(entry.job.id);
  release(entry);
}

void AllocationQueue::restore(JobEntry& entry) {
  const bool waits = entry.job.phase == Phase::kQueued && !entry.job.suspended;
  if (waits) {
    request(entry);
  } else {
    release(entry);
  }
}

void AllocationQueue::restore_ended(const job::JobFacts& job) {
  release(std::string(job.id), job.attempt);
}

void AllocationQueue::plan() {
  std::optional<base::Time> next;
  for (const uint64_t sequence : std::exchange(delayed_, {})) {
    const auto found = requests_.find(sequence);
    if (found == requests_.end() || !found->second.not_before) continue;
    std::optional<base::Time>& not_before = found->second.not_before;
    if (*not_before <= book_.now()) {
      not_before.reset();
      request_once_committed(jobs_.at(sequence));
    } else {
      next = std::min(next.value_or(*not_before), *not_before);
      delayed_.insert(sequence);
    }
  }
  plan_timer_.reset();
  if (next) plan_timer_ = loop_.after(book_.delay_until(*next), wake_);
}

/// Unless the job has stopped to wait meanwhile, even if it waits again by then.
void AllocationQueue::request_once_committed(const JobEntry& entry) {
  journal_.once_committed([this, sequence = entry.sequence, turn = request_of(entry).turn] {
    const auto found = requests_.find(sequence);
    if (found != requests_.end() && found->second.turn == turn) request(jobs_.at(sequence));
  });
}

void AllocationQueue::request(JobEntry& entry) {
  const Job& job = entry.job;
  Request& request = request_of(entry);
  const bool waits =
      job.phase == Phase::kQueued && !job.suspended && attempts_.of(entry) == nullptr;
  if (!waits || request.is_pending || request.not_before) return;
  engine::AllocationRequest allocation = allocation_request(job, nodes_.cordoned());
  // A cluster refuses requests that name a node which was removed from it.
  if (!nodes_.all().empty()) {
    std::erase_if(allocation.avoided_nodes,
                  [&](const std::string& node) { return nodes_.find(node) == nullptr; });
  }
  if (engine_.runs_pods()) {
    const Job unplaced = without_nodes(job);
    auto images = planner_.images_of(unplaced, all_tasks(unplaced));
    if (!images) return refused(entry, images.error());
    allocation.images = *std::move(images);
  }
  request.is_pending = true;
  engine_.request_allocation(next_gang(job), std::move(allocation));
  // After the request: an allocation that the cluster took back and grants again belongs to the
  // next attempt by now.
  if (job.attempt > 0) engine_.release_allocation(present_gang(job));
}

/// For a job that neither runs nor waits for an allocation.
void AllocationQueue::release(const JobEntry& entry) {
  requests_.erase(entry.sequence);
  release(entry.job.id, entry.job.attempt);
}

void AllocationQueue::release(const std::string& id, int attempt) {
  journal_.once_committed([this, id, attempt] {
    if (attempt > 0) engine_.release_allocation({id, attempt});
    engine_.release_allocation({id, attempt + 1});
  });
}

/// The cluster's nodes may be reported after the jobs that run on them.
void AllocationQueue::nodes_added(const std::set<std::string>& nodes) {
  for (const auto& [sequence, attempt] : attempts_.all()) {
    const auto& tasks = attempt->job().tasks;
    const bool is_there = std::any_of(tasks.begin(), tasks.end(), [&](const job::Task& task) {
      return nodes.contains(task.node);
    });
    if (is_there) book_.replace(attempt->entry(), attempt->shape());
  }
}

// --- news

void AllocationQueue::take_news(const GangId& gang, const engine::AllocationNews& news) {
  JobEntry* const entry = jobs_.entry_with_id(gang.job_id);
  if (Attempt* const attempt = attempts_.of(gang)) {
    if (const auto* change = std::get_if<AllocationStateChange>(&news))
      attempt->set_allocation_state(change->state);
    if (const auto* taken = std::get_if<AllocationRevoked>(&news)) {
      request_of(*entry).was_taken = true;
      attempt->lose_allocation(*taken);
    }
    return;
  }
  // Tasks of an unreadable job may run there: the job keeps the allocation until its record is set
  // aside.
  if (entry != nullptr && entry->job.unreadable) return;
  const bool is_expected = entry != nullptr && requests_.contains(entry->sequence) &&
                           request_of(*entry).is_pending && gang == next_gang(entry->job);
  if (!is_expected) {
    const bool is_held = std::holds_alternative<AllocationGranted>(news) ||
                         std::holds_alternative<AllocationPending>(news);
    if (is_held) engine_.release_allocation(gang);
    return;
  }
  if (const auto* queued = std::get_if<AllocationPending>(&news)) {
    waits(*entry, *queued);
  } else if (const auto* given = std::get_if<AllocationGranted>(&news)) {
    granted(*entry, *given);
  } else if (const auto* refusal = std::get_if<AllocationRefused>(&news)) {
    refused(*entry, refusal->error);
  } else if (const auto* taken = std::get_if<AllocationRevoked>(&news)) {
    taken_before_granted(*entry, *taken);
  }
}

void AllocationQueue::waits(JobEntry& entry, const AllocationPending& news) {
  Job& job = entry.job;
  std::string& constraint = request_of(entry).constraint;
  const bool is_known =
      job.reason == news.reason && job.may_start == news.may_start && constraint == news.constraint;
  if (is_known) return;
  const bool has_same_word = !news.constraint.empty() && constraint == news.constraint;
  const bool is_same = has_same_word || is_same_wait(job.reason.what, news.reason.what);
  job.reason = news.reason;
  job.may_start = news.may_start;
  constraint = news.constraint;
  // Another estimate alone is announced, and not noted.
  if (is_same) return jobs_.announce(job);
  jobs_.note(job, job.reason.what);
  jobs_.change(entry);
}

void AllocationQueue::granted(JobEntry& entry, const AllocationGranted& allocation) {
  auto places = places_in(allocation, entry.job);
  if (!places) return refused(entry, places.error());
  begin_turn(entry);
  attempts_.place(entry, {.places = *std::move(places), .slurm_job = allocation.slurm_job});
}

void AllocationQueue::refused(JobEntry& entry, const Error& error) {
  set_failure(jobs_, entry.job,
              {.cause = job::Remark{refusal_text(error)}, .advice = error.advice});
  attempts_.finish(entry, Phase::kFailed);
}

/// No task of the attempt was started. The next attempt is requested instead of it.
void AllocationQueue::taken_before_granted(JobEntry& entry, const AllocationRevoked& taken) {
  Job& job = entry.job;
  ++job.attempt;
  request_of(entry).was_taken = true;
  switch (taken.why) {
    case AllocationRevoked::Why::kEvicted:
      return request_another(entry, taken, {});
    case AllocationRevoked::Why::kNodeLost:
      if (const auto pause = pause_before_another_start(entry.unanswered_starts)) {
        return request_another(entry, taken, *pause);
      }
      break;
    case AllocationRevoked::Why::kCancelled:
      job.stop_requested = true;
      entry.cancelled_by = job::widened<job::Fact>(taken.end);
      jobs_.note(job, *entry.cancelled_by);
      return attempts_.finish(entry, Phase::kStopped);
    case AllocationRevoked::Why::kFailed:
      break;
  }
  set_failure(jobs_, job,
              {.cause = job::widened<job::FailureCause>(taken.end),
               .advice = taken.advice,
               .last_lines = printed_lines(taken)});
  attempts_.finish(entry, Phase::kFailed);
}

void AllocationQueue::request_another(JobEntry& entry, const AllocationRevoked& taken,
                                      std::chrono::milliseconds delay) {
  Job& job = entry.job;
  job.reason = asking_reason(taken.end);
  for (std::string& line : printed_lines(taken)) {
    job.reason.details.emplace_back(job::Remark{std::move(line)});
  }
  if (!taken.advice.empty()) job.reason.details.emplace_back(job::Remark{taken.advice});
  job.may_start.reset();
  jobs_.note(job, job.reason.what);
  jobs_.change(entry);
  enqueue(entry, delay);
}

}  // namespace muster::control
