// Reservations: resources kept for blocked gangs, so that gangs behind them do not take these
// forever.
//
// If the ends of running gangs are known (time limits), a blocked gang gets the earliest start that
// these ends allow, and gangs that end before that start may pass (backfill). Otherwise, a gang
// that has waited longer than Options::patience gets nodes, those that are expected to be free
// first, and no other gang gets what it needs there.
//
// The bound: a gang that is among the first Options::reservations blocked gangs when its patience
// ends starts at the latest one plan after the last task on the chosen nodes has ended. If all
// running gangs have time limits, it starts no later than its first reserved start. Three
// things precede a reservation: gangs that are served before it (until its patience ends); quotas: a
// reservation of a gang over its project's quota does not keep another project from its quota; and,
// if it has a start, gangs past their patience.
//
// The tasks whose end a reservation waits for yield to it (Booking::yields). Another gang starts on
// the same node if it fits beside the running tasks, and also beside the reservations once these
// tasks have ended.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "schedule/cycle.h"

namespace muster::schedule {

/// A gang and its request in a pool.
struct PlacementRequest {
  GangState& gang;
  const PoolEntry& entry;
  std::vector<int> counts;
  Amounts charge;
  Packing packing;
};
PlacementRequest request_of(const Options& options, GangState& gang, const Pool& pool,
                            const std::vector<int>& counts);

/// What the tasks of the request take at least, in total.
Amounts least_needed(const PlacementRequest& request);

/// The earliest start that the expected ends of running gangs allow, with the placement; nothing if
/// there is none. Undoes its changes of `pool`.
struct ShadowStart {
  Time start;
  std::vector<Booking> bookings;
};
std::optional<ShadowStart> shadow_start(Pool& pool, const PlacementRequest& request, Time now);

/// The reservations of one pool during one run of allocate(). Reservations with a start exist only
/// for this run; those of gangs past their patience are in Pool::kept.
class Reservations {
 public:
  Reservations(const Cycle& cycle, Pool& pool);
  ~Reservations();
  Reservations(const Reservations&) = delete;
  Reservations& operator=(const Reservations&) = delete;

  /// Places the gang now, outside the reservations that it must respect.
  struct Placed {
    std::optional<std::vector<Booking>> bookings;
    std::optional<Shortage> shortage;
    bool only_reserved = false;  ///< the gang fits, but only on reserved resources
    job::JobRef held_by;
  };
  /// `ask` is that of the request's class, so that a refusal is remembered for the other classes.
  Placed place(const PlacementRequest& request, const SharedRequest* ask = nullptr);
  /// The gang did not fit: makes a reservation if the gang is among the first blocked ones.
  void blocked(const PlacementRequest& request);
  /// A gang has started on `bookings`: it may end before a reservation with a start begins.
  void started(const std::vector<Booking>& bookings);
  bool takes_more() const;
  /// Whether gangs that end in time may pass a reservation.
  bool any_with_start() const { return !pool_.timed.empty(); }
  std::optional<Time> latest_start() const;

 private:
  std::vector<bool> honoured_by(const PlacementRequest& request,
                                const std::vector<Reservation*>& existing) const;
  bool is_within_quota(const PlacementRequest& request) const;
  bool would_help(const std::vector<Reservation*>& lifted, const PlacementRequest& request) const;
  bool fits_without(const std::vector<Reservation*>& honoured, const PlacementRequest& request,
                    const Shortage& shortage);
  base::Result<std::vector<Booking>, Shortage> place_now(const PlacementRequest& request);
  std::vector<Reservation*> all() const;
  // The next placement mostly lifts the same reservations: putting them back only when needed saves
  // most updates of the nodes' index.
  void lift(Reservation& reservation);
  void put_back(Reservation& reservation);
  void put_back_all();

  const Cycle& cycle_;
  Pool& pool_;
  /// Requests that found no place since the last gang started, with the reservations that they had
  /// to respect, in the order of all(): the same request finds none again. There may be thousands
  /// of classes with one request, one for each project.
  std::map<std::pair<const SharedRequest*, std::vector<bool>>, Placed> refused_;
  std::set<const GangState*> blocked_;  ///< only to look up: addresses have no order
};

/// Adds to `to`, which is Pool::kept or Pool::timed, and keeps the resources on the nodes.
void add_reservation(Pool& pool, std::vector<Reservation>& to, Reservation reservation);
/// Drops the reservations of gangs that no longer wait, that request another number of tasks, or
/// that a limit or quota keeps from starting; and determines again which others are within the
/// quota. Returns whether any was dropped.
bool review_reservations(Pool& pool);
void drop_reservation(Pool& pool, const GangState& gang);
/// As drop_reservation(), if a committed trial has given the resources back.
void forget_reservation(Pool& pool, const GangState& gang);

/// Drops the promises of a gang if one of them no longer has its resources.
void drop_lost_promise(Pool& pool, GangState& gang);
/// Call when the node has changed: drops the promises and reservations that no longer fit there.
void drop_what_no_longer_fits(Pool& pool, NodeIndex node);

/// Whether the books of the nodes differ from those of the tasks, promises and reservations. For
/// tests; costs more than a plan.
bool has_wrong_node_books(Pool& pool);

}  // namespace muster::schedule
