#include "control/allocation.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/units.h"
#include "control/schedule_view.h"
#include "job/amounts.h"
#include "job/pod_container.h"
#include "launch/gang.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using engine::AllocationRequest;
using engine::TaskRequest;
using job::Job;
using job::TaskRole;
using schedule::TaskPlace;

namespace {

/// Tasks in a row with the same request.
struct Alike {
  const TaskRequest* first = nullptr;
  int count = 0;
};

std::vector<Alike> alike(const std::vector<TaskRequest>& tasks) {
  std::vector<Alike> rows;
  for (const TaskRequest& task : tasks) {
    const bool goes_on = !rows.empty() && rows.back().first->role == task.role &&
                         rows.back().first->resources == task.resources;
    if (!goes_on) rows.push_back({.first = &task});
    ++rows.back().count;
  }
  return rows;
}

std::string alike_text(const Alike& row) {
  std::string text = row.count == 1
                         ? row.first->task
                         : job::count_text(row.count, std::string(job::to_string(row.first->role)));
  const std::string claim = job::claim_text(claim_of(row.first->resources));
  if (!claim.empty()) text += " (" + claim + (row.count == 1 ? ")" : " each)");
  return text;
}

/// "node pool a", "node pools a, b"
std::string named(const std::string& noun, const std::vector<std::string>& names) {
  std::string text = noun + (names.size() == 1 ? " " : "s ");
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return text;
}

TaskPlace given_place(const engine::AllocatedPlace& place, const job::Resources& resources) {
  const int share = resources.gpu_share_milli > 0 ? resources.gpu_share_milli : schedule::kWholeGpu;
  return {.node = place.node,
          .devices = place.devices,
          .share_milli = place.devices.empty() ? 0 : share};
}

}  // namespace

AllocationRequest allocation_request(const Job& job, const std::set<std::string>& closed) {
  const job::JobSpec& spec = job.spec;
  AllocationRequest request{.job = spec.name,
                            .project = spec.project,
                            .node_pools = spec.scheduling.node_pools,
                            .gpu_models = spec.scheduling.gpu_models,
                            .time_limit = spec.scheduling.time_limit,
                            .grace = spec.grace,
                            .start_timeout = spec.start_timeout,
                            .slurm = spec.slurm};
  const int least = spec.scheduling.min_workers.value_or(spec.workers);
  int workers = 0;
  for (const job::Task& task : job::tasks_of(spec)) {
    const bool is_worker = task.role == TaskRole::kWorker;
    request.tasks.push_back({.task = task.name,
                             .role = task.role,
                             .resources = job::resources_of(spec, task.role),
                             .may_be_missing = is_worker && workers >= least,
                             .only_launches = task.role == TaskRole::kLauncher &&
                                              !launch::takes_ranks(spec, task.role)});
    workers += is_worker;
  }
  std::set<std::string> avoided = closed;
  avoided.insert(job.avoided_nodes.begin(), job.avoided_nodes.end());
  request.avoided_nodes.assign(avoided.begin(), avoided.end());
  return request;
}

base::Result<void> check_topology(const job::JobSpec& spec, const std::string& cluster) {
  const std::string& level = spec.scheduling.required_topology;
  if (level.empty()) return {};
  return Error{
      .code = ErrorCode::kRefused,
      .what = "job '" + spec.name + "' requires one " + level + ", which " + cluster +
              " cannot be asked for: it has no such topology level",
      .advice = "leave out --topology, and choose nodes by a partition or by their features"};
}

schedule::Amounts requested_amounts(const Job& job) {
  schedule::Amounts all;
  for (const job::Task& task : job.tasks) {
    const job::Resources needs = job::claimed_by(job.spec, task.role);
    const int64_t gpus =
        needs.gpus > 0 ? int64_t{needs.gpus} * schedule::kWholeGpu : int64_t{needs.gpu_share_milli};
    all += {gpus, needs.cpu_milli, needs.memory_bytes};
  }
  return all;
}

std::vector<std::string> describe(const AllocationRequest& request) {
  std::string what;
  for (const Alike& row : alike(request.tasks))
    what += (what.empty() ? "" : ", ") + alike_text(row);
  std::vector<std::string> lines{what};
  const auto spare = std::count_if(request.tasks.begin(), request.tasks.end(),
                                   [](const TaskRequest& task) { return task.may_be_missing; });
  if (spare > 0) lines.push_back("or up to " + job::count_text(spare, "worker") + " fewer");
  const auto add = [&](const std::string& words, const std::string& value) {
    if (!value.empty()) lines.push_back(words + value);
  };
  const job::SlurmSpec& slurm = request.slurm;
  if (!slurm.partition.empty()) {
    add("in partition ", slurm.partition);
  } else if (!request.node_pools.empty()) {
    add("in ", named("node pool", request.node_pools));
  }
  add("for account ", slurm.account);
  add("with QOS ", slurm.qos);
  add("in reservation ", slurm.reservation);
  add("on nodes with ", slurm.constraint);
  if (!request.gpu_models.empty()) add("with ", named("GPU model", request.gpu_models));
  if (!request.avoided_nodes.empty()) add("not on ", named("node", request.avoided_nodes));
  if (request.time_limit) {
    lines.push_back("for " + base::format_duration(*request.time_limit) + " at the most");
  }
  return lines;
}

namespace {

/// Only Slurm's allocations have a number.
std::string name_of_allocation(const engine::AllocationGranted& allocation) {
  if (allocation.slurm_job == 0) return "its allocation";
  return "its allocation (Slurm job " + std::to_string(allocation.slurm_job) + ")";
}

}  // namespace

base::Result<SeatPlaces> places_in(const engine::AllocationGranted& allocation, const Job& job) {
  const AllocationRequest request = allocation_request(job, {});
  std::map<std::string, const engine::AllocatedPlace*> by_task;
  for (const engine::AllocatedPlace& place : allocation.places) by_task[place.task] = &place;
  SeatPlaces places(request.tasks.size());
  size_t placed = 0;
  for (size_t i = 0; i < request.tasks.size(); ++i) {
    const TaskRequest& task = request.tasks[i];
    const auto found = by_task.find(task.task);
    if (found != by_task.end()) {
      places[i] = given_place(*found->second, task.resources);
      ++placed;
    } else if (!task.may_be_missing) {
      return Error{.code = ErrorCode::kInternal,
                   .what = name_of_allocation(allocation) + " has no place for " + task.task};
    }
  }
  if (placed == allocation.places.size()) return places;
  return Error{.code = ErrorCode::kInternal,
               .what = name_of_allocation(allocation) +
                       " has places for tasks that it does not have, or two for one"};
}

namespace {

/// Without the fields that change while it waits for the same reason.
job::Fact steady_part(job::Fact fact) {
  if (auto* const waits = std::get_if<job::SlurmWaits>(&fact)) {
    waits->slurm_job = 0;
    waits->expected.reset();
    waits->names_day = false;
    waits->since.reset();
  } else if (auto* const state = std::get_if<job::SlurmState>(&fact)) {
    state->slurm_job = 0;
    state->since.reset();
  }
  return fact;
}

}  // namespace

bool is_same_wait(const job::Fact& one, const job::Fact& other) {
  return steady_part(one) == steady_part(other);
}

}  // namespace muster::control
