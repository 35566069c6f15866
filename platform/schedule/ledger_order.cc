// Who is served next. The order is KAI Scheduler's (proportion/queue_order); where it compares two
// queues, this gives one key to each.
#include <algorithm>

#include "schedule/ledger.h"

namespace muster::schedule {

namespace {

// Who holds what it has no share of stands as if its share were this part of all there is.
constexpr double kNoShare = 1e-6;

}  // namespace

/// What it may hold: its quota or its fair share, whichever is more, within its limit.
int64_t Ledger::allocatable(const Account& account, Resource resource) {
  return std::min(account.quota.limit[resource],
                  std::max(account.quota.deserved[resource], account.fair_share[resource]));
}

/// The largest part that it holds of what it may hold, over the resources.
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
  // Over in every resource, as there: over in one is what the dominant share weighs.
  key.over_fair_share = std::all_of(kResources.begin(), kResources.end(), [&](Resource resource) {
    return now[resource] > account.fair_share[resource];
  });
  for (const Resource resource : kResources) {
    const int64_t deserved = account.quota.deserved[resource];
    if (deserved < kUnlimited && then[resource] > deserved) key.over_deserved_with_job = true;
    const int64_t share = allocatable(account, resource);
    if (share <= 0 && then[resource] > 0) key.uses_what_it_has_no_share_of = true;
    const auto total = static_cast<double>(std::max<int64_t>(pool_.fair_share[resource], 1));
    key.allocatable_share += share >= kUnlimited ? 1 : static_cast<double>(share) / total;
  }
  key.negative_priority = -account.priority;
  key.dominant_share_with_job = dominant_share(account, then);
  key.dominant_share = dominant_share(account, now);
  key.sequence = account.sequence;
  return key;
}

}  // namespace muster::schedule
