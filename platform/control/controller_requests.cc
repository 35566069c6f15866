// The requests of callers for single jobs: stop, suspend, resume, label, remove, explain, and programs
// in running tasks; and what more nodes would change.
#include <algorithm>
#include <utility>

#include "control/audit_changes.h"
#include "control/controller.h"
#include "control/gang_tasks.h"
#include "control/unknown_name.h"
#include "job/obstacle.h"
#include "job/validate.h"
#include "schedule/what_if.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Job;
using job::Notice;
using job::Phase;
using job::Task;

namespace {

Error has_ended(const std::string& name, std::string advice) {
  return {.code = ErrorCode::kConflict,
          .what = "job " + name_in_quotes(name) + " has ended",
          .advice = std::move(advice),
          .detail = job::obstacle(job::Obstacle::Kind::kEnded)};
}

/// The action in the audit log.
std::string action_of(engine::Helper helper) {
  switch (helper) {
    case engine::Helper::kPack:
    case engine::Helper::kUnpack:
      return "job.copy";
    case engine::Helper::kConnect:
      return "job.forward";
    case engine::Helper::kNone:
      break;
  }
  return "job.exec";
}

}  // namespace

// --- requests of callers

Result<Job> Controller::act(JobEntry& entry, const access::Actor& by, const std::string& action,
                            const std::string& effect, const std::function<void()>& change) {
  const Job before = entry.job;
  change();
  journal_.note(audit_records(parts_.clock.now(), by, action, &before, &entry.job));
  if (const Result<void> stored = journal_.flush(); !stored) {
    return stored_later("job " + name_in_quotes(entry.job.spec.name) + " " + effect,
                        stored.error());
  }
  return entry.job;
}

Result<Job> Controller::stop(const std::string& name, bool now, const access::Actor& by) {
  MUSTER_TRY(JobEntry* const found, jobs_.entry_of(name));
  if (unreadable_.has_tasks(*found)) return stop_unreadable(*found, now, by);
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  if (job::is_final(entry->job.phase)) return entry->job;
  return act(*entry, by, "job.stop", "is being stopped", [&] { end_by_request(*entry, now); });
}

/// REQUIRES: the job has not ended.
void Controller::end_by_request(JobEntry& entry, bool now) {
  Job& job = entry.job;
  if (!job.stop_requested) {
    job.stop_requested = true;
    job.reason = Notice{Notice::What::kBeingStopped};
    jobs_.note(job, Notice{now ? Notice::What::kAskedToStopNow : Notice::What::kAskedToStop});
    jobs_.change(entry);
  }
  if (attempts_.of(entry) == nullptr) return attempts_.finish(entry, Phase::kStopped);
  // If the server is killed before the commit, the tasks still run and nothing was stopped. A full
  // disk does not keep a job from being stopped.
  journal_.then([this, now, gang = engine::GangId{job.id, job.attempt}] {
    if (Attempt* const attempt = attempts_.of(gang)) attempt->stop(now);
  });
}

Result<Job> Controller::stop_unreadable(const JobEntry& entry, bool now, const access::Actor& by) {
  const job::JobSpec& spec = entry.job.spec;
  MUSTER_CHECK(journal_.flush(
      {.audit = audit_records(parts_.clock.now(), by, "job.stop", spec.name, spec.project,
                              {{.field = "stop_requested", .after = "true"}})}));
  unreadable_.stop(entry, now);
  return entry.job;
}

Result<Job> Controller::suspend(const std::string& name, const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  Job& job = entry->job;
  if (job::is_final(job.phase))
    return has_ended(job.spec.name, "muster list shows what runs and waits");
  if (job.suspended || job.stop_requested) return job;
  return act(*entry, by, "job.suspend", "will be suspended", [&] { hold_back(*entry); });
}

/// REQUIRES: the job has not ended. A suspended job, and one that is being stopped, stays as it is.
void Controller::hold_back(JobEntry& entry) {
  Job& job = entry.job;
  if (job.suspended || job.stop_requested) return;
  job.suspended = true;
  if (Attempt* const attempt = attempts_.of(entry)) {
    attempt->evict_whole(job::SuspendedByUser{});
  } else {
    jobs_.note(job, Notice{Notice::What::kWasSuspended});
    placement_->requeue(entry, {});
    job.reason = suspended_reason(job);
    job.may_start.reset();
  }
  jobs_.change(entry);
}

Result<Job> Controller::resume(const std::string& name, const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  Job& job = entry->job;
  if (job::is_final(job.phase)) return has_ended(job.spec.name, "submit it again");
  if (!job.suspended) return job;
  return act(*entry, by, "job.resume", "will be resumed", [&] { release(*entry); });
}

/// A job that is not suspended stays as it is.
void Controller::release(JobEntry& entry) {
  Job& job = entry.job;
  if (!job.suspended) return;
  job.suspended = false;
  jobs_.note(job, Notice{Notice::What::kResumed});
  jobs_.change(entry);
  // A job whose tasks are still being ended is queued once they are gone.
  if (attempts_.of(entry) != nullptr) return;
  job.reason = placement_->first_reason();
  placement_->requeue(entry, {});
  wake();
}

Result<Job> Controller::set_labels(const std::string& name, const LabelChanges& changes,
                                   const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  job::JobSpec changed = entry->job.spec;
  for (const auto& [label, value] : changes) {
    if (value) {
      changed.labels[label] = *value;
    } else {
      changed.labels.erase(label);
    }
  }
  if (changed.labels == entry->job.spec.labels) return entry->job;
  auto faults = job::validate(changed);
  std::erase_if(faults, [](const auto& fault) { return !fault.field.starts_with("labels"); });
  if (!faults.empty()) {
    return Error{
        .code = ErrorCode::kInvalid,
        .what = "these labels cannot be given to job " + name_in_quotes(entry->job.spec.name),
        .faults = std::move(faults)};
  }
  return act(*entry, by, "job.label", "has the new labels", [&] {
    entry->job.spec.labels = std::move(changed.labels);
    jobs_.change(*entry);
  });
}

Result<void> Controller::remove(const std::string& name, const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  const Job& job = entry->job;
  if (!job::is_final(job.phase)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "job '" + job.spec.name + "' has not ended",
                 .advice = "stop it first: muster stop " + job.spec.name};
  }
  if (unreadable_.has_tasks(*entry)) {
    return Error{
        .code = ErrorCode::kConflict,
        .what = "tasks of job " + name_in_quotes(job.spec.name) +
                " still run, although it has ended; they are being ended",
        .advice = "try again in a moment, or end them at once: muster stop --now " + job.spec.name};
  }
  // Files first: a crash between the two leaves a job without logs, not logs without a job.
  MUSTER_CHECK(parts_.engine.remove(job.id));
  return jobs_.remove({entry}, audit_records(parts_.clock.now(), by, "job.delete", &job, nullptr));
}

Result<job::Explanation> Controller::explain(const std::string& name) const {
  MUSTER_TRY(const JobEntry* const entry, jobs_.entry_of(name));
  const Job& job = entry->job;
  job::Explanation answer{.name = job.spec.name, .phase = job.phase};
  answer.reason = job.reason;
  answer.may_start = job.may_start;
  answer.events = job.events;
  if (job.phase == Phase::kQueued && !job.suspended) placement_->explain(*entry, answer);
  return answer;
}

// --- programs in running tasks

/// The task, after a record of the action was committed: no caller enters a task without a trace.
Result<const Task*> Controller::task_to_enter(Job& job, const std::string& name,
                                              const std::string& action, const access::Actor& by) {
  const Task* const task = name.empty() ? &job::deciding_task(job) : find_task(job, name);
  if (task == nullptr) {
    return Error{
        .code = ErrorCode::kNotFound,
        .what = "job " + name_in_quotes(job.spec.name) + " has no task " + name_in_quotes(name),
        .advice = "muster get " + job.spec.name + " shows its tasks"};
  }
  if (task->phase != job::TaskPhase::kRunning) {
    return Error{.code = ErrorCode::kConflict,
                 .what = name_in_quotes(task->name) + " of job " + name_in_quotes(job.spec.name) +
                         " does not run: it is " + std::string(job::to_string(task->phase)),
                 .advice = "muster get " + job.spec.name + " shows what its tasks do"};
  }
  MUSTER_CHECK(journal_.flush(
      {.audit = audit_records(parts_.clock.now(), by, action, job.spec.name, job.spec.project,
                              {{.field = "task", .after = task->name}})}));
  return task;
}

Result<std::unique_ptr<engine::Exec>> Controller::exec(const std::string& name,
                                                       const std::string& task,
                                                       const engine::ExecPlan& plan,
                                                       engine::ExecHandlers handlers,
                                                       const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  Job& job = entry->job;
  MUSTER_TRY(const Task* const where, task_to_enter(job, task, action_of(plan.helper), by));
  return parts_.engine.exec({job.id, job.attempt}, where->name, plan, std::move(handlers));
}

Result<std::unique_ptr<engine::Exec>> Controller::attach(const std::string& name,
                                                         const std::string& task,
                                                         engine::ExecHandlers handlers,
                                                         const access::Actor& by) {
  MUSTER_TRY(JobEntry* const entry, jobs_.readable_entry_of(name));
  Job& job = entry->job;
  MUSTER_TRY(const Task* const where, task_to_enter(job, task, "job.attach", by));
  return parts_.engine.attach({job.id, job.attempt}, where->name, std::move(handlers));
}

// --- more nodes

namespace {

constexpr size_t kMostJobsOfWhatIf = 2000;

Controller::WhatIfAnswer compare(const std::vector<job::JobRef>& waiting,
                                 const schedule::ClusterState& before,
                                 const schedule::ClusterState& after,
                                 const schedule::WhatIfOptions& options) {
  const schedule::WhatIfResult now = schedule::what_if(before, options);
  const schedule::WhatIfResult then = schedule::what_if(after, options);
  const auto start_in = [](const schedule::WhatIfResult& result, const std::string& id) {
    const auto found = result.starts.find(id);
    return found == result.starts.end() ? std::nullopt : std::optional(found->second);
  };
  Controller::WhatIfAnswer answer{.evictions = then.evictions,
                                  .complete = now.complete && then.complete};
  for (const job::JobRef& job : waiting) {
    answer.jobs.push_back(
        {.job = job, .before = start_in(now, job.id), .after = start_in(then, job.id)});
  }
  return answer;
}

}  // namespace

Result<std::function<Controller::WhatIfAnswer()>> Controller::what_if(
    const WhatIfChange& change) const {
  if (parts_.engine.has_cluster_queue()) {
    return base::Error{
        .code = base::ErrorCode::kConflict,
        .what = "the cluster starts jobs by its own queue, which Muster cannot foresee"};
  }
  schedule::ClusterState cluster{.options = options_,
                                 .projects = projects_.table().for_scheduler(node_table_.totals())};
  for (const engine::Node& node : node_table_.all()) {
    cluster.nodes.push_back(to_schedule(node, node_table_.is_closed(node.name)));
  }
  std::vector<job::JobRef> waiting;
  for (const std::string& id : book_.scheduler().queue()) {
    const JobEntry* const entry = jobs_.entry_with_id(id);
    if (entry == nullptr || entry->job.phase != job::Phase::kQueued) continue;
    cluster.waiting.push_back(book_.gang_of(*entry));
    waiting.push_back({.id = id, .name = entry->job.spec.name, .project = entry->job.spec.project});
  }
  for (const auto& [sequence, entry] : jobs_.entries()) {
    const Attempt* const attempt = attempts_.of(*entry);
    if (attempt == nullptr || job::is_final(entry->job.phase)) continue;
    schedule::RunningGang running{.gang = book_.gang_of(*entry, attempt->shape()),
                                  .places = places_of(entry->job),
                                  .started = book_.start_of(entry->job)};
    running.places.resize(static_cast<size_t>(schedule::task_count(running.gang)));
    cluster.running.push_back(std::move(running));
  }
  if (cluster.waiting.size() + cluster.running.size() > kMostJobsOfWhatIf) {
    return base::Error{.code = base::ErrorCode::kExhausted,
                       .what = "more than " + std::to_string(kMostJobsOfWhatIf) +
                               " jobs run or wait, which are too many to simulate here",
                       .advice = "simulate a trace: muster simulate"};
  }
  schedule::ClusterState larger = cluster;
  MUSTER_TRY(const engine::Node* const like, node_table_.known(change.like));
  for (int i = 0; i < change.add_nodes; ++i) {
    schedule::Node node = to_schedule(*like, false);
    node.name += "+" + std::to_string(i + 1);
    larger.nodes.push_back(std::move(node));
  }
  const schedule::WhatIfOptions options{.now = book_.now(), .run_time = change.run_time};
  return std::function<WhatIfAnswer()>(
      [waiting = std::move(waiting), cluster = std::move(cluster), larger = std::move(larger),
       options] { return compare(waiting, cluster, larger, options); });
}

}  // namespace muster::control
