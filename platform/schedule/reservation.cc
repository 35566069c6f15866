#include "schedule/reservation.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "schedule/explain.h"
#include "schedule/gang_books.h"
#include "schedule/reserved_limits.h"
#include "schedule/trial.h"

namespace muster::schedule {

namespace {

// A shadow schedule gives up after so many ends: by then its answer would be a guess.
constexpr int kMostEnds = 4096;

/// The gang's own reservation does not block it.
void lift_own(Trial& trial, const Pool& pool, const GangState& gang) {
  for (const Reservation& kept : pool.kept) {
    if (kept.gang != &gang) continue;
    for (const Booking& booking : kept.bookings) trial.unkeep(booking);
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

Amounts least_needed(const PlacementRequest& request) {
  Amounts least;
  for (size_t group = 0; group < request.counts.size(); ++group) {
    const Claim& claim = request.gang.gang.groups[group].claim;
    // The share that a part of a GPU's memory is depends on the node: zero is never too much.
    const int64_t gpu_milli = claim.gpus * int64_t{kWholeGpu} + claim.gpu_share_milli;
    least += Amounts{gpu_milli, claim.cpu_milli, claim.memory_bytes} * request.counts[group];
  }
  return least;
}

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
  for (const Reservation& timed : pool.timed) {
    if (timed.gang != &request.gang) count_in_ledger(trial, pool, timed);
  }
  ShadowStart shadow{.start = now};
  // An attempt to place the gang costs more than a look at what is free in total, at most.
  const Amounts least = least_needed(request);
  Amounts free = pool.nodes.free_in_all(FreeWhen::kLater);
  if (least.within(free) && fits_later(trial, pool, request, shadow.bookings)) return shadow;
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
    for (const Booking& booking : held) {
      trial.begin_release(booking);
      free += amounts_of(booking);
    }
    for (const Booking& booking : held) {
      may_help = may_help || might_hold_one(pool.nodes, booking.node, claims, FreeWhen::kLater);
    }
    const ProjectIndex leaf = entry_in(*gang, pool).leaf;
    if (leaf != kNoProject) trial.release(leaf, gang->counted, gang->gang.preemptible);
    // A gang whose expected end has passed may end at any moment.
    shadow.start = std::max(end, now);
    if (!may_help || !least.within(free)) continue;
    if (fits_later(trial, pool, request, shadow.bookings)) return shadow;
  }
  return std::nullopt;
}

// Which running tasks yield to the reservations on their node.

namespace {

std::vector<NodeIndex> different_nodes(const std::vector<Booking>& bookings) {
  std::vector<NodeIndex> nodes;
  for (const Booking& booking : bookings) nodes.push_back(booking.node);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool is_among(const std::vector<NodeIndex>& sorted, NodeIndex node) {
  return std::binary_search(sorted.begin(), sorted.end(), node);
}

/// Writes the reservations that are in the books of the node into `there`, reusing its memory.
void find_reservations_on(const Pool& pool, NodeIndex node,
                          std::vector<const Reservation*>& there) {
  there.clear();
  for (const auto* const all : {&pool.kept, &pool.timed}) {
    for (const Reservation& one : *all) {
      if (!one.lifted && is_among(one.nodes, node)) there.push_back(&one);
    }
  }
}

/// Whether the reservation is for the time after the end of the task, which runs.
bool outlasts(const Reservation& reservation, const GangState& gang, const TaskState& task) {
  if (reservation.gang == &gang) return false;
  if (reservation.start) return gang.expected_end && *gang.expected_end <= *reservation.start;
  return task.seated <= reservation.seatings && is_among(reservation.emptied, task.held.node);
}

/// A task yields only if every reservation on its node begins after the task ends.
bool has_to_yield(const std::vector<const Reservation*>& there, const GangState& gang,
                  const TaskState& task) {
  return !there.empty() && std::all_of(there.begin(), there.end(), [&](const Reservation* one) {
    return outlasts(*one, gang, task);
  });
}

/// Call when reservations on these nodes came or went, or were lifted or put back.
void settle_yielding(Pool& pool, const std::vector<NodeIndex>& nodes) {
  std::vector<const Reservation*> there;
  for (const NodeIndex node : nodes) {
    const std::vector<Tenant>& tenants = pool.tenants_of(node);
    if (tenants.empty()) continue;
    find_reservations_on(pool, node, there);
    for (const Tenant& tenant : tenants) {
      TaskState& task = tenant.gang->tasks[static_cast<size_t>(tenant.task)];
      if (task.phase != TaskPhase::kRunning) continue;
      pool.nodes.set_yields(task.held, has_to_yield(there, *tenant.gang, task));
    }
  }
}

}  // namespace

void add_reservation(Pool& pool, std::vector<Reservation>& to, Reservation reservation) {
  for (const Booking& booking : reservation.bookings) pool.nodes.keep(booking);
  reservation.nodes = different_nodes(reservation.bookings);
  std::erase_if(reservation.emptied,
                [&](NodeIndex node) { return !is_among(reservation.nodes, node); });
  std::sort(reservation.emptied.begin(), reservation.emptied.end());
  reservation.seatings = pool.seatings;
  to.push_back(std::move(reservation));
  settle_yielding(pool, to.back().nodes);
}

Reservations::Reservations(const Cycle& cycle, Pool& pool) : cycle_(cycle), pool_(pool) {}

Reservations::~Reservations() {
  put_back_all();
  const std::vector<Reservation> timed = std::exchange(pool_.timed, {});
  for (const Reservation& one : timed) {
    for (const Booking& booking : one.bookings) pool_.nodes.unkeep(booking);
    settle_yielding(pool_, one.nodes);
  }
}

void Reservations::started(const std::vector<Booking>& bookings) {
  if (!pool_.timed.empty()) settle_yielding(pool_, different_nodes(bookings));
}

bool Reservations::is_within_quota(const PlacementRequest& request) const {
  return !pool_.ledger.order_key(request.entry.leaf, request.charge).over_deserved_with_job;
}

/// Which reservations the gang must respect.
std::vector<bool> Reservations::honoured_by(const PlacementRequest& request,
                                            const std::vector<Reservation*>& existing) const {
  std::vector<bool> honoured(existing.size());
  std::optional<bool> within_quota;
  const auto is_within = [&] {
    if (!within_quota) within_quota = is_within_quota(request);
    return *within_quota;
  };
  for (size_t i = 0; i < existing.size(); ++i) {
    const Reservation& reservation = *existing[i];
    if (reservation.gang == &request.gang) continue;
    if (reservation.start) {
      honoured[i] = !ends_before(cycle_.now, request, reservation);
    } else {
      honoured[i] =
          reservation.leaf == request.entry.leaf || reservation.within_quota || !is_within();
    }
  }
  return honoured;
}

std::vector<Reservation*> Reservations::all() const {
  std::vector<Reservation*> all;
  for (Reservation& kept : pool_.kept) all.push_back(&kept);
  for (Reservation& timed : pool_.timed) all.push_back(&timed);
  return all;
}

void Reservations::lift(Reservation& reservation) {
  if (std::exchange(reservation.lifted, true)) return;
  for (const Booking& booking : reservation.bookings) pool_.nodes.unkeep(booking);
  settle_yielding(pool_, reservation.nodes);
}

void Reservations::put_back(Reservation& reservation) {
  if (!std::exchange(reservation.lifted, false)) return;
  for (const Booking& booking : reservation.bookings) pool_.nodes.keep(booking);
  settle_yielding(pool_, reservation.nodes);
}

void Reservations::put_back_all() {
  for (Reservation* const one : all()) put_back(*one);
}

/// False if the gang, which has found no place, finds none without these reservations either: no
/// task of it fits on their nodes, whose resources are still in use. Most plans see reservations of
/// this kind, and to lift them changes the index of each of their nodes.
bool Reservations::would_help(const std::vector<Reservation*>& lifted,
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
bool Reservations::fits_without(const std::vector<Reservation*>& honoured,
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
  for (Reservation* const one : honoured) lift(*one);
  const auto placed = place_now(request);
  if (placed) {
    for (const Booking& booking : *placed) pool_.nodes.unbook(booking);
  }
  for (Reservation* const one : honoured) put_back(*one);
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
  const std::vector<Reservation*> existing = all();
  std::pair key(ask, honoured_by(request, existing));
  if (ask != nullptr) {
    const auto refused = refused_.find(key);
    if (refused != refused_.end()) return refused->second;
  }
  Reservation* own = nullptr;
  std::vector<Reservation*> honoured;
  for (size_t i = 0; i < existing.size(); ++i) {
    Reservation* const one = existing[i];
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
         static_cast<int>(blocked_.size()) < cycle_.options.reservations;
}

void Reservations::blocked(const PlacementRequest& request) {
  if (!takes_more()) return;
  if (!blocked_.insert(&request.gang).second) return;  // it is served again
  const bool is_kept =
      std::any_of(pool_.kept.begin(), pool_.kept.end(),
                  [&](const Reservation& kept) { return kept.gang == &request.gang; });
  if (is_kept) return;
  put_back_all();
  std::optional<ShadowStart> shadow = shadow_start(pool_, request, cycle_.now);
  if (!shadow) return;
  add_reservation(pool_, pool_.timed,
                  {.gang = &request.gang,
                   .leaf = request.entry.leaf,
                   .bookings = std::move(shadow->bookings),
                   // Where running gangs are past their expected end, or leave, the start is now.
                   .start = std::max(shadow->start, cycle_.now),
                   .within_quota = is_within_quota(request)});
}

std::optional<Time> Reservations::latest_start() const {
  std::optional<Time> latest;
  for (const Reservation& timed : pool_.timed) {
    if (!latest || *timed.start > *latest) latest = timed.start;
  }
  return latest;
}

void drop_reservation(Pool& pool, const GangState& gang) {
  const auto kept = std::find_if(pool.kept.begin(), pool.kept.end(),
                                 [&](const Reservation& one) { return one.gang == &gang; });
  if (kept == pool.kept.end()) return;
  for (const Booking& booking : kept->bookings) pool.nodes.unkeep(booking);
  forget_reservation(pool, gang);
  pool.dirty = true;
}

void forget_reservation(Pool& pool, const GangState& gang) {
  const auto kept = std::find_if(pool.kept.begin(), pool.kept.end(),
                                 [&](const Reservation& one) { return one.gang == &gang; });
  if (kept == pool.kept.end()) return;
  const std::vector<NodeIndex> nodes = std::move(kept->nodes);
  pool.kept.erase(kept);
  settle_yielding(pool, nodes);
  pool.grown.insert(pool.grown.end(), nodes.begin(), nodes.end());
}

bool review_reservations(Pool& pool) {
  std::vector<const GangState*> over;
  for (Reservation& kept : pool.kept) {
    const PoolEntry& entry = entry_in(*kept.gang, pool);
    const WaitClass* const waiting = entry.waits_in;
    if (waiting == nullptr || waiting->only_grows() || entry.leaf != kept.leaf) {
      over.push_back(kept.gang);
      continue;
    }
    const std::vector<int>& counts = waiting->key.ask.counts;
    const Amounts charge = charge_of(entry, counts);
    const auto tasks = static_cast<size_t>(std::accumulate(counts.begin(), counts.end(), 0));
    if (kept.bookings.size() != tasks ||
        pool.ledger.refuses(entry.leaf, charge, kept.gang->gang.preemptible)) {
      over.push_back(kept.gang);
      continue;
    }
    const bool within = !pool.ledger.order_key(entry.leaf, charge).over_deserved_with_job;
    if (std::exchange(kept.within_quota, within) != within) ++pool.epoch;
  }
  for (const GangState* const gang : over) drop_reservation(pool, *gang);
  if (!over.empty()) ++pool.epoch;
  return !over.empty();
}

// Promises and reservations on a node that has become too small.

void drop_lost_promise(Pool& pool, GangState& gang) {
  const bool is_lost =
      std::any_of(gang.tasks.begin(), gang.tasks.end(), [&](const TaskState& task) {
        return task.promised && !pool.nodes.has_reserved(*task.promised);
      });
  if (!is_lost) return;
  drop_promise(gang);
  refresh(gang);
}

void drop_what_no_longer_fits(Pool& pool, NodeIndex node) {
  // The youngest first: the older ones may fit without them.
  const std::vector<GangState*> promised(pool.promised.rbegin(), pool.promised.rend());
  for (GangState* const gang : promised) {
    const bool is_there = std::any_of(
        gang->tasks.begin(), gang->tasks.end(),
        [&](const TaskState& task) { return task.promised && task.promised->node == node; });
    if (is_there) drop_lost_promise(pool, *gang);
  }
  for (size_t i = pool.kept.size(); i-- > 0;) {
    const std::vector<Booking>& bookings = pool.kept[i].bookings;
    const bool lacks_room =
        std::any_of(bookings.begin(), bookings.end(), [&](const Booking& booking) {
          return booking.node == node && !pool.nodes.has_kept(booking);
        });
    if (lacks_room) drop_reservation(pool, *pool.kept[i].gang);
  }
}

bool has_wrong_node_books(Pool& pool) {
  Nodes fresh;
  for (const NodeIndex node : pool.nodes.all()) fresh.set(pool.nodes.node(node));
  const auto there = [&](Booking booking) {
    booking.node = *fresh.find(pool.nodes.node(booking.node).name);
    return booking;
  };
  std::vector<const Reservation*> reserved;
  for (const NodeIndex node : pool.nodes.all()) {
    find_reservations_on(pool, node, reserved);
    for (const Tenant& tenant : pool.tenants_of(node)) {
      const TaskState& task = tenant.gang->tasks[static_cast<size_t>(tenant.task)];
      fresh.book(there(task.held));
      if (task.phase == TaskPhase::kLeaving && !task.stuck) fresh.begin_release(there(task.held));
      const bool is_running = task.phase == TaskPhase::kRunning;
      if (is_running && task.held.yields != has_to_yield(reserved, *tenant.gang, task)) return true;
    }
  }
  for (const GangState* const gang : pool.promised) {
    for (const TaskState& task : gang->tasks) {
      if (task.promised) fresh.reserve(there(*task.promised));
    }
  }
  for (const Reservation& kept : pool.kept) {
    for (const Booking& booking : kept.bookings) fresh.keep(there(booking));
  }
  return !(fresh == pool.nodes);
}

}  // namespace muster::schedule
