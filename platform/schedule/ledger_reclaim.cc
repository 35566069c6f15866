// Who may have more, and who may take from whom: KAI Scheduler's rules (proportion/capacity_policy
// and proportion/reclaimable). Resources that a request does not ask for never stand in its way.
#include <algorithm>

#include "schedule/ledger.h"

namespace muster::schedule {

namespace {

bool has_bound(int64_t bound) {
  return bound < kUnlimited;
}

/// The first resource that is asked for and of which `held` with the request is above `bound`.
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
  bool above_what_it_may_hold = false;
  bool above_deserved = false;
  for (const Resource resource : kResources) {
    if (request[resource] <= 0) continue;
    const Wide held = from.in_all.allocated[resource];
    const int64_t deserved = from.quota.deserved[resource];
    const int64_t most = allocatable(from, resource);
    above_what_it_may_hold = above_what_it_may_hold || (has_bound(most) && held > most);
    above_deserved = above_deserved || (has_bound(deserved) && held > deserved);
  }
  return above_what_it_may_hold ||
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
