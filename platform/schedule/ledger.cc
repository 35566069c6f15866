#include "schedule/ledger.h"

#include <algorithm>
#include <tuple>

#include "schedule/fair_share.h"
#include "schedule/project_tree.h"

namespace muster::schedule {

namespace {

constexpr unsigned kAllResources = (1U << kResources.size()) - 1;

unsigned bit(Resource resource) {
  return 1U << static_cast<unsigned>(resource);
}

unsigned bits(const Amounts& amounts) {
  unsigned mask = 0;
  for (const Resource resource : kResources) {
    if (amounts[resource] != 0) mask |= bit(resource);
  }
  return mask;
}

/// Only GPUs are shared out in whole ones.
int64_t share_unit(Resource resource) {
  return resource == Resource::kGpu ? kWholeGpu : 1;
}

}  // namespace

Ledger::Account& Ledger::at(ProjectIndex project) {
  return project == kNoProject ? pool_ : accounts_[static_cast<size_t>(project)];
}

const Ledger::Account& Ledger::at(ProjectIndex project) const {
  return project == kNoProject ? pool_ : accounts_[static_cast<size_t>(project)];
}

void Ledger::set_projects(const std::vector<Project>& projects, const std::string& pool) {
  pool_.children.clear();
  for (Account& account : accounts_) {
    account.present = false;
    account.parent = kNoProject;
    account.children.clear();
  }
  for (const Project& project : projects) enter(project, pool);
  link(projects);
  sum_up();
}

void Ledger::enter(const Project& project, const std::string& pool) {
  const auto [entry, is_new] =
      by_name_.emplace(project.name, static_cast<ProjectIndex>(accounts_.size()));
  if (is_new) accounts_.emplace_back().name = project.name;
  Account& account = at(entry->second);
  if (account.present) return;  // of several of one name, the first counts
  account.present = true;
  const auto quota = project.quotas.find(pool);
  account.quota = quota == project.quotas.end() ? project.quota : quota->second;
  account.priority = project.priority;
  account.sequence = project.sequence;
  account.past_use = project.past_use;
}

void Ledger::link(const std::vector<Project>& projects) {
  std::vector<int> parents = parents_of(projects);
  for (const std::vector<int>& cycle : cycles_of(parents)) {
    for (const int member : cycle) parents[static_cast<size_t>(member)] = -1;
  }
  std::vector<bool> is_linked(accounts_.size());
  for (size_t i = 0; i < projects.size(); ++i) {
    const ProjectIndex project = by_name_.at(projects[i].name);
    if (is_linked[static_cast<size_t>(project)]) continue;  // the first of its name counts
    is_linked[static_cast<size_t>(project)] = true;
    if (parents[i] < 0) continue;
    at(project).parent = by_name_.at(projects[static_cast<size_t>(parents[i])].name);
  }
  for (size_t i = 0; i < accounts_.size(); ++i) {
    if (!accounts_[i].present) continue;
    at(accounts_[i].parent).children.push_back(static_cast<ProjectIndex>(i));
  }
  const auto older = [&](ProjectIndex one, ProjectIndex other) {
    const Account& left = at(one);
    const Account& right = at(other);
    return std::tie(left.sequence, left.name) < std::tie(right.sequence, right.name);
  };
  std::sort(pool_.children.begin(), pool_.children.end(), older);
  for (Account& account : accounts_) {
    std::sort(account.children.begin(), account.children.end(), older);
  }
}

void Ledger::sum_up() {
  std::vector<ProjectIndex> top_down = pool_.children;
  for (size_t i = 0; i < top_down.size(); ++i) {
    const std::vector<ProjectIndex>& below = at(top_down[i]).children;
    top_down.insert(top_down.end(), below.begin(), below.end());
  }
  for (Account& account : accounts_) {
    account.in_all = account.own;
    account.unsettled = kAllResources;
  }
  pool_.unsettled = kAllResources;
  for (auto project = top_down.rbegin(); project != top_down.rend(); ++project) {
    const Books& below = at(*project).in_all;
    const ProjectIndex parent = at(*project).parent;
    if (parent == kNoProject) continue;
    Books& above = at(parent).in_all;
    above.allocated += below.allocated;
    above.non_preemptible += below.non_preemptible;
    above.requested += below.requested;
  }
}

void Ledger::set_total(const Amounts& total) {
  pool_.unsettled |= bits(total - pool_.fair_share);
  pool_.fair_share = total;
}

void Ledger::set_decay(double decay) {
  if (decay != decay_) {
    pool_.unsettled = kAllResources;
    for (Account& account : accounts_) account.unsettled = kAllResources;
  }
  decay_ = decay;
}

ProjectIndex Ledger::find(const std::string& name) const {
  const auto entry = by_name_.find(name);
  return entry == by_name_.end() || !at(entry->second).present ? kNoProject : entry->second;
}

const std::string& Ledger::name(ProjectIndex project) const {
  return at(project).name;
}

ProjectIndex Ledger::parent(ProjectIndex project) const {
  return at(project).parent;
}

const std::vector<ProjectIndex>& Ledger::children(ProjectIndex project) const {
  return at(project).children;
}

int Ledger::priority(ProjectIndex project) const {
  return at(project).priority;
}

std::vector<ProjectIndex> Ledger::path(ProjectIndex project) const {
  std::vector<ProjectIndex> path;
  for (; project != kNoProject; project = at(project).parent) path.push_back(project);
  std::reverse(path.begin(), path.end());
  return path;
}

std::pair<ProjectIndex, ProjectIndex> Ledger::siblings_above(ProjectIndex one,
                                                             ProjectIndex other) const {
  const std::vector<ProjectIndex> left = path(one);
  const std::vector<ProjectIndex> right = path(other);
  const auto [at_left, at_right] =
      std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  if (at_left == left.end() || at_right == right.end()) return {kNoProject, kNoProject};
  return {*at_left, *at_right};
}

Standing Ledger::standing(ProjectIndex project) const {
  const Account& account = at(project);
  return {.deserved = account.quota.deserved,
          .limit = account.quota.limit,
          .fair_share = account.fair_share,
          .allocated = account.in_all.allocated.clamped(),
          .allocated_non_preemptible = account.in_all.non_preemptible.clamped(),
          .requested = account.in_all.requested.clamped()};
}

template <class Change>
void Ledger::at_each_level(ProjectIndex leaf, const Change& change) {
  change(at(leaf).own);
  for (ProjectIndex level = leaf; level != kNoProject; level = at(level).parent) {
    change(at(level).in_all);
  }
}

void Ledger::unsettle_above(ProjectIndex leaf, const Amounts& amounts) {
  const unsigned changed = bits(amounts);
  for (ProjectIndex level = leaf; level != kNoProject; level = at(level).parent) {
    at(at(level).parent).unsettled |= changed;
  }
}

void Ledger::add_request(ProjectIndex leaf, const Amounts& amounts) {
  at_each_level(leaf, [&](Books& books) { books.requested += amounts; });
  unsettle_above(leaf, amounts);
}

void Ledger::remove_request(ProjectIndex leaf, const Amounts& amounts) {
  at_each_level(leaf, [&](Books& books) { books.requested -= amounts; });
  unsettle_above(leaf, amounts);
}

void Ledger::allocate(ProjectIndex leaf, const Amounts& amounts, bool preemptible) {
  at_each_level(leaf, [&](Books& books) {
    books.allocated += amounts;
    if (!preemptible) books.non_preemptible += amounts;
  });
}

void Ledger::release(ProjectIndex leaf, const Amounts& amounts, bool preemptible) {
  at_each_level(leaf, [&](Books& books) {
    books.allocated -= amounts;
    if (!preemptible) books.non_preemptible -= amounts;
  });
}

void Ledger::settle_fair_shares() {
  std::vector<ProjectIndex> to_settle{kNoProject};
  while (!to_settle.empty()) {
    const ProjectIndex project = to_settle.back();
    to_settle.pop_back();
    settle_children(project, to_settle);
  }
}

void Ledger::settle_children(ProjectIndex project, std::vector<ProjectIndex>& to_settle) {
  Account& above = at(project);
  const unsigned unsettled = std::exchange(above.unsettled, 0);
  if (unsettled == 0) return;
  std::vector<Claimant> claimants;
  for (const Resource resource : kResources) {
    if ((unsettled & bit(resource)) == 0) continue;
    claimants.clear();
    for (const ProjectIndex child : above.children) {
      const Account& account = at(child);
      claimants.push_back({.deserved = account.quota.deserved[resource],
                           .limit = account.quota.limit[resource],
                           .request = account.in_all.requested.clamped(resource),
                           .weight = account.quota.weight,
                           .priority = account.priority,
                           .past_use = static_cast<double>(account.past_use[resource]) / 1000,
                           .sequence = account.sequence});
    }
    const FairShares shares =
        fair_shares(above.fair_share[resource], claimants, share_unit(resource), decay_);
    for (size_t i = 0; i < claimants.size(); ++i) {
      Account& account = at(above.children[i]);
      if (account.fair_share[resource] == shares.share[i]) continue;
      account.fair_share[resource] = shares.share[i];
      account.unsettled |= bit(resource);
    }
  }
  for (const ProjectIndex child : above.children) {
    if (at(child).unsettled != 0) to_settle.push_back(child);
  }
}

}  // namespace muster::schedule
