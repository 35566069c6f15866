#include "schedule/patience.h"

#include <algorithm>
#include <utility>

#include "schedule/gang_books.h"
#include "schedule/reservation.h"
#include "schedule/reserved_limits.h"
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

/// How long a gang would wait for a node. Nodes with the shortest wait are chosen first.
struct NodeWait {
  bool unknown_end = false;
  Time last_end{};
  int64_t busy_gpu_milli = 0;
  NodeIndex node = -1;

  auto operator<=>(const NodeWait&) const = default;
};

std::vector<NodeWait> waits_for_nodes(const Pool& pool) {
  std::vector<NodeWait> waits;
  for (const NodeIndex node : pool.nodes.all()) {
    NodeWait wait{.node = node};
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

/// The placement of the gang on the first nodes of `waits`, as if their tasks had ended; `emptied`
/// gets these nodes.
std::optional<std::vector<Booking>> choose_room(Pool& pool, const PlacementRequest& request,
                                                const std::vector<NodeWait>& waits,
                                                std::vector<NodeIndex>& emptied) {
  Trial trial(pool);
  std::vector<Claim> claims;
  for (size_t group = 0; group < request.counts.size(); ++group) {
    if (request.counts[group] > 0) claims.push_back(request.gang.gang.groups[group].claim);
  }
  for (const NodeWait& wait : waits) {
    emptied.push_back(wait.node);
    for (const Tenant& tenant : pool.tenants_of(wait.node)) {
      const TaskState& task = tenant.gang->tasks[static_cast<size_t>(tenant.task)];
      // The gang's own tasks continue.
      const bool ends = task.phase == TaskPhase::kRunning && tenant.gang != &request.gang;
      if (ends) trial.begin_release(task.held);
    }
    if (!might_hold_one(pool.nodes, wait.node, claims, FreeWhen::kLater)) continue;
    auto placed = trial.place_later(request.gang.gang, request.counts, request.packing,
                                    held_bookings(request.gang));
    if (placed) return *std::move(placed);
  }
  return std::nullopt;
}

void keep_room(Cycle& cycle, Pool& pool, GangState& gang, const WaitClass& waiting,
               const std::vector<NodeWait>& waits) {
  const PlacementRequest request = request_of(cycle.options, gang, pool, waiting.key.ask.counts);
  // A gang that started in this plan may have used up the limit.
  if (pool.ledger.refuses(waiting.leaf, request.charge, gang.gang.preemptible)) return;
  std::vector<NodeIndex> emptied;
  std::optional<std::vector<Booking>> room = choose_room(pool, request, waits, emptied);
  if (!room) return;
  const bool within_quota =
      !pool.ledger.order_key(waiting.leaf, request.charge).over_deserved_with_job;
  add_reservation(pool, pool.kept,
                  {.gang = &gang,
                   .leaf = waiting.leaf,
                   .bookings = *std::move(room),
                   .within_quota = within_quota,
                   .emptied = std::move(emptied)});
}

/// When the patience of the gang ends. REQUIRES: note_waits().
Time patient_until(const Cycle& cycle, const GangState& gang) {
  return gang.waits_since.value_or(cycle.now) + cycle.options.patience;
}

/// The gangs of the first plan wait since their submission: an earlier scheduler may have had them.
void note_waits(const Cycle& cycle, Pool& pool) {
  const GangSet entered = std::exchange(pool.entered, {});
  for (GangState* const gang : entered) {
    if (gang->waits_since) continue;
    gang->waits_since = cycle.number == 1 ? std::min(gang->gang.submitted, cycle.now) : cycle.now;
  }
}

/// Whether a gang can get a reservation now; else looks again when the next gang's patience is
/// over.
bool anybody_lost_patience(const Cycle& cycle, Pool& pool) {
  bool any = false;
  for (const ProjectQueue& queue : pool.queues) {
    for (const auto& [key, waiting] : queue.classes) {
      if (waiting->waiters.empty() || !may_lose_patience(*waiting)) continue;
      const GangState& head = waiting->head();
      if (is_kept_room(pool, head)) continue;
      const Time until = patient_until(cycle, head);
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
  note_waits(cycle, pool);
  // What these leave goes to other gangs in the next plan.
  if (review_reservations(pool)) pool.look_again_at(cycle.now);
  const auto most = static_cast<size_t>(std::max(cycle.options.reservations, 0));
  if (cycle.options.policy == Policy::kFifo || pool.kept.size() >= most) return;
  if (!anybody_lost_patience(cycle, pool)) return;
  ServeOrder order(pool, cycle.options.policy);
  for (const ProjectQueue& queue : pool.queues) {
    for (const auto& [key, waiting] : queue.classes) {
      if (may_lose_patience(*waiting)) order.add(*waiting);
    }
  }
  std::vector<NodeWait> waits;  // the same for all gangs, because a reservation ends no task
  for (size_t seen = 0; seen < most && pool.kept.size() < most; ++seen) {
    WaitClass* const waiting = order.top();
    if (waiting == nullptr) return;
    GangState& gang = waiting->head();
    const bool lost = patient_until(cycle, gang) <= cycle.now;
    const bool may_get_one = lost && !is_kept_room(pool, gang);
    if (may_get_one && held_at_limit(pool, request_of(cycle.options, gang, pool,
                                                      waiting->key.ask.counts)) == nullptr) {
      if (waits.empty()) waits = waits_for_nodes(pool);
      keep_room(cycle, pool, gang, *waiting, waits);
    }
    order.drop(*waiting);
  }
}

}  // namespace muster::schedule
