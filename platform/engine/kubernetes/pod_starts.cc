#include "engine/kubernetes/pod_starts.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "engine/engine_errors.h"
#include "engine/kubernetes/pod_requests.h"
#include "job/kubernetes.h"

namespace muster::engine::kubernetes {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using launch::TaskPlan;

namespace {

constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";

/// The cluster's device plugin shows a pod only its own GPUs, numbered from 0.
void renumber_gpus(TaskPlan& plan) {
  if (plan.devices.empty()) return;
  plan.gpus.clear();
  for (size_t i = 0; i < plan.devices.size(); ++i) {
    plan.devices[i] = static_cast<int>(i);
    plan.gpus.push_back(std::to_string(i));
  }
  plan.environment[kVisibleGpus] = base::joined(plan.gpus, ",");
}

/// Files that appear in a volume of the user, which takes precedence.
void drop_covered_files(TaskPlan& plan, const job::KubernetesSpec& options) {
  std::vector<std::string> places;
  for (const job::Volume& volume : plan.volumes) places.push_back(volume.target);
  for (const std::string& text : options.claims) {
    if (const auto claim = job::claim_of(text)) places.push_back(claim->path);
  }
  std::erase_if(plan.also_at, [&](const auto& file) {
    return std::any_of(places.begin(), places.end(), [&](const std::string& place) {
      return file.second.starts_with(place.ends_with('/') ? place : place + "/");
    });
  });
}

std::vector<std::string> task_names_in(const std::vector<TaskPlan>& plans) {
  std::vector<std::string> names;
  for (const TaskPlan& plan : plans) names.push_back(plan.task);
  return names;
}

}  // namespace

struct PodStarts::Pending {
  GangId gang;
  std::vector<TaskPlan> plans;
  Engine::Done done;
  std::shared_ptr<void> preparation;
  bool waits_for_pods = true;
  bool waits_for_trees = false;
};

void PodStarts::start(const GangId& gang, std::vector<TaskPlan> plans, Engine::Done done) {
  if (plans.empty()) {
    return tasks_.reports.post([done = std::move(done)] { done({}); });
  }
  const PodGangPointer held = gangs_.find(gang);
  std::vector<PodTask> pods;
  for (const TaskPlan& plan : plans) {
    const TaskPointer task = held == nullptr ? nullptr : held->task(plan.task);
    const bool was_started = task != nullptr && held->seat_of(*task).started;
    std::error_code ignored;
    if (was_started || fs::exists(tasks_.gangs.folder_of(gang, plan.task).path, ignored)) {
      Error error = start_error(
          plan.task, {.code = ErrorCode::kConflict,
                      .what = "task " + plan.task + " of this attempt was started before"});
      return tasks_.reports.post(
          [done = std::move(done), error = std::move(error)] { done(error); });
    }
    pods.push_back(pod_task_of(plan, hooks_.gpu_model_on(plan.node)));
  }
  PodJob job = held == nullptr || held->is_releasing || held->job.name.empty()
                   ? pod_job_of(gang, plans.front())
                   : held->job;
  job.project = plans.front().project;
  job.volumes = plans.front().volumes;
  auto start = std::make_shared<Pending>();
  start->gang = gang;
  start->plans = std::move(plans);
  start->done = std::move(done);
  pending_.push_back(start);
  unpack_trees(start);
  start->preparation =
      hooks_.prepare(job, std::move(pods), [this, weak = std::weak_ptr(start)](Result<void> how) {
        const auto still = weak.lock();
        if (!still) return;
        if (!how) return fail(still, std::move(how).error());
        still->waits_for_pods = false;
        start_if_ready(still);
      });
}

/// Meanwhile the pods start.
void PodStarts::unpack_trees(const std::shared_ptr<Pending>& start) {
  const TaskPlan& any = start->plans.front();
  if (tasks_.trees.are_here(start->gang.job_id, any.volumes)) return;
  start->waits_for_trees = true;
  tasks_.trees.unpack(start->gang.job_id, any.project, any.volumes,
                      [this, weak = std::weak_ptr(start)](Result<void> unpacked) {
                        const auto still = weak.lock();
                        if (!still) return;
                        if (!unpacked) return fail(still, std::move(unpacked).error());
                        still->waits_for_trees = false;
                        start_if_ready(still);
                      });
}

void PodStarts::fail(const std::shared_ptr<Pending>& start, Error error) {
  pending_.remove(start);
  const Engine::Done done = std::exchange(start->done, nullptr);
  if (done == nullptr) return;
  start->preparation.reset();  // gives up pods that do not run yet
  const PodGangPointer gang = gangs_.find(start->gang);
  if (gang && !start->waits_for_pods) hooks_.give_up(gang, task_names_in(start->plans));
  done(start_error(start->plans.front().task, std::move(error)));
}

void PodStarts::start_if_ready(const std::shared_ptr<Pending>& start) {
  if (start->waits_for_pods || start->waits_for_trees || start->done == nullptr) return;
  const PodGangPointer gang = gangs_.find(start->gang);
  if (gang == nullptr || gang->is_releasing) {
    return fail(start, {.code = ErrorCode::kUnavailable, .what = "its pods are gone"});
  }
  pending_.remove(start);
  const Engine::Done done = std::exchange(start->done, nullptr);
  gang->record.given = true;
  for (TaskPlan& plan : start->plans) {
    renumber_gpus(plan);
    drop_covered_files(plan, gang->job.options);
    plan.hosts.clear();  // all get the same list below
  }
  const std::vector<std::string> names = task_names_in(start->plans);
  tasks_.start(
      start->gang, std::move(start->plans),
      [this, done, names, weak = std::weak_ptr(gang)](const Result<void>& started) {
        const PodGangPointer still = weak.lock();
        if (!started && still) hooks_.give_up(still, names);
        done(started);
      },
      hosts_of(*gang));
}

bool PodStarts::is_pending(const GangId& gang, const std::string& task) const {
  return std::any_of(pending_.begin(), pending_.end(), [&](const auto& start) {
    const std::vector<std::string> its = task_names_in(start->plans);
    return start->gang == gang && std::find(its.begin(), its.end(), task) != its.end();
  });
}

void PodStarts::give_up_prepared(const GangId& gang, const std::vector<std::string>& names) {
  const PodGangPointer held = gangs_.find(gang);
  if (held == nullptr || held->is_releasing) return;
  std::vector<std::string> prepared;
  for (const std::string& name : names) {
    const TaskPointer task = held->task(name);
    const bool is_idle = task != nullptr && !held->seat_of(*task).started && !task->start &&
                         held->pods.at(name).is_desired;
    if (is_idle && !is_pending(gang, name)) prepared.push_back(name);
  }
  if (!prepared.empty()) hooks_.give_up(held, prepared);
}

void PodStarts::stop(const GangId& gang, const std::vector<std::string>& names) {
  give_up_prepared(gang, names);
  const auto starts = pending_;
  for (const auto& start : starts) {
    if (start->gang != gang) continue;
    const std::vector<std::string> its = task_names_in(start->plans);
    const bool is_one = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return std::find(its.begin(), its.end(), name) != its.end();
    });
    if (!is_one) continue;
    pending_.remove(start);
    tasks_.reports.post([this, start] {
      fail(start,
           {.code = ErrorCode::kUnavailable, .what = "was stopped while it was being started"});
    });
  }
}

std::vector<std::pair<std::string, std::string>> hosts_of(const PodGang& gang) {
  std::vector<std::pair<std::string, std::string>> hosts;
  for (const auto& [task, pod] : gang.pods) {
    if (!pod.facts || pod.facts->hostname.empty()) continue;
    // The pod's status gets its address later than muster-node.
    const TaskPointer held = gang.task(task);
    const std::string reported = held && held->line ? held->line->hello().address : "";
    const std::string& address = reported.empty() ? pod.facts->address : reported;
    if (!address.empty()) hosts.emplace_back(pod.facts->hostname, address);
  }
  return hosts;
}

}  // namespace muster::engine::kubernetes
