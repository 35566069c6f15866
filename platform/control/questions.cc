// What people ask of those that wait: why, in which order, and what would become of one more.
#include <algorithm>

#include "control/controller.h"
#include "control/schedule_view.h"

namespace muster::control {

using job::Job;
using job::Phase;
using schedule::TaskPlace;

/// The plan tells a reason when it changes; when room is expected is worked out for those who ask.
schedule::Constraint Controller::refresh_reason(Job& job) const {
  schedule::Verdict verdict = scheduler_.explain(job.id, forward_.now());
  if (verdict.constraint == schedule::Constraint::kNone) return verdict.constraint;
  job.reason = std::move(verdict.reason);
  job.may_start = verdict.may_start;
  return verdict.constraint;
}

Result<job::Explanation> Controller::explain(const std::string& name) const {
  MUSTER_TRY(const Entry* const entry, entry_of(name));
  Job job = entry->job;
  job::Explanation answer{.name = job.spec.name, .phase = job.phase};
  if (job.phase == Phase::kQueued && !job.suspended) {
    const schedule::Constraint constraint = refresh_reason(job);
    if (constraint != schedule::Constraint::kNone) {
      answer.constraint = schedule::to_string(constraint);
    } else {
      answer.constraint = entry->seeking.constraint;
    }
    const std::vector<std::string> order = scheduler_.queue();
    const auto place = std::find(order.begin(), order.end(), job.id);
    if (place != order.end()) answer.position = static_cast<int>(place - order.begin()) + 1;
  }
  answer.reason = std::move(job.reason);
  answer.may_start = job.may_start;
  answer.events = std::move(job.events);
  return answer;
}

std::vector<const Job*> Controller::queue() {
  if (asks_a_cluster()) return queue_at_the_cluster();
  constexpr size_t kRefreshed = 20;
  std::vector<const Job*> jobs;
  std::set<uint64_t> listed;
  for (const std::string& id : scheduler_.queue()) {
    Entry* const entry = by_id(id);
    if (entry == nullptr || entry->job.phase != Phase::kQueued) continue;
    if (jobs.size() < kRefreshed) refresh_reason(entry->job);
    jobs.push_back(&entry->job);
    listed.insert(entry->sequence);
  }
  for (const uint64_t sequence : waiting_) {
    if (listed.count(sequence) == 0) jobs.push_back(&entries_.at(sequence)->job);
  }
  return jobs;
}

Result<job::Forecast> Controller::forecast(const job::JobSpec& spec) const {
  MUSTER_CHECK(check_submission(spec));
  const Job job{.id = "forecast",
                .spec = spec,
                .submitted = parts_.clock.now(),
                .tasks = job::tasks_of(spec)};
  MUSTER_TRY(const schedule::Gang gang, admissible(job, next_sequence_));
  if (asks_a_cluster()) return forecast_at_the_cluster(job);
  const schedule::Forecast seen = scheduler_.forecast(gang, forward_.now());
  MUSTER_TRY(const job::Project* const project, projects_.find(spec.project));
  job::Forecast answer{.starts_now = !seen.start.empty(),
                       .reason = seen.verdict.reason,
                       .may_start = seen.verdict.may_start,
                       .before = status_of(*project, count_jobs()),
                       .after = control::status_of(*project, seen.project_then)};
  answer.after.running = answer.before.running + (answer.starts_now ? 1 : 0);
  answer.after.waiting = answer.before.waiting + (answer.starts_now ? 0 : 1);
  for (const schedule::Start& start : seen.start) {
    for (size_t i = 0; i < start.tasks.size(); ++i) {
      const TaskPlace& place = start.places[i];
      answer.placing.push_back({.task = job.tasks[static_cast<size_t>(start.tasks[i])].name,
                                .node = place.node,
                                .devices = place.devices,
                                .gpu_share_milli = place.share_milli});
    }
  }
  for (const schedule::Eviction& eviction : seen.evictions) {
    const Entry* const victim = by_id(eviction.id);
    job::JobRef ref{.id = eviction.id};
    if (victim != nullptr) {
      ref.name = victim->job.spec.name;
      ref.project = victim->job.spec.project;
    }
    answer.evictions.push_back({.job = std::move(ref), .why = eviction.why});
  }
  return answer;
}

}  // namespace muster::control
