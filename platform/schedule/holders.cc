#include "schedule/holders.h"

#include <algorithm>

#include "schedule/reason.h"

namespace muster::schedule {

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

std::vector<job::HeldByOthers> holders_of(const Pool& pool, const Asking& asking,
                                          ProjectIndex within) {
  const Resource resource = scarce_resource(asking.charge);
  std::vector<Holder> gangs;
  std::map<ProjectIndex, int64_t> by_project;
  for (const GangState* const gang : gangs_in(pool)) {
    const ProjectIndex leaf = entry_in(*gang, pool).leaf;
    const int64_t amount = gang->counted[resource];
    if (gang == &asking.gang || amount == 0 || leaf == kNoProject) continue;
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

}  // namespace muster::schedule
