#include "schedule/reason.h"

#include <algorithm>

namespace muster::schedule {

namespace {

constexpr size_t kMostHoldersNamed = 3;

std::string shown_name(const Gang& gang) {
  return gang.name.empty() ? gang.id : gang.name;
}

job::ProjectRef ref_to_project(const std::string& name, const std::string& leaf) {
  return {.name = name, .above = name == leaf ? "" : leaf};
}

/// Who below the project at its bound holds how much, most first: it may be one's own gangs that
/// stand in the way, or a sibling's.
std::optional<job::HeldByOthers> holders_below(const CapacityRefusal& refusal,
                                               const Ledger& ledger) {
  const auto held = [&](ProjectIndex project) {
    const Standing standing = ledger.standing(project);
    return refusal.what == CapacityRefusal::What::kLimit
               ? standing.allocated[refusal.resource]
               : standing.allocated_non_preemptible[refusal.resource];
  };
  std::vector<ProjectIndex> below = ledger.children(refusal.project);
  std::erase_if(below, [&](ProjectIndex project) { return held(project) <= 0; });
  std::stable_sort(below.begin(), below.end(),
                   [&](ProjectIndex one, ProjectIndex other) { return held(one) > held(other); });
  if (below.empty()) return std::nullopt;

  job::HeldByOthers fact{.below = job::ProjectRef{.name = ledger.name(refusal.project)},
                         .holders = {.resource = refusal.resource}};
  int64_t named = 0;
  for (size_t i = 0; i < std::min(below.size(), kMostHoldersNamed); ++i) {
    named += held(below[i]);
    fact.holders.named.push_back({.project = ledger.name(below[i]), .amount = held(below[i])});
  }
  if (below.size() > kMostHoldersNamed) {
    fact.holders.more = static_cast<int>(below.size() - kMostHoldersNamed);
    fact.holders.more_amount = refusal.allocated - named;
  }
  return fact;
}

}  // namespace

job::JobRef ref_to(const Gang& gang) {
  return {.id = gang.id, .name = gang.name, .project = gang.project};
}

Verdict capacity_verdict(const Gang& gang, const CapacityRefusal& refusal, const Ledger& ledger) {
  const bool is_quota = refusal.what == CapacityRefusal::What::kQuotaOfNonPreemptible;
  Verdict verdict{.constraint = is_quota ? Constraint::kQuota : Constraint::kLimit};
  verdict.reason.what =
      job::OverCapacity{.job = shown_name(gang),
                        .project = ref_to_project(ledger.name(refusal.project), gang.project),
                        .is_quota = is_quota,
                        .resource = refusal.resource,
                        .bound = refusal.bound,
                        .allocated = refusal.allocated,
                        .requested = refusal.requested};
  if (auto held = holders_below(refusal, ledger)) {
    verdict.reason.details.emplace_back(*std::move(held));
  }
  return verdict;
}

Verdict shortage_verdict(const Gang& gang, const Shortage& shortage, bool ever) {
  const bool alike =
      std::all_of(gang.groups.begin(), gang.groups.end(),
                  [&](const TaskGroup& group) { return group.claim == shortage.claim; });
  job::NoRoom fact{.ever = ever,
                   .tasks = shortage.tasks,
                   .placed = shortage.placed,
                   .claim = shortage.claim,
                   .alike = alike,
                   .topology = shortage.topology,
                   .nodes = shortage.nodes,
                   .cordoned = shortage.cordoned,
                   .free_gpu_milli = shortage.free_gpu_milli,
                   .largest_free_gpu_milli = shortage.largest_free_gpu_milli,
                   .largest_free_cpu_milli = shortage.largest_free_cpu_milli,
                   .largest_free_memory_bytes = shortage.largest_free_memory_bytes,
                   .lack_gpu = shortage.lack_gpu,
                   .lack_cpu = shortage.lack_cpu,
                   .lack_memory = shortage.lack_memory,
                   .lack_task_slots = shortage.lack_task_slots};
  if (shortage.nodes == 0) {
    fact.pools = gang.pools.empty() ? std::vector<std::string>{kDefaultPool} : gang.pools;
    fact.gpu_models = gang.gpu_models;
    for (const auto& [label, value] : gang.node_labels) fact.labels.push_back(label + "=" + value);
    fact.excluded_nodes = gang.excluded_nodes;
  }
  return {.constraint = !ever                       ? Constraint::kNever
                        : shortage.topology.empty() ? Constraint::kRoom
                                                    : Constraint::kTopology,
          .reason = std::move(fact)};
}

namespace {

/// What `by` asks for and either side has a bounded quota of: what the two were compared by. All
/// that it asks for where no quota is bounded.
std::vector<Resource> compared(const Gang& by, const Standing& one, const Standing& other) {
  const auto asks = [&](Resource resource) {
    return std::any_of(by.groups.begin(), by.groups.end(), [&](const TaskGroup& group) {
      const Claim& claim = group.claim;
      if (resource == Resource::kCpu) return claim.cpu_milli > 0;
      if (resource == Resource::kMemory) return claim.memory_bytes > 0;
      return claim.gpus > 0 || claim.gpu_share_milli > 0 || claim.gpu_memory_bytes > 0;
    });
  };
  std::vector<Resource> asked;
  std::copy_if(kResources.begin(), kResources.end(), std::back_inserter(asked), asks);
  std::vector<Resource> bounded;
  std::copy_if(asked.begin(), asked.end(), std::back_inserter(bounded), [&](Resource resource) {
    return one.deserved[resource] < kUnlimited || other.deserved[resource] < kUnlimited;
  });
  return bounded.empty() ? asked : bounded;
}

job::ProjectShare share_of(const Ledger& ledger, ProjectIndex project, const std::string& leaf,
                           const Standing& standing) {
  return {.project = ref_to_project(ledger.name(project), leaf),
          .uses = standing.allocated,
          .quota = standing.deserved,
          .fair_share = standing.fair_share,
          .priority = ledger.priority(project)};
}

job::Reclaimed reclaim_fact(const Gang& victim, const Gang& by, const Ledger& ledger, Tense tense) {
  job::Reclaimed fact{.by = ref_to(by), .expected = tense == Tense::kForecast};
  const ProjectIndex loser = ledger.find(victim.project);
  const ProjectIndex taker = ledger.find(by.project);
  if (loser == kNoProject || taker == kNoProject) return fact;
  auto [losing, taking] = ledger.siblings_above(loser, taker);
  if (losing == kNoProject) std::tie(losing, taking) = std::tie(loser, taker);

  const Standing one = ledger.standing(losing);
  const Standing other = ledger.standing(taking);
  fact.compared = compared(by, one, other);
  fact.shares = {share_of(ledger, losing, victim.project, one),
                 share_of(ledger, taking, by.project, other)};
  return fact;
}

}  // namespace

job::Eviction eviction_fact(const Gang& victim, const Gang& by, EvictionCause cause,
                            const Ledger& ledger, Tense tense) {
  const bool expected = tense == Tense::kForecast;
  switch (cause) {
    case EvictionCause::kReclaimed:
      return reclaim_fact(victim, by, ledger, tense);
    case EvictionCause::kPreempted:
      return job::Preempted{.by = ref_to(by),
                            .by_priority = by.priority,
                            .priority = victim.priority,
                            .expected = expected};
    case EvictionCause::kMoved:
      return job::Moved{.so_that = ref_to(by), .expected = expected};
    case EvictionCause::kStale:
      break;
  }
  return job::Stale{.minimum = minimum_tasks(victim)};
}

}  // namespace muster::schedule
