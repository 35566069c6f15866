#include "schedule/explain.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>
#include <variant>

#include "schedule/cycle.h"
#include "schedule/reservation.h"
#include "schedule/reserved_limits.h"
#include "schedule/trial.h"

namespace muster::schedule {

using job::Notice;

WaitVerdict promise_verdict(const GangState& gang) {
  const int coming = static_cast<int>(
      std::count_if(gang.tasks.begin(), gang.tasks.end(),
                    [](const TaskState& task) { return task.promised.has_value(); }));
  return {.constraint = Constraint::kReleasing,
          .reason = job::Promised{.tasks = coming, .leaving = {gang.leaving_for_it}}};
}

WaitVerdict project_verdict(const Pool& pool, const GangState& gang) {
  const bool is_known = pool.ledger.find(gang.gang.project) != kNoProject;
  return {.constraint = Constraint::kProject,
          .reason = job::NoProject{.project = gang.gang.project, .has_children = is_known}};
}

std::optional<WaitVerdict> never_verdict(const Pool& pool, const GangState& gang) {
  if (gang.home != nullptr) return std::nullopt;
  std::optional<WaitVerdict> verdict;
  for (const PoolEntry& entry : gang.entries) {
    const std::optional<Shortage> shortage = entry.pool->nodes.could_never_hold(gang.gang);
    if (!shortage) return std::nullopt;
    if (entry.pool != &pool || shortage->nodes == 0) continue;
    verdict = shortage_verdict(gang.gang, pool.name, *shortage, false);
  }
  return verdict;
}

namespace {

WaitVerdict reserved_verdict(const job::JobRef& held_by) {
  return {.constraint = Constraint::kReserved, .reason = job::Reserved{held_by}};
}

}  // namespace

WaitVerdict verdict_of(const Pool& pool, const WaitClass& waiting, const GangState& gang) {
  switch (waiting.constraint) {
    case Constraint::kLimit:
    case Constraint::kQuota:
      return capacity_verdict(gang.gang, *waiting.refusal, pool.ledger);
    case Constraint::kReserved:
      return reserved_verdict(waiting.held_by);
    case Constraint::kRoom:
    case Constraint::kTopology:
      if (!waiting.ask->shortage) break;
      if (auto never = never_verdict(pool, gang)) {
        waiting.ask->reported_never = true;
        return *std::move(never);
      }
      return shortage_verdict(gang.gang, pool.name, *waiting.ask->shortage, true);
    default:
      break;
  }
  return {.constraint = waiting.constraint, .reason = Notice{Notice::What::kNotItsTurn}};
}

WaitVerdict after_evictions_verdict(const std::vector<Eviction>& evictions) {
  return {.constraint = Constraint::kReleasing,
          .reason = job::AfterEvictions{{static_cast<int>(evictions.size())}}};
}

namespace {

/// As the pool stands at this moment.
WaitVerdict fresh_verdict(const Cycle& cycle, Pool& pool, GangState& gang,
                          const WaitClass& waiting) {
  settle_books(pool);
  if (auto never = never_verdict(pool, gang)) return *std::move(never);
  const PlacementRequest request = request_of(cycle.options, gang, pool, waiting.key.ask.counts);
  const auto refusal = pool.ledger.refuses(waiting.leaf, request.charge, gang.gang.preemptible);
  WaitVerdict verdict;
  if (refusal) {
    verdict = capacity_verdict(gang.gang, *refusal, pool.ledger);
  } else if (const GangState* const reserved = held_at_limit(pool, request)) {
    verdict = reserved_verdict(ref_to(reserved->gang));
  } else {
    const Reservations::Placed placed = Reservations(cycle, pool).place(request);
    if (placed.bookings) {
      for (const Booking& booking : *placed.bookings) pool.nodes.unbook(booking);
      verdict = waiting.constraint == Constraint::kReserved
                    ? reserved_verdict(waiting.held_by)
                    : WaitVerdict{.constraint = Constraint::kTurn,
                                  .reason = Notice{Notice::What::kRoomButNotItsTurn}};
    } else if (placed.only_reserved) {
      verdict = reserved_verdict(placed.held_by);
    } else {
      verdict = shortage_verdict(gang.gang, pool.name, *placed.shortage, true);
    }
  }
  for (job::HeldByOthers& held :
       holders_of(pool, request, refusal ? refusal->project : kNoProject)) {
    verdict.reason.details.emplace_back(std::move(held));
  }
  if (const auto shadow = shadow_start(pool, request, cycle.now)) {
    // The computed start leaves out the reserved starts of other gangs, which exist only in a plan:
    // "now" would be wrong for a gang that one of them keeps waiting.
    const bool waits_for_another = verdict.constraint == Constraint::kReserved;
    if (!waits_for_another || shadow->start > cycle.now) verdict.may_start = shadow->start;
  }
  return verdict;
}

WaitVerdict delay_verdict(const GangState& gang, Time now) {
  const auto left = std::chrono::ceil<std::chrono::seconds>(*gang.not_before - now);
  return {.constraint = Constraint::kDelayed,
          .reason = job::TriedAgain{std::max<int64_t>(left.count(), 0)},
          .may_start = gang.not_before};
}

}  // namespace

WaitVerdict explain_gang(const Cycle& cycle, GangState& gang) {
  if (gang.not_before) return delay_verdict(gang, cycle.now);
  if (has_promise(gang)) return promise_verdict(gang);
  std::vector<std::pair<std::string, WaitVerdict>> by_pool;
  for (PoolEntry& entry : gang.entries) {
    if (gang.home != nullptr && gang.home != entry.pool) continue;
    if (entry.waits_in == nullptr && !entry.pool->homeless.contains(&gang)) continue;
    by_pool.emplace_back(entry.pool->name,
                         entry.waits_in == nullptr
                             ? project_verdict(*entry.pool, gang)
                             : fresh_verdict(cycle, *entry.pool, gang, *entry.waits_in));
  }
  if (by_pool.empty()) return {};
  std::stable_partition(by_pool.begin(), by_pool.end(),
                        [](const auto& one) { return !has_no_open_node(one.second); });
  WaitVerdict first = std::move(by_pool.front().second);
  for (size_t i = 1; i < by_pool.size(); ++i) {
    auto& [pool, verdict] = by_pool[i];
    first.reason.details.emplace_back(std::move(verdict.reason.what), pool);
    if (verdict.may_start && (!first.may_start || *verdict.may_start < *first.may_start)) {
      first.may_start = verdict.may_start;
    }
  }
  return first;
}

namespace {

constexpr size_t kMostHoldersNamed = 3;
constexpr size_t kMostFaultsNamed = 3;

std::string shown_name(const Gang& gang) {
  return gang.name.empty() ? gang.id : gang.name;
}

job::ProjectRef ref_to_project(const std::string& name, const std::string& leaf) {
  return {.name = name, .above = name == leaf ? "" : leaf};
}

/// The amounts that gangs below the project at its bound hold, the largest first. They may be gangs
/// of the waiting gang's own project or of a sibling.
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

WaitVerdict capacity_verdict(const Gang& gang, const CapacityRefusal& refusal,
                             const Ledger& ledger) {
  const bool is_quota = refusal.what == CapacityRefusal::What::kQuotaOfNonPreemptible;
  WaitVerdict verdict{.constraint = is_quota ? Constraint::kQuota : Constraint::kLimit};
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

bool has_no_open_node(const WaitVerdict& verdict) {
  const auto* const no_room = std::get_if<job::NoRoom>(&verdict.reason.what);
  return no_room != nullptr && no_room->nodes == 0;
}

WaitVerdict shortage_verdict(const Gang& gang, const std::string& pool, const Shortage& shortage,
                             bool ever) {
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
                   .silent = static_cast<int>(shortage.silent.size()),
                   .faults = {},
                   .free_gpu_milli = shortage.free_gpu_milli,
                   .largest_free_gpu_milli = shortage.largest_free_gpu_milli,
                   .largest_free_cpu_milli = shortage.largest_free_cpu_milli,
                   .largest_free_memory_bytes = shortage.largest_free_memory_bytes,
                   .lack_gpu = shortage.lack_gpu,
                   .lack_cpu = shortage.lack_cpu,
                   .lack_memory = shortage.lack_memory,
                   .lack_task_slots = shortage.lack_task_slots};
  for (const auto& node : shortage.silent) {
    if (fact.faults.size() == kMostFaultsNamed) break;
    fact.faults.push_back({.node = node->name, .fault = node->fault});
  }
  if (shortage.nodes == 0) {
    fact.pools = {pool};
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

/// The resources in which the two projects were compared: those that `by` requests and of which one
/// of the projects has a bounded quota. All requested resources if no quota is bounded.
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

namespace {

constexpr size_t kMostNamed = 5;

struct Holder {
  int64_t amount = 0;
  uint64_t number = 0;         ///< the older first, where they hold the same
  const Gang* gang = nullptr;  ///< nullptr: a project
  ProjectIndex leaf = kNoProject;

  bool operator<(const Holder& other) const {
    return std::tie(other.amount, number) < std::tie(amount, other.number);
  }
};

bool is_within(const Ledger& ledger, ProjectIndex leaf, ProjectIndex project) {
  if (project == kNoProject) return true;
  for (; leaf != kNoProject; leaf = ledger.parent(leaf)) {
    if (leaf == project) return true;
  }
  return false;
}

Resource scarce_resource(const Amounts& charge) {
  if (charge.gpu_milli > 0) return Resource::kGpu;
  return charge.cpu_milli > 0 ? Resource::kCpu : Resource::kMemory;
}

job::HeldByOthers largest(std::vector<Holder> holders, Resource resource, const Ledger& ledger) {
  const size_t named = std::min(holders.size(), kMostNamed);
  std::partial_sort(holders.begin(), holders.begin() + static_cast<std::ptrdiff_t>(named),
                    holders.end());
  job::HeldByOthers fact{
      .holders = {.resource = resource, .more = static_cast<int>(holders.size() - named)}};
  for (size_t i = 0; i < named; ++i) {
    job::Holding holding{.amount = holders[i].amount};
    if (holders[i].gang != nullptr) {
      holding.job = ref_to(*holders[i].gang);
    } else {
      holding.project = ledger.name(holders[i].leaf);
    }
    fact.holders.named.push_back(std::move(holding));
  }
  return fact;
}

/// Every gang with tasks on the pool's nodes, once.
std::vector<const GangState*> gangs_in(const Pool& pool) {
  std::vector<const GangState*> gangs;
  for (const std::vector<Tenant>& tenants : pool.tenants) {
    for (const Tenant& tenant : tenants) gangs.push_back(tenant.gang);
  }
  const auto older = [](const GangState* left, const GangState* right) {
    return left->number < right->number;
  };
  std::sort(gangs.begin(), gangs.end(), older);
  gangs.erase(std::unique(gangs.begin(), gangs.end()), gangs.end());
  return gangs;
}

}  // namespace

std::vector<job::HeldByOthers> holders_of(const Pool& pool, const PlacementRequest& request,
                                          ProjectIndex within) {
  const Resource resource = scarce_resource(request.charge);
  std::vector<Holder> gangs;
  std::map<ProjectIndex, int64_t> by_project;
  for (const GangState* const gang : gangs_in(pool)) {
    // A gang of another pool may still have tasks on a node that has changed its pool.
    const ProjectIndex leaf =
        gang->home == &pool ? entry_in(*gang, pool).leaf : pool.ledger.find(gang->gang.project);
    const int64_t amount = gang->counted[resource];
    if (gang == &request.gang || amount == 0 || leaf == kNoProject) continue;
    if (!is_within(pool.ledger, leaf, within)) continue;
    by_project[leaf] += amount;
    gangs.push_back({.amount = amount, .number = gang->number, .gang = &gang->gang});
  }
  if (gangs.empty()) return {};
  std::vector<Holder> projects;
  for (const auto& [leaf, amount] : by_project) {
    projects.push_back({.amount = amount, .number = static_cast<uint64_t>(leaf), .leaf = leaf});
  }
  return {largest(std::move(projects), resource, pool.ledger),
          largest(std::move(gangs), resource, pool.ledger)};
}

// Reporting to waiting gangs why they wait. The reason is computed once for a class of equal gangs.
// Only a changed constraint is reported again, because amounts change all the time, and that all
// nodes of a gang were cordoned, or no longer are.

namespace {

// The number of gangs at the front of a class that get the new reason when its constraint changes.
// Other gangs get it when they come to the front; explain() returns the present reason of any gang.
constexpr int kMostReportedAgain = 8;

using SharedVerdict = std::shared_ptr<const WaitVerdict>;

/// Whether the gang also waits in another pool, where it may use an open node.
bool waits_at_open_nodes(const GangState& gang, const Pool& pool) {
  return std::any_of(gang.entries.begin(), gang.entries.end(), [&](const PoolEntry& entry) {
    if (entry.pool == &pool || entry.waits_in == nullptr) return false;
    return !waits_for_room(*entry.waits_in) || !entry.waits_in->ask->none_is_open;
  });
}

void report(Cycle& cycle, const Pool& pool, GangState& gang, const SharedVerdict& verdict) {
  const ReportedReason reason{.constraint = verdict->constraint,
                              .none_is_open = has_no_open_node(*verdict)};
  if (reason.none_is_open && waits_at_open_nodes(gang, pool)) return;
  if (gang.reported_reason == reason) return;
  gang.reported_reason = reason;
  cycle.plan.waits.push_back({gang.gang.id, verdict});
}

void report_one(Cycle& cycle, const Pool& pool, GangState& gang, WaitVerdict verdict) {
  report(cycle, pool, gang, std::make_shared<const WaitVerdict>(std::move(verdict)));
}

/// Without the name of any gang of the class.
SharedVerdict shared_verdict(const Pool& pool, const WaitClass& waiting) {
  WaitVerdict verdict = verdict_of(pool, waiting, waiting.head());
  if (auto* const over = std::get_if<job::OverCapacity>(&verdict.reason.what)) over->job.clear();
  return std::make_shared<const WaitVerdict>(std::move(verdict));
}

void report_class(Cycle& cycle, const Pool& pool, WaitClass& waiting) {
  const SharedVerdict verdict = shared_verdict(pool, waiting);
  for (GangState* const gang : waiting.unexplained) report(cycle, pool, *gang, verdict);
  waiting.unexplained.clear();
  if (!waiting.changed) return;
  int left = kMostReportedAgain;
  for (GangState* const gang : waiting.waiters) {
    if (left-- == 0) break;
    report(cycle, pool, *gang, verdict);
  }
  waiting.changed = false;
}

}  // namespace

void report_waits(Cycle& cycle, Pool& pool) {
  for (GangState* const gang : pool.promised)
    report_one(cycle, pool, *gang, promise_verdict(*gang));
  for (GangState* const gang : pool.homeless)
    report_one(cycle, pool, *gang, project_verdict(pool, *gang));
  std::sort(pool.to_explain.begin(), pool.to_explain.end(),
            [](const WaitClass* left, const WaitClass* right) {
              return std::tie(left->leaf, left->key) < std::tie(right->leaf, right->key);
            });
  std::erase_if(pool.to_explain, [&](WaitClass* waiting) {
    // The gang was not considered in this plan, so it has no reason yet.
    if (!waiting->waiters.empty() && waiting->constraint == Constraint::kNone) return false;
    if (!waiting->waiters.empty()) report_class(cycle, pool, *waiting);
    waiting->needs_explanation = false;
    return true;
  });
}

}  // namespace muster::schedule
