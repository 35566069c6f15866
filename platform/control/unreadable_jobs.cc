#include "control/unreadable_jobs.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"

namespace muster::control {

using engine::RunningTask;
using job::Remark;

Result<void> report_unreadable(const store::Contents& stored) {
  for (const store::Unreadable& record : stored.unreadable) {
    const std::string what = record.title() + " cannot be read: " + record.fault;
    const std::string advice = "restore a backup, or stop the server and run `" + record.command() +
                               "`, which sets the record aside";
    if (record.kind == "project") {
      return base::Error{
          .code = base::ErrorCode::kInternal,
          .what = what + "; its quota is unknown",
          .advice = advice + ", and then `muster project create` to give its jobs a quota again"};
    }
    base::log_error(what + "; the server starts without it; " + advice);
  }
  return {};
}

void UnreadableJobs::add(const store::Unreadable& record, base::Time submitted) {
  any_ = true;
  const job::JobSpec spec{.name = record.name, .project = record.project};
  // A damaged id may be the id of another job: then nothing is shown.
  [[maybe_unused]] const JobEntry* const added = jobs_.restore(
      {.id = record.id,
       .spec = spec,
       .reason = {Remark{"cannot be read: " + record.fault},
                  {Remark{"restore a backup, or stop the server (muster server --stop) and run `" +
                          record.command() + "`, which sets the record aside"}}},
       .suspended = true,
       .submitted = submitted,
       .unreadable = true,
       .tasks = job::tasks_of(spec)});
}

void UnreadableJobs::add_unknown(base::Time now,
                                 const std::function<bool(const std::string&)>& has_project) {
  const auto is_known = [this](const std::string& id) {
    return jobs_.facts_with_id(id).has_value();
  };
  for (const std::string& id : engine_.unknown_jobs(is_known)) {
    const auto running = engine_.running_tasks(id);
    if (!running || running->empty()) continue;
    any_ = true;
    const RunningTask& first = running->front();
    job::JobSpec spec{.name = id};
    if (has_project(first.project)) spec.project = first.project;
    const std::string name =
        first.job_name.empty() ? "" : " (submitted as '" + first.job_name + "')";
    base::log_warning(
        "job " + id + name +
        " runs, but the database has no record of it, as after the restore of an older "
        "backup; it keeps its GPUs until it ends; muster stop " +
        id + " ends it");
    [[maybe_unused]] const JobEntry* const added = jobs_.restore(
        {.id = id,
         .spec = spec,
         .reason = {Remark{"runs without a record in the database" + name},
                    {Remark{"the record is missing since an older backup was restored, or the "
                            "record was set aside"}}},
         .suspended = true,
         .submitted = now,
         .unreadable = true,
         .tasks = job::tasks_of(spec)});
  }
}

void UnreadableJobs::recover(JobEntry& entry) {
  auto running = engine_.running_tasks(entry.job.id);
  if (!running) {
    entry.job.reason.details.emplace_back(Remark{
        "its tasks keep running, if any still run; the engine cannot list them, so Muster neither "
        "counts nor ends them"});
    return;
  }
  if (!running->empty()) hold(entry, *std::move(running));
  show_tasks(entry);
}

void UnreadableJobs::end_tasks_of_ended() {
  for (const std::string& id : engine_.jobs_with_tasks()) {
    const auto facts = jobs_.facts_with_id(id);
    if (!facts || !job::is_final(facts->phase)) continue;
    auto running = engine_.running_tasks(id);
    if (!running || running->empty()) continue;
    const JobEntry& entry = *jobs_.entry_with_id(id);
    std::vector<std::string> names;
    for (const RunningTask& task : *running) names.push_back(task.task);
    base::log_warning("tasks of a job that has ended still run, and are ended",
                      {{"job", entry.job.spec.name},
                       {"project", entry.job.spec.project},
                       {"id", id},
                       {"phase", std::string(job::to_string(entry.job.phase))},
                       {"tasks", base::joined(names)}});
    hold(entry, *std::move(running));
    stop(entry, false);
  }
}

/// Adopts the tasks; no other job gets their GPUs until they have ended.
void UnreadableJobs::hold(const JobEntry& entry, std::vector<RunningTask> running) {
  schedule::Gang gang{.id = entry.job.id,
                      .name = entry.job.spec.name,
                      .project = entry.job.spec.project,
                      .preemptible = false,
                      .sequence = entry.sequence,
                      .pools = book_.gang_of(entry).pools,
                      .submitted = book_.clock().of(entry.job.submitted)};
  SeatPlaces places;
  for (const RunningTask& task : running) {
    [[maybe_unused]] const auto found = engine_.adopt(task.gang, task.task);
    const bool is_part = task.gpu_share_milli > 0 && task.gpu_share_milli < schedule::kWholeGpu;
    gang.groups.push_back({.claim = {.gpus = is_part ? 0 : static_cast<int>(task.devices.size()),
                                     .gpu_share_milli = is_part ? task.gpu_share_milli : 0}});
    places.emplace_back(schedule::TaskPlace{
        .node = task.node, .devices = task.devices, .share_milli = task.gpu_share_milli});
  }
  book_.scheduler().adopt(std::move(gang), places, book_.now());
  tasks_[entry.sequence] = std::move(running);
}

void UnreadableJobs::show_tasks(JobEntry& entry) const {
  std::vector<job::Detail>& details = entry.job.reason.details;
  details.resize(1);
  const auto running = tasks_.find(entry.sequence);
  if (running == tasks_.end()) {
    details.emplace_back(Remark{"none of its tasks runs"});
    return;
  }
  std::vector<std::string> names;
  for (const RunningTask& task : running->second) names.push_back(task.task);
  details.emplace_back(
      Remark{"these of its tasks still run, and keep their GPUs: " + base::joined(names) +
             "; muster stop " + entry.job.spec.name + " ends them"});
}

bool UnreadableJobs::report(JobEntry& entry, const engine::TaskReport& report) {
  if (!std::holds_alternative<engine::TaskEnded>(report.what)) return false;
  const auto running = tasks_.find(entry.sequence);
  if (running == tasks_.end()) return false;
  const auto is_it = [&](const RunningTask& task) {
    return task.gang == report.gang && task.task == report.task;
  };
  if (std::erase_if(running->second, is_it) == 0) return false;
  const bool all_ended = running->second.empty();
  if (all_ended) tasks_.erase(running);
  if (entry.job.unreadable) {
    show_tasks(entry);
    jobs_.announce(entry.job);
  }
  if (!all_ended) return false;
  // Only now: the secrets of a gang are needed while any of its tasks runs, and the scheduler would
  // have a gang that lost one task wait for the others.
  engine_.scrub(report.gang);
  book_.scheduler().ended(entry.job.id);
  return true;
}

bool UnreadableJobs::has_tasks_of(const std::string& id) const {
  // Of the jobs, only their own tasks count, and not those of jobs that repeat them.
  const bool is_job = jobs_.facts_with_id(id).has_value();
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& tasks) {
    const std::string& job = tasks.second.front().gang.job_id;
    if (job == id || is_job) return job == id;
    const auto facts = jobs_.facts_with_id(job);
    return facts && facts->origin && facts->origin->id == id;
  });
}

void UnreadableJobs::stop(const JobEntry& entry, bool now) {
  const auto running = tasks_.find(entry.sequence);
  if (running == tasks_.end()) return;
  for (const RunningTask& task : running->second) {
    engine_.stop(task.gang, {task.task},
                 now ? engine::StopMode::kNow : engine::StopMode::kGraceful);
  }
}

}  // namespace muster::control
