// Room kept for gangs that cannot start yet, so that those behind them do not take it for ever.
//
// Where it is known by when what runs will end (time limits), a gang that is blocked gets the
// earliest start that these ends allow, and whatever ends before that may pass. Where it is not
// known, a gang that has waited longer than Options::patience gets nodes chosen for it, those with
// the least left to wait for, and what becomes free there goes to nobody else until it starts.
//
// The bound: a gang that is among the first Options::reservations blocked ones when its patience is
// over starts no later than the last of what runs on the nodes chosen then has ended, plus one
// plan. With time limits on all that runs, it starts no later than its first reserved start. Two
// things go before a reservation: gangs that are served before it (more deserving projects, higher
// priority, until the patience is over), and quota: what is kept for a gang over its project's
// quota does not keep another project from its own.
#pragma once

#include <optional>
#include <vector>

#include "schedule/cycle.h"

namespace muster::schedule {

/// A gang with what it asks for in a pool.
struct Asking {
  GangState& gang;
  const Entry& entry;
  std::vector<int> counts;
  Amounts charge;
  Packing packing;
};
Asking asking_of(const Options& options, GangState& gang, const Pool& pool,
                 const std::vector<int>& counts);

/// The earliest start that the expected ends of what runs allow, and where; nothing where they
/// allow none. Changes nothing in the end.
struct ShadowStart {
  Time start;
  std::vector<Booking> bookings;
};
std::optional<ShadowStart> shadow_start(Pool& pool, const Asking& asking, Time now);

/// The reservations of one pool during one run of allocate. Those with a start are made for this
/// run and lifted at its end; those past the patience live in Pool::kept.
class Reservations {
 public:
  Reservations(const Cycle& cycle, Pool& pool);
  ~Reservations();
  Reservations(const Reservations&) = delete;
  Reservations& operator=(const Reservations&) = delete;

  /// Places the gang now, where no reservation that it has to honour keeps the room. `all`: it had
  /// to honour every one.
  struct Placed {
    std::optional<std::vector<Booking>> bookings;
    std::optional<Shortage> shortage;
    bool only_reserved = false;  ///< there is room, but it is kept
    job::JobRef held_by;
  };
  Placed place(const Asking& asking);
  /// It was refused for lack of room: it is kept some, if it is among the first.
  void blocked(const Asking& asking);
  bool takes_more() const;
  /// Whether gangs that end in time may pass one of them.
  bool any_with_start() const { return !timed_.empty(); }
  std::optional<Time> latest_start() const;

 private:
  bool must_honour(const Asking& asking, const Reservation& reservation) const;
  bool is_within_quota(const Asking& asking) const;
  std::vector<Reservation*> all();

  const Cycle& cycle_;
  Pool& pool_;
  std::vector<Reservation> timed_;
  int blocked_ = 0;
};

/// Chooses nodes for those that have lost patience, and drops what is kept for gangs that do not
/// wait any more.
void lose_patience(Cycle& cycle, Pool& pool);
void drop_reservation(Pool& pool, const GangState& gang);

}  // namespace muster::schedule
