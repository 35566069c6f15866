// Making room for one gang by evicting others: a trial that evicts one after the other until the
// gang has a place, gives back whoever is not needed after all, and looks for another place for
// the rest. Nothing is decided before all of it has been tried out.
#pragma once

#include <optional>
#include <vector>

#include "schedule/reservation.h"
#include "schedule/trial.h"
#include "schedule/victim_order.h"

namespace muster::schedule {

struct Evicted {
  GangState* gang = nullptr;
  std::vector<int> tasks;
  std::optional<std::vector<Booking>> moved_to;  ///< by task
};

struct Decision {
  std::vector<Booking> bookings;  ///< of the gang that the room is for
  std::vector<Evicted> evicted;
};

class MakeRoom {
 public:
  /// `must_be_fair`: what the reclaimer then holds is held against its siblings.
  MakeRoom(Trial& trial, const Options& options, Pool& pool, const Asking& asking,
           bool must_be_fair);

  /// It fits as soon as those who are leaving anyway have left: nobody needs to be evicted.
  bool fits_already();

  /// `may_end`: it need not find another place.
  void evict(Unit unit, bool may_end);
  size_t evicted() const { return victims_.size(); }
  /// Whether the last eviction can have made a difference.
  bool is_worth_a_try() const;
  /// The decision, if what was evicted so far is enough. The trial then stands as decided;
  /// otherwise as before.
  std::optional<Decision> conclude();

 private:
  struct Victim {
    Unit unit;
    bool may_end = true;
    bool evicted = true;
  };

  std::vector<Booking> held_by(const Unit& unit) const;
  bool place();
  void lift_kept();
  void put_back_kept();
  void give_back_unneeded();
  bool give_back(Victim& victim);
  bool is_fair(const std::vector<Evicted>& evicted) const;
  bool is_on_the_nodes(const Unit& unit) const;
  bool move_victims(std::vector<Evicted>& evicted);
  std::optional<std::vector<Booking>> move(const GangState& gang, const std::vector<int>& tasks,
                                           const Unit& unit);

  Trial& trial_;
  const Options& options_;
  Pool& pool_;
  const Asking& asking_;
  bool must_be_fair_;
  bool refused_by_capacity_;
  std::vector<Claim> claims_;
  std::vector<Booking> lifted_;    ///< of rooms kept for others that have to stand back
  std::vector<Victim> victims_;    ///< in the order of their eviction
  std::vector<Booking> bookings_;  ///< of the gang, once it is placed
};

}  // namespace muster::schedule
