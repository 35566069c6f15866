// Reservations: resources kept for blocked gangs, so that gangs behind them do not take these
// forever.
//
// If the ends of running gangs are known (time limits), a blocked gang gets the earliest start that
// these ends allow, and gangs that end before that start may pass (backfill). Otherwise, a gang
// that has waited longer than Options::patience gets nodes, those that are expected to be free
// first, and no other gang gets resources that become free there.
//
// The bound: a gang that is among the first Options::reservations blocked gangs when its patience
// ends starts at the latest one plan after the last task on the chosen nodes has ended. If all
// running gangs have time limits, it starts no later than its first reserved start. Two things
// precede a reservation: gangs that are served before it (until its patience ends), and quotas: a
// reservation of a gang over its project's quota does not keep another project from its quota.
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
  bool takes_more() const;
  /// Whether gangs that end in time may pass a reservation.
  bool any_with_start() const { return !timed_.empty(); }
  std::optional<Time> latest_start() const;

 private:
  std::vector<bool> honoured_by(const PlacementRequest& request,
                                const std::vector<const Reservation*>& existing) const;
  bool is_within_quota(const PlacementRequest& request) const;
  bool would_help(const std::vector<const Reservation*>& lifted,
                  const PlacementRequest& request) const;
  bool fits_without(const std::vector<const Reservation*>& honoured,
                    const PlacementRequest& request, const Shortage& shortage);
  base::Result<std::vector<Booking>, Shortage> place_now(const PlacementRequest& request);
  std::vector<const Reservation*> all() const;
  void lift(const Reservation& reservation);
  void put_back(const Reservation& reservation);
  void put_back_all();

  const Cycle& cycle_;
  Pool& pool_;
  /// The gangs whose reservations are not in the books at present. The next placement mostly lifts
  /// the same ones: putting them back only when needed saves most updates of the nodes' index.
  std::set<const GangState*> lifted_;
  /// Requests that found no place since the last gang started, with the reservations that they had
  /// to respect, in the order of all(): the same request finds none again. There may be thousands
  /// of classes with one request, one for each project.
  std::map<std::pair<const SharedRequest*, std::vector<bool>>, Placed> refused_;
  std::vector<Reservation> timed_;
  int blocked_ = 0;
};

/// Makes reservations for gangs past their patience, and drops the reservations of gangs that no
/// longer wait.
void lose_patience(Cycle& cycle, Pool& pool);
void drop_reservation(Pool& pool, const GangState& gang);

}  // namespace muster::schedule
