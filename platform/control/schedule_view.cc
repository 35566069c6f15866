#include "control/schedule_view.h"

#include <algorithm>

#include "control/gang_tasks.h"
#include "job/pod_container.h"

namespace muster::control {

using schedule::kUnlimited;

namespace {

schedule::Amounts share_amounts(const job::Share& share) {
  return {share.gpu_milli.value_or(kUnlimited), share.cpu_milli.value_or(kUnlimited),
          share.memory_bytes.value_or(kUnlimited)};
}

std::optional<schedule::Packing> packing_of(job::Packing packing) {
  switch (packing) {
    case job::Packing::kPack:
      return schedule::Packing::kPack;
    case job::Packing::kSpread:
      return schedule::Packing::kSpread;
    case job::Packing::kAuto:
      break;
  }
  return std::nullopt;
}

std::vector<schedule::TaskGroup> groups_of(const job::JobSpec& spec, std::optional<int> workers) {
  const auto claim_as = [&](job::TaskRole role) { return claim_of(job::claimed_by(spec, role)); };
  if (spec.kind == job::Kind::kSingle) return {{.claim = claim_as(job::TaskRole::kSingle)}};
  const schedule::Claim claim = claim_as(job::TaskRole::kWorker);
  const int count = workers.value_or(spec.workers);
  const int minimum = std::min(count, spec.scheduling.min_workers.value_or(spec.workers));
  std::vector<schedule::TaskGroup> groups{
      {.claim = claim_as(job::TaskRole::kLauncher), .launcher = true}};
  if (count > 0) groups.push_back({.claim = claim, .count = count, .minimum = minimum});
  const auto add_all_of = [&](job::TaskRole role, int tasks) {
    if (tasks == 0) return;
    groups.push_back({.claim = claim_as(role), .count = tasks, .minimum = tasks});
  };
  add_all_of(job::TaskRole::kParameterServer, spec.parameter_servers);
  add_all_of(job::TaskRole::kEvaluator, spec.evaluators);
  return groups;
}

}  // namespace

schedule::Claim claim_of(const job::Resources& resources) {
  return {.gpus = resources.gpus,
          .gpu_share_milli = resources.gpu_share_milli,
          .gpu_memory_bytes = resources.gpu_memory_bytes,
          .cpu_milli = resources.cpu_milli,
          .memory_bytes = resources.memory_bytes};
}

schedule::Quota to_schedule(const job::Quota& quota) {
  return {.deserved = share_amounts(quota.deserved),
          .limit = share_amounts(quota.limit),
          .weight = quota.weight};
}

schedule::Project to_schedule(const job::Project& project) {
  schedule::Project result{.name = project.name,
                           .parent = project.parent,
                           .priority = project.priority,
                           .sequence = project.sequence,
                           .quota = to_schedule(project.quota),
                           .reclaim_min_runtime = project.reclaim_min_runtime,
                           .preempt_min_runtime = project.preempt_min_runtime};
  for (const auto& [pool, quota] : project.pools) result.quotas[pool] = to_schedule(quota);
  return result;
}

schedule::Node to_schedule(const engine::Node& node, bool cordoned) {
  const auto fault = node.labels.find(engine::kFault);
  return {.name = node.name,
          .pool = node.pool,
          .gpus = std::min(node.gpus, schedule::kMaxGpusPerNode),
          .anonymous_gpus = node.anonymous_gpus,
          .gpu_model = node.gpu_model,
          .gpu_memory_bytes = node.gpu_memory_bytes,
          .cpu_milli = node.cpu_milli,
          .memory_bytes = node.memory_bytes,
          .task_slots = node.task_slots,
          .cordoned = cordoned,
          .silent = cordoned && engine::is_silent(node),
          .fault = fault == node.labels.end() ? "" : fault->second,
          .topology = node.topology,
          .labels = node.labels,
          .taints = node.taints};
}

schedule::Gang to_schedule(const job::Job& job, uint64_t sequence,
                           const std::vector<std::string>& pools, std::optional<int> workers) {
  const job::Scheduling& scheduling = job.spec.scheduling;
  return {.id = job.id,
          .name = job.spec.name,
          .project = job.spec.project,
          .priority = job::priority_of(scheduling),
          .preemptible = job::is_preemptible(scheduling),
          .sequence = sequence,
          .groups = groups_of(job.spec, workers),
          .pools = scheduling.node_pools.empty() ? pools : scheduling.node_pools,
          .gpu_models = scheduling.gpu_models,
          .excluded_nodes = job.avoided_nodes,
          .required_topology = scheduling.required_topology,
          .preferred_topology = scheduling.preferred_topology,
          .packing = packing_of(scheduling.packing),
          .time_limit = scheduling.time_limit,
          .submitted = job.submitted};
}

SeatPlaces places_of(const job::Job& job) {
  SeatPlaces places;
  for (const job::Task& task : job.tasks) {
    const auto seat = static_cast<size_t>(task.seat);
    if (seat >= places.size()) places.resize(seat + 1);
    if (!holds_place(task)) continue;
    places[seat] = {
        .node = task.node, .devices = task.devices, .share_milli = task.gpu_share_milli};
  }
  return places;
}

job::Share to_share(const schedule::Amounts& amounts) {
  const auto bounded = [](int64_t amount) {
    return amount >= kUnlimited ? std::nullopt : std::optional<int64_t>(amount);
  };
  return {.gpu_milli = bounded(amounts.gpu_milli),
          .cpu_milli = bounded(amounts.cpu_milli),
          .memory_bytes = bounded(amounts.memory_bytes)};
}

job::ProjectStatus::Amounts to_amounts(const schedule::Amounts& amounts) {
  return {amounts.gpu_milli, amounts.cpu_milli, amounts.memory_bytes};
}

void add(job::ProjectStatus::Amounts& to, const schedule::Amounts& more) {
  to.gpu_milli += more.gpu_milli;
  to.cpu_milli += more.cpu_milli;
  to.memory_bytes += more.memory_bytes;
}

job::ProjectStatus status_of(const job::Project& project, const schedule::Standing& standing) {
  return {.project = project,
          .deserved = to_share(standing.deserved),
          .allocated = to_amounts(standing.allocated),
          .allocated_non_preemptible = to_amounts(standing.allocated_non_preemptible),
          .requested = to_amounts(standing.requested),
          .fair_share = to_share(standing.fair_share)};
}

}  // namespace muster::control
