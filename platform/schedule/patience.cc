// Room for those that have waited too long while nobody knows when what runs will end.
#include <algorithm>

#include "schedule/reservation.h"
#include "schedule/trial.h"

namespace muster::schedule {

namespace {

bool may_lose_patience(const WaitClass& waiting) {
  const bool waits_for_room = waiting.constraint == Constraint::kRoom ||
                              waiting.constraint == Constraint::kTopology ||
                              waiting.constraint == Constraint::kReserved;
  return waits_for_room && !waiting.only_grows();
}

bool is_kept_room(const Pool& pool, const GangState& gang) {
  return std::any_of(pool.kept.begin(), pool.kept.end(),
                     [&](const Reservation& kept) { return kept.gang == &gang; });
}

/// How long there is to wait for a node: less goes first.
struct Wait {
  bool unknown_end = false;
  Time last_end{};
  int64_t busy_gpu_milli = 0;
  NodeIndex node = -1;

  auto operator<=>(const Wait&) const = default;
};

std::vector<Wait> waits_for_nodes(const Pool& pool) {
  std::vector<Wait> waits;
  for (const NodeIndex node : pool.nodes.all()) {
    Wait wait{.node = node};
    if (static_cast<size_t>(node) < pool.tenants.size()) {
      for (const Tenant& tenant : pool.tenants[static_cast<size_t>(node)]) {
        const TaskState& task = tenant.gang->tasks[static_cast<size_t>(tenant.task)];
        if (task.phase != TaskPhase::kRunning) continue;
        wait.unknown_end = wait.unknown_end || !tenant.gang->expected_end;
        if (tenant.gang->expected_end) {
          wait.last_end = std::max(wait.last_end, *tenant.gang->expected_end);
        }
        wait.busy_gpu_milli +=
            int64_t{task.held.share_milli} * __builtin_popcountll(task.held.devices);
      }
    }
    waits.push_back(wait);
  }
  std::sort(waits.begin(), waits.end());
  return waits;
}

/// Where the gang would go if what runs on the nodes with the least to wait for were gone.
std::optional<std::vector<Booking>> choose_room(Pool& pool, const Asking& asking) {
  Trial trial(pool);
  std::vector<Claim> claims;
  for (size_t group = 0; group < asking.counts.size(); ++group) {
    if (asking.counts[group] > 0) claims.push_back(asking.gang.gang.groups[group].claim);
  }
  for (const Wait& wait : waits_for_nodes(pool)) {
    for (const Tenant& tenant : pool.tenants_of(wait.node)) {
      const TaskState& task = tenant.gang->tasks[static_cast<size_t>(tenant.task)];
      if (task.phase == TaskPhase::kRunning) trial.begin_release(task.held);
    }
    if (!might_hold_one(pool.nodes, wait.node, claims, Room::kLater)) continue;
    auto placed = trial.place_later(asking.gang.gang, asking.counts, asking.packing,
                                    held_bookings(asking.gang));
    if (placed) return *std::move(placed);
  }
  return std::nullopt;
}

void keep_room(Cycle& cycle, Pool& pool, GangState& gang, const WaitClass& waiting) {
  const Asking asking = asking_of(cycle.options, gang, pool, waiting.key.ask.counts);
  std::optional<std::vector<Booking>> room = choose_room(pool, asking);
  if (!room) return;
  for (const Booking& booking : *room) pool.nodes.reserve(booking);
  const bool within_quota =
      !pool.ledger.order_key(waiting.leaf, asking.charge).over_deserved_with_job;
  pool.kept.push_back({.gang = &gang, .bookings = *std::move(room), .within_quota = within_quota});
}

/// Whether anybody could be kept room now; else looks again when the next one's patience is over.
bool anybody_lost_patience(const Cycle& cycle, Pool& pool) {
  bool any = false;
  for (const ProjectQueue& queue : pool.queues) {
    for (const auto& [key, waiting] : queue.classes) {
      if (waiting->waiters.empty() || !may_lose_patience(*waiting)) continue;
      const GangState& head = waiting->head();
      if (is_kept_room(pool, head)) continue;
      const Time until = head.gang.submitted + cycle.options.patience;
      if (until <= cycle.now) {
        any = true;
      } else {
        pool.look_again_at(until);
      }
    }
  }
  return any;
}

}  // namespace

void lose_patience(Cycle& cycle, Pool& pool) {
  const auto most = static_cast<size_t>(std::max(cycle.options.reservations, 0));
  if (cycle.options.policy == Policy::kFifo || pool.kept.size() >= most) return;
  if (!anybody_lost_patience(cycle, pool)) return;
  ServeOrder order(pool, cycle.options.policy);
  for (const ProjectQueue& queue : pool.queues) {
    for (const auto& [key, waiting] : queue.classes) {
      if (may_lose_patience(*waiting)) order.add(*waiting);
    }
  }
  for (size_t seen = 0; seen < most && pool.kept.size() < most; ++seen) {
    WaitClass* const waiting = order.top();
    if (waiting == nullptr) return;
    GangState& gang = waiting->head();
    const bool lost = gang.gang.submitted + cycle.options.patience <= cycle.now;
    if (lost && !is_kept_room(pool, gang)) keep_room(cycle, pool, gang, *waiting);
    order.drop(*waiting);
  }
}

}  // namespace muster::schedule
