#include "schedule/reservation.h"

#include <algorithm>

#include "schedule/explain.h"
#include "schedule/trial.h"

namespace muster::schedule {

namespace {

// A shadow schedule gives up after so many ends: by then its answer would be a guess.
constexpr int kMostEnds = 4096;

/// The gang's own reservation does not block it.
void lift_own(Trial& trial, const Pool& pool, const GangState& gang) {
  for (const Reservation& kept : pool.kept) {
    if (kept.gang != &gang) continue;
    for (const Booking& booking : kept.bookings) trial.unreserve(booking);
  }
}

bool fits_later(Trial& trial, Pool& pool, const PlacementRequest& request,
                std::vector<Booking>& bookings) {
  if (pool.ledger.refuses(request.entry.leaf, request.charge, request.gang.gang.preemptible)) {
    return false;
  }
  auto placed = trial.place_later(request.gang.gang, request.counts, request.packing,
                                  held_bookings(request.gang));
  if (!placed) return false;
  bookings = *std::move(placed);
  return true;
}

}  // namespace

PlacementRequest request_of(const Options& options, GangState& gang, const Pool& pool,
                            const std::vector<int>& counts) {
  const PoolEntry& entry = entry_in(gang, pool);
  return {.gang = gang,
          .entry = entry,
          .counts = counts,
          .charge = charge_of(entry, counts),
          .packing = gang.gang.packing.value_or(options.packing)};
}

std::optional<ShadowStart> shadow_start(Pool& pool, const PlacementRequest& request, Time now) {
  Trial trial(pool);
  lift_own(trial, pool, request.gang);
  ShadowStart shadow{.start = now};
  if (fits_later(trial, pool, request, shadow.bookings)) return shadow;
  const bool by_capacity =
      pool.ledger.refuses(request.entry.leaf, request.charge, request.gang.gang.preemptible)
          .has_value();
  std::vector<Claim> claims;
  for (size_t group = 0; group < request.counts.size(); ++group) {
    if (request.counts[group] > 0) claims.push_back(request.gang.gang.groups[group].claim);
  }
  int ends = 0;
  for (const auto& [end, number, gang] : pool.expected_ends) {
    if (++ends > kMostEnds) break;
    bool may_help = by_capacity;
    const std::vector<Booking> held = held_bookings(*gang);
    for (const Booking& booking : held) trial.begin_release(booking);
    for (const Booking& booking : held) {
      may_help = may_help || might_hold_one(pool.nodes, booking.node, claims, FreeWhen::kLater);
    }
    const ProjectIndex leaf = entry_in(*gang, pool).leaf;
    if (leaf != kNoProject) trial.release(leaf, gang->counted, gang->gang.preemptible);
    // A gang whose expected end has passed may end at any moment.
    shadow.start = std::max(end, now);
    if (may_help && fits_later(trial, pool, request, shadow.bookings)) return shadow;
  }
  return std::nullopt;
}

Reservations::Reservations(const Cycle& cycle, Pool& pool) : cycle_(cycle), pool_(pool) {}

Reservations::~Reservations() {
  put_back_all();
  for (const Reservation& timed : timed_) {
    for (const Booking& booking : timed.bookings) pool_.nodes.unreserve(booking);
  }
}

bool Reservations::is_within_quota(const PlacementRequest& request) const {
  return !pool_.ledger.order_key(request.entry.leaf, request.charge).over_deserved_with_job;
}

/// Which reservations the gang must respect.
std::vector<bool> Reservations::honoured_by(const PlacementRequest& request,
                                            const std::vector<const Reservation*>& existing) const {
  std::vector<bool> honoured(existing.size());
  std::optional<bool> within_quota;
  const auto is_within = [&] {
    if (!within_quota) within_quota = is_within_quota(request);
    return *within_quota;
  };
  const std::optional<Milliseconds>& limit = request.gang.gang.time_limit;
  for (size_t i = 0; i < existing.size(); ++i) {
    const Reservation& reservation = *existing[i];
    if (reservation.gang == &request.gang) continue;
    if (reservation.start) {
      honoured[i] = !limit || cycle_.now + *limit > *reservation.start;
    } else {
      honoured[i] =
          reservation.leaf == request.entry.leaf || reservation.within_quota || !is_within();
    }
  }
  return honoured;
}

std::vector<const Reservation*> Reservations::all() const {
  std::vector<const Reservation*> all;
  for (const Reservation& kept : pool_.kept) all.push_back(&kept);
  for (const Reservation& timed : timed_) all.push_back(&timed);
  return all;
}

void Reservations::lift(const Reservation& reservation) {
  if (!lifted_.insert(reservation.gang).second) return;
  for (const Booking& booking : reservation.bookings) pool_.nodes.unreserve(booking);
}

void Reservations::put_back(const Reservation& reservation) {
  if (lifted_.erase(reservation.gang) == 0) return;
  for (const Booking& booking : reservation.bookings) pool_.nodes.reserve(booking);
}

void Reservations::put_back_all() {
  for (const Reservation* const one : all()) put_back(*one);
}

/// False if the gang, which has found no place, finds none without these reservations either: no
/// task of it fits on their nodes, whose resources are still in use. Most plans see reservations of
/// this kind, and to lift them changes the index of each of their nodes.
bool Reservations::would_help(const std::vector<const Reservation*>& lifted,
                              const PlacementRequest& request) const {
  std::vector<Claim> claims;
  for (size_t group = 0; group < request.counts.size(); ++group) {
    if (request.counts[group] > 0) claims.push_back(request.gang.gang.groups[group].claim);
  }
  return std::any_of(lifted.begin(), lifted.end(), [&](const Reservation* one) {
    return std::any_of(one->bookings.begin(), one->bookings.end(), [&](const Booking& booking) {
      return might_hold_one_unreserved(pool_.nodes, booking.node, claims);
    });
  });
}

/// Whether the gang, which has just found no place, would fit without these reservations.
bool Reservations::fits_without(const std::vector<const Reservation*>& honoured,
                                const PlacementRequest& request, const Shortage& shortage) {
  if (honoured.empty()) return false;
  std::vector<Booking> reserved;
  for (const Reservation* const one : honoured) {
    reserved.insert(reserved.end(), one->bookings.begin(), one->bookings.end());
  }
  const std::optional<bool> counted =
      pool_.nodes.would_fit_without(reserved, request.gang.gang, request.counts, shortage);
  if (counted) return *counted;
  if (!would_help(honoured, request)) return false;
  for (const Reservation* const one : honoured) lift(*one);
  const auto placed = place_now(request);
  if (placed) {
    for (const Booking& booking : *placed) pool_.nodes.unbook(booking);
  }
  for (const Reservation* const one : honoured) put_back(*one);
  return placed.ok();
}

base::Result<std::vector<Booking>, Shortage> Reservations::place_now(
    const PlacementRequest& request) {
  return pool_.nodes.place(request.gang.gang, request.counts,
                           {.room = FreeWhen::kNow, .packing = request.packing},
                           held_bookings(request.gang));
}

Reservations::Placed Reservations::place(const PlacementRequest& request,
                                         const SharedRequest* ask) {
  const std::vector<const Reservation*> existing = all();
  std::pair key(ask, honoured_by(request, existing));
  if (ask != nullptr) {
    const auto refused = refused_.find(key);
    if (refused != refused_.end()) return refused->second;
  }
  const Reservation* own = nullptr;
  std::vector<const Reservation*> honoured;
  for (size_t i = 0; i < existing.size(); ++i) {
    const Reservation* const one = existing[i];
    if (one->gang == &request.gang) own = one;
    if (key.second[i]) {
      honoured.push_back(one);
      put_back(*one);
    } else {
      lift(*one);
    }
  }
  Placed result;
  if (auto placed = place_now(request)) {
    result.bookings = *std::move(placed);
    refused_.clear();
  } else {
    result.shortage = std::move(placed).error();
  }
  if (result.shortage && fits_without(honoured, request, *result.shortage)) {
    result.only_reserved = true;
    result.held_by = ref_to(honoured.front()->gang->gang);
  }
  // If the gang starts, its reservation is dropped, and must be in the books for that.
  if (own != nullptr) put_back(*own);
  if (result.shortage && ask != nullptr) refused_.emplace(std::move(key), result);
  return result;
}

bool Reservations::takes_more() const {
  return cycle_.options.policy != Policy::kFifo && !pool_.expected_ends.empty() &&
         blocked_ < cycle_.options.reservations;
}

void Reservations::blocked(const PlacementRequest& request) {
  if (!takes_more()) return;
  ++blocked_;
  const bool is_kept =
      std::any_of(pool_.kept.begin(), pool_.kept.end(),
                  [&](const Reservation& kept) { return kept.gang == &request.gang; });
  if (is_kept) return;
  put_back_all();
  std::optional<ShadowStart> shadow = shadow_start(pool_, request, cycle_.now);
  if (!shadow || shadow->start <= cycle_.now) return;
  for (const Booking& booking : shadow->bookings) pool_.nodes.reserve(booking);
  timed_.push_back({.gang = &request.gang,
                    .leaf = request.entry.leaf,
                    .bookings = std::move(shadow->bookings),
                    .start = shadow->start,
                    .within_quota = is_within_quota(request)});
}

std::optional<Time> Reservations::latest_start() const {
  std::optional<Time> latest;
  for (const Reservation& timed : timed_) {
    if (!latest || *timed.start > *latest) latest = timed.start;
  }
  return latest;
}

void drop_reservation(Pool& pool, const GangState& gang) {
  const auto kept = std::find_if(pool.kept.begin(), pool.kept.end(),
                                 [&](const Reservation& one) { return one.gang == &gang; });
  if (kept == pool.kept.end()) return;
  for (const Booking& booking : kept->bookings) {
    pool.nodes.unreserve(booking);
    pool.grown.push_back(booking.node);
  }
  pool.kept.erase(kept);
  pool.dirty = true;
}

// Reservations for gangs that have waited too long while the ends of running gangs are unknown.

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

/// The placement of the gang on the first nodes of `waits`, as if their tasks had ended.
std::optional<std::vector<Booking>> choose_room(Pool& pool, const PlacementRequest& request,
                                                const std::vector<NodeWait>& waits) {
  Trial trial(pool);
  std::vector<Claim> claims;
  for (size_t group = 0; group < request.counts.size(); ++group) {
    if (request.counts[group] > 0) claims.push_back(request.gang.gang.groups[group].claim);
  }
  for (const NodeWait& wait : waits) {
    for (const Tenant& tenant : pool.tenants_of(wait.node)) {
      const TaskState& task = tenant.gang->tasks[static_cast<size_t>(tenant.task)];
      if (task.phase == TaskPhase::kRunning) trial.begin_release(task.held);
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
  std::optional<std::vector<Booking>> room = choose_room(pool, request, waits);
  if (!room) return;
  for (const Booking& booking : *room) pool.nodes.reserve(booking);
  const bool within_quota =
      !pool.ledger.order_key(waiting.leaf, request.charge).over_deserved_with_job;
  pool.kept.push_back({.gang = &gang,
                       .leaf = waiting.leaf,
                       .bookings = *std::move(room),
                       .within_quota = within_quota});
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
  std::vector<NodeWait> waits;  // the same for all gangs, because a reservation ends no task
  for (size_t seen = 0; seen < most && pool.kept.size() < most; ++seen) {
    WaitClass* const waiting = order.top();
    if (waiting == nullptr) return;
    GangState& gang = waiting->head();
    const bool lost = gang.gang.submitted + cycle.options.patience <= cycle.now;
    if (lost && !is_kept_room(pool, gang)) {
      if (waits.empty()) waits = waits_for_nodes(pool);
      keep_room(cycle, pool, gang, *waiting, waits);
    }
    order.drop(*waiting);
  }
}

}  // namespace muster::schedule
