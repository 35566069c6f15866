#include "schedule/ledger.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

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
  pool_.changed_requests.clear();
  for (Account& account : accounts_) {
    account.present = false;
    account.parent = kNoProject;
    account.children.clear();
    account.request_changed = false;
    account.changed_requests.clear();
  }
  for (const Project& project : projects) enter(project, pool);
  link(projects);
  sum_up();
  have_all_changed_ = true;
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
  const unsigned changed = bits(total - pool_.fair_share);
  if (changed == 0) return;
  pool_.unsettled |= changed;
  have_all_changed_ = true;
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
  if (one != other && one != kNoProject && other != kNoProject && parent(one) == parent(other)) {
    return {one, other};
  }
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

void Ledger::note_request(ProjectIndex leaf) {
  for (ProjectIndex level = leaf; level != kNoProject; level = at(level).parent) {
    if (std::exchange(at(level).request_changed, true)) continue;
    at(at(level).parent).changed_requests.push_back(level);
  }
}

void Ledger::add_request(ProjectIndex leaf, const Amounts& amounts) {
  at_each_level(leaf, [&](Books& books) { books.requested += amounts; });
  note_request(leaf);
}

void Ledger::remove_request(ProjectIndex leaf, const Amounts& amounts) {
  at_each_level(leaf, [&](Books& books) { books.requested -= amounts; });
  note_request(leaf);
}

void Ledger::allocate(ProjectIndex leaf, const Amounts& amounts, bool preemptible) {
  at_each_level(leaf, [&](Books& books) {
    books.allocated += amounts;
    if (!preemptible) books.non_preemptible += amounts;
  });
  note_changes(leaf);
}

void Ledger::release(ProjectIndex leaf, const Amounts& amounts, bool preemptible) {
  at_each_level(leaf, [&](Books& books) {
    books.allocated -= amounts;
    if (!preemptible) books.non_preemptible -= amounts;
  });
  note_changes(leaf);
}

void Ledger::note_change(ProjectIndex project) {
  if (!std::exchange(at(project).is_changed, true)) changed_.push_back(project);
}

void Ledger::note_changes(ProjectIndex leaf) {
  for (ProjectIndex level = leaf; level != kNoProject; level = at(level).parent) note_change(level);
}

std::optional<std::vector<ProjectIndex>> Ledger::take_changes() {
  std::vector<ProjectIndex> changed = std::exchange(changed_, {});
  for (const ProjectIndex project : changed) at(project).is_changed = false;
  if (std::exchange(have_all_changed_, false)) return std::nullopt;
  return changed;
}

void Ledger::settle_fair_shares() {
  std::vector<ProjectIndex> to_settle{kNoProject};
  while (!to_settle.empty()) {
    const ProjectIndex project = to_settle.back();
    to_settle.pop_back();
    settle_children(project, to_settle);
  }
}

bool Ledger::has_stale_shares() const {
  Ledger fresh = *this;
  fresh.pool_.unsettled = kAllResources;
  for (Account& account : fresh.accounts_) account.unsettled = kAllResources;
  fresh.settle_fair_shares();
  for (size_t i = 0; i < accounts_.size(); ++i) {
    const bool is_same = accounts_[i].fair_share == fresh.accounts_[i].fair_share;
    if (accounts_[i].present && !is_same) return true;
  }
  return false;
}

void Ledger::settle_children(ProjectIndex project, std::vector<ProjectIndex>& to_settle) {
  Account& above = at(project);
  unsigned unsettled = std::exchange(above.unsettled, 0);
  for (const ProjectIndex child : above.changed_requests) {
    Account& account = at(child);
    account.request_changed = false;
    if (!account.present) continue;
    for (const Resource resource : kResources) {
      const bool is_open = (unsettled & bit(resource)) == 0;
      if (is_open && !settle_request(above, child, resource)) unsettled |= bit(resource);
    }
  }
  for (const Resource resource : kResources) {
    if ((unsettled & bit(resource)) != 0) divide(above, resource);
  }
  const std::vector<ProjectIndex>& changed =
      unsettled == 0 ? above.changed_requests : above.children;
  std::copy_if(changed.begin(), changed.end(), std::back_inserter(to_settle),
               [this](ProjectIndex child) {
                 return at(child).unsettled != 0 || !at(child).changed_requests.empty();
               });
  above.changed_requests.clear();
}

void Ledger::divide(Account& above, Resource resource) {
  std::vector<Claimant> claimants;
  claimants.reserve(above.children.size());
  for (const ProjectIndex child : above.children) {
    Account& account = at(child);
    account.divided_request[resource] = account.in_all.requested.clamped(resource);
    claimants.push_back({.deserved = account.quota.deserved[resource],
                         .limit = account.quota.limit[resource],
                         .request = account.divided_request[resource],
                         .weight = account.quota.weight,
                         .priority = account.priority,
                         .past_use = static_cast<double>(account.past_use[resource]) / 1000,
                         .sequence = account.sequence});
  }
  const FairShares shares =
      fair_shares(above.fair_share[resource], claimants, share_unit(resource), decay_);
  above.divisions[static_cast<size_t>(resource)] = {.rest = shares.rest,
                                                    .has_takers = shares.has_takers};
  for (size_t i = 0; i < claimants.size(); ++i) {
    Account& account = at(above.children[i]);
    if (account.fair_share[resource] == shares.share[i]) continue;
    set_fair_share(above.children[i], resource, shares.share[i]);
  }
}

void Ledger::set_fair_share(ProjectIndex project, Resource resource, int64_t share) {
  at(project).fair_share[resource] = share;
  at(project).unsettled |= bit(resource);
  note_change(project);
}

/// Most requests change no share but their own. False: all shares have to be computed again.
bool Ledger::settle_request(Account& above, ProjectIndex project, Resource resource) {
  Account& child = at(project);
  const int64_t request = child.in_all.requested.clamped(resource);
  const int64_t limit = child.quota.limit[resource];
  const int64_t before = std::max<int64_t>(0, std::min(child.divided_request[resource], limit));
  const int64_t now = std::max<int64_t>(0, std::min(request, limit));
  child.divided_request[resource] = request;
  if (before == now) return true;

  // A project that gets less than it requests gets the same as long as it requests at least a unit
  // more: no round of the division satisfies it, before or now.
  const int64_t share = child.fair_share[resource];
  if (std::min(before, now) - share >= share_unit(resource)) return true;

  // A project within its quota gets what it requests. The others divide the rest, if there is one.
  const int64_t deserved = child.quota.deserved[resource];
  const bool is_within_quota =
      std::max(before, now) <=
      (deserved >= kUnlimited ? std::max<int64_t>(above.fair_share[resource], 0) : deserved);
  Division& division = above.divisions[static_cast<size_t>(resource)];
  const Wide rest = division.rest - (Wide{now} - before);
  const bool is_rest_shared = division.has_takers && (division.rest > 0 || rest > 0);
  if (!is_within_quota || is_rest_shared) return false;
  division.rest = rest;
  set_fair_share(project, resource, now);
  return true;
}

// The order in which projects are served. It is KAI Scheduler's order (proportion/queue_order),
// which compares two queues; here, each project gets a key.

namespace {

// The fair share that is assumed for a project that holds a resource without any share of it.
constexpr double kNoShare = 1e-6;

}  // namespace

/// The amount that the project may hold: its quota or its fair share, whichever is larger, within
/// its limit.
int64_t Ledger::allocatable(const Account& account, Resource resource) {
  return std::min(account.quota.limit[resource],
                  std::max(account.quota.deserved[resource], account.fair_share[resource]));
}

/// The largest proportion of the allocated amount to allocatable(), over all resources.
double Ledger::dominant_share(const Account& account, const WideAmounts& allocated) const {
  double dominant = 0;
  for (const Resource resource : kResources) {
    const auto held = static_cast<double>(allocated[resource]);
    const auto total = static_cast<double>(std::max<int64_t>(pool_.fair_share[resource], 1));
    const int64_t share = allocatable(account, resource);
    const double of = share >= kUnlimited ? total
                      : share > 0         ? static_cast<double>(share)
                                          : total * kNoShare;
    dominant = std::max(dominant, held / of);
  }
  return dominant;
}

OrderKey Ledger::order_key(ProjectIndex project, const Amounts& with_job) const {
  const Account& account = at(project);
  const WideAmounts& now = account.in_all.allocated;
  const WideAmounts then = now + with_job;
  OrderKey key;
  // As in KAI Scheduler: over in every resource. The dominant share covers a single resource.
  key.over_fair_share = std::all_of(kResources.begin(), kResources.end(), [&](Resource resource) {
    return now[resource] > account.fair_share[resource];
  });
  for (const Resource resource : kResources) {
    const int64_t deserved = account.quota.deserved[resource];
    if (deserved < kUnlimited && then[resource] > deserved) key.over_deserved_with_job = true;
    const int64_t share = allocatable(account, resource);
    if (share <= 0 && then[resource] > 0) key.uses_resource_without_share = true;
    const auto total = static_cast<double>(std::max<int64_t>(pool_.fair_share[resource], 1));
    key.allocatable_share += share >= kUnlimited ? 1 : static_cast<double>(share) / total;
  }
  key.negative_priority = -account.priority;
  key.dominant_share_with_job = dominant_share(account, then);
  key.dominant_share = dominant_share(account, now);
  key.sequence = account.sequence;
  return key;
}

// Which project may get more, and from which project it may take: KAI Scheduler's rules
// (proportion/capacity_policy and proportion/reclaimable). Resources that a request does not
// contain never block it.

namespace {

bool has_bound(int64_t bound) {
  return bound < kUnlimited;
}

/// The first requested resource of which `held` and the request together are above `bound`.
std::optional<Resource> first_above(const WideAmounts& held, const Amounts& request,
                                    const Amounts& bound) {
  for (const Resource resource : kResources) {
    if (request[resource] <= 0 || !has_bound(bound[resource])) continue;
    if (held[resource] + request[resource] > bound[resource]) return resource;
  }
  return std::nullopt;
}

bool stays_within(const WideAmounts& held, const Amounts& request, const Amounts& bound) {
  return !first_above(held, request, bound).has_value();
}

}  // namespace

std::optional<CapacityRefusal> Ledger::refuses(ProjectIndex leaf, const Amounts& request,
                                               bool preemptible) const {
  using What = CapacityRefusal::What;
  const auto refusal = [&](What what, ProjectIndex project, const WideAmounts& held,
                           const Amounts& bound) -> std::optional<CapacityRefusal> {
    const std::optional<Resource> above = first_above(held, request, bound);
    if (!above) return std::nullopt;
    return CapacityRefusal{.what = what,
                           .project = project,
                           .resource = *above,
                           .bound = bound[*above],
                           .allocated = held.clamped(*above),
                           .requested = request[*above]};
  };
  for (ProjectIndex level = leaf; level != kNoProject; level = at(level).parent) {
    const Account& account = at(level);
    const auto over = refusal(What::kLimit, level, account.in_all.allocated, account.quota.limit);
    if (over) return over;
  }
  for (ProjectIndex level = leaf; level != kNoProject && !preemptible; level = at(level).parent) {
    const Account& account = at(level);
    const auto over = refusal(What::kQuotaOfNonPreemptible, level, account.in_all.non_preemptible,
                              account.quota.deserved);
    if (over) return over;
  }
  return std::nullopt;
}

bool Ledger::may_reclaim(ProjectIndex leaf, const Amounts& request, bool preemptible) const {
  const Account& account = at(leaf);
  if (!stays_within(account.in_all.allocated, request, account.fair_share)) return false;
  for (ProjectIndex level = leaf; level != kNoProject && !preemptible; level = at(level).parent) {
    if (!stays_within(at(level).in_all.non_preemptible, request, at(level).quota.deserved)) {
      return false;
    }
  }
  return true;
}

bool Ledger::may_take(ProjectIndex reclaimer, const Amounts& request, ProjectIndex victim) const {
  const auto [taking, losing] = siblings_above(reclaimer, victim);
  if (taking == kNoProject) return false;
  const Account& from = at(losing);
  bool is_over_entitlement = false;
  bool above_deserved = false;
  for (const Resource resource : kResources) {
    if (request[resource] <= 0) continue;
    const Wide held = from.in_all.allocated[resource];
    const int64_t deserved = from.quota.deserved[resource];
    const int64_t most = allocatable(from, resource);
    is_over_entitlement = is_over_entitlement || (has_bound(most) && held > most);
    above_deserved = above_deserved || (has_bound(deserved) && held > deserved);
  }
  return is_over_entitlement ||
         (above_deserved &&
          stays_within(at(taking).in_all.allocated, request, at(taking).quota.deserved));
}

bool Ledger::is_fair_between(ProjectIndex reclaimer, const Amounts& request,
                             ProjectIndex victim) const {
  const auto [taking, losing] = siblings_above(reclaimer, victim);
  return taking == kNoProject || is_fair_to(at(taking), at(losing), request);
}

bool Ledger::is_fair_to(const Account& reclaimer, const Account& sibling,
                        const Amounts& request) const {
  return std::none_of(kResources.begin(), kResources.end(), [&](Resource resource) {
    if (request[resource] <= 0) return false;
    if (!has_bound(reclaimer.quota.deserved[resource]) &&
        !has_bound(sibling.quota.deserved[resource])) {
      return false;
    }
    const Wide held = reclaimer.in_all.allocated.clamped(resource);
    const Wide siblings = sibling.in_all.allocated.clamped(resource);
    const int64_t share = reclaimer.fair_share[resource];
    const int64_t siblings_share = sibling.fair_share[resource];
    // held / share >= siblings / siblings_share, without dividing.
    return held > share && siblings_share > 0 && held * siblings_share >= siblings * share;
  });
}

}  // namespace muster::schedule
