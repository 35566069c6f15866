// The nodes of a pool, with what is free on each device now and after all pending releases; and the
// placement of gangs on them.
//
// Every change has an exact inverse, so that trials book directly. With its indexes, the cost of a
// placement depends on the number of tasks, not of nodes. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "schedule/model.h"

namespace muster::schedule {

using NodeIndex = int;

/// The resources of one task on one node.
struct Booking {
  NodeIndex node = -1;
  uint64_t devices = 0;  ///< bit i: GPU i
  int share_milli = 0;   ///< of each of these GPUs
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  bool yields = false;  ///< every reservation on the node is for the time after its end

  bool operator==(const Booking&) const = default;
};

/// What the booking takes.
Amounts amounts_of(const Booking& booking);

/// The greater, the harder the claim is to place.
using ClaimSize = std::tuple<int, int, int64_t, int64_t, int64_t>;
ClaimSize size_of(const Claim& claim);

/// Nodes that have the same amounts free.
struct NodeSet {
  Amounts free;                         ///< of each; negative where more is booked than exists
  int64_t usable_gpu_milli = 0;         ///< free.gpu_milli without over-booked devices
  const std::vector<NodeIndex>& nodes;  ///< by name
};

/// Which resources a placement may use.
enum class FreeWhen {
  kNow,    ///< free now, and not reserved
  kLater,  ///< free after all pending releases, and not reserved
};

/// Why a gang does not fit, with the amounts for a message. The free amounts are without the gang;
/// the lacking amounts include the tasks of the gang that fit.
struct Shortage {
  int tasks = 0;   ///< of the minimum
  int placed = 0;  ///< how many of them fit
  Claim claim;     ///< of the first task that does not fit
  int nodes = 0;  ///< number of eligible nodes: GPU model, labels, not excluded, closed or cordoned
  int cordoned = 0;  ///< number of nodes that are only ineligible because they are cordoned
  /// Nodes that are only ineligible because they do not answer, by name. They are not counted in
  /// `cordoned`.
  std::vector<std::shared_ptr<const Node>> silent;
  int64_t free_gpu_milli = 0;          ///< on the eligible nodes, in total
  int64_t largest_free_gpu_milli = 0;  ///< on one of them
  int64_t largest_free_cpu_milli = 0;
  int64_t largest_free_memory_bytes = 0;
  /// How many of these nodes lack each resource for one more task of `claim`. A node may lack
  /// several.
  int lack_gpu = 0;
  int lack_cpu = 0;
  int lack_memory = 0;
  int lack_task_slots = 0;
  std::string topology;  ///< the required level if the gang fits in none of its domains; else empty
};

struct PlaceOptions {
  FreeWhen room = FreeWhen::kNow;
  Packing packing = Packing::kFragmentation;
  /// Nodes that must not be used, by index; nullptr: none. For reservations.
  const std::vector<bool>* closed = nullptr;
  /// Whether a refusal has its amounts; without them, it is an empty Shortage.
  bool with_amounts = true;
};

/// A frequent claim, for the fragmentation measure. Weights need not add up to 1.
struct UsualClaim {
  Claim claim;
  std::vector<std::string> gpu_models;
  double weight = 1;
};

struct NodeRoom;

class Nodes {
 public:
  Nodes();
  ~Nodes();
  Nodes(Nodes&&) noexcept;
  Nodes& operator=(Nodes&&) noexcept;
  Nodes(const Nodes&);  ///< for shadow schedules
  Nodes& operator=(const Nodes&);

  /// The same nodes with the same bookings.
  bool operator==(const Nodes& other) const;

  /// Adds a node, or changes the node of this name. Its bookings remain; if the node became smaller
  /// than they are, its free resources are negative.
  NodeIndex set(const Node& node);
  /// REQUIRES: the node has no bookings. set() may reuse its index.
  void remove(NodeIndex node);
  std::optional<NodeIndex> find(const std::string& name) const;
  const Node& node(NodeIndex index) const;
  std::vector<NodeIndex> all() const;  ///< ascending
  int count() const;

  /// Calls `visit` for each set of nodes with equal free resources, until it returns false: sets with
  /// more free GPUs first. Cordoned nodes are left out. The order depends on
  /// the nodes and bookings alone, not on their history. `visit` must not change bookings.
  void each_set(FreeWhen room, const std::function<bool(const NodeSet&)>& visit);

  /// The sum of all nodes that are not cordoned, at most kUnlimited of each.
  Amounts total() const;
  /// What is free on all nodes that are not cordoned; over-booked devices and nodes count as zero.
  Amounts free_in_all(FreeWhen room);
  /// The amounts that a task of `claim` counts in the ledger. GPU memory counts as the share of the
  /// smallest GPU.
  Amounts charge(const Claim& claim) const;
  /// The GPU memory of that GPU; 0: no node has a GPU of known memory.
  int64_t smallest_gpu_memory() const;
  Amounts free(NodeIndex node, FreeWhen room) const;
  /// Free thousandths of each device.
  std::vector<int> free_devices(NodeIndex node, FreeWhen room) const;

  /// Writes what no task holds now, reserved or not, into `room`, reusing its memory.
  void unused(NodeIndex node, NodeRoom& room) const;

  /// Without usual claims, Packing::kFragmentation equals kPack. The formula: node_room.h.
  void set_usual_claims(std::vector<UsualClaim> claims);

  // The states of a booking: book -> begin_release -> end_release, or reserve -> claim_reserved
  // (then it is booked). Each step has an inverse.
  //
  // A reservation is for the time after the end of running tasks: it takes resources that these
  // tasks still hold. So it is not compared with what they hold, but with what is left when they
  // have ended: keep() books it there, and set_yields() takes these tasks out of that account.
  void book(const Booking& booking);  ///< takes from kNow and kLater
  void unbook(const Booking& booking);
  void begin_release(const Booking& booking);  ///< gives back to kLater
  void undo_begin_release(const Booking& booking);
  /// Whether the resources of begin_release() are not reserved meanwhile.
  bool can_undo_release(const Booking& booking) const;
  void end_release(const Booking& booking);  ///< gives back to kNow
  void reserve(const Booking& booking);      ///< takes from kLater
  void unreserve(const Booking& booking);
  /// Whether the reserved resources are free now, and the node is not cordoned.
  bool can_claim_reserved(const Booking& booking) const;
  void claim_reserved(const Booking& booking);  ///< also takes from kNow
  /// Whether the resources of reserve() will be free after all pending releases. False if the node
  /// was removed or cordoned, or has become too small.
  bool has_reserved(const Booking& booking) const;
  void keep(const Booking& booking);  ///< takes from what is left after the ends of yielding tasks
  void unkeep(const Booking& booking);
  /// Whether the resources of keep() will be free after the ends of the yielding tasks. False if the
  /// node has become too small.
  bool has_kept(const Booking& booking) const;
  /// REQUIRES: `booking` is booked, and not released.
  void set_yields(Booking& booking, bool yields);

  /// Places `counts[g]` tasks of each group g, all or none; the bookings are in group order. If the
  /// order of the groups finds no room, tries to pack, and to place the largest tasks first. Books
  /// them with book() (kNow) or reserve() (kLater). The required topology level applies to them and
  /// to `beside`, the bookings that the gang already has. Of equal nodes, the first by name is used.
  base::Result<std::vector<Booking>, Shortage> place(const Gang& gang,
                                                     const std::vector<int>& counts,
                                                     const PlaceOptions& options,
                                                     const std::vector<Booking>& beside = {});

  /// Whether a gang that place() just refused now (`shortage`) would fit without the reservations
  /// `kept`. Nothing if only an attempt can show it: tasks differ, or a topology level is required.
  std::optional<bool> would_fit_without(const std::vector<Booking>& kept, const Gang& gang,
                                        const std::vector<int>& counts, const Shortage& shortage);

  /// The shortage if the minimum of `gang` does not fit even on empty nodes, cordoned ones
  /// included. Nothing if a node has never answered: its size is unknown.
  std::optional<Shortage> could_never_hold(const Gang& gang) const;

  TaskPlace place_of(const Booking& booking) const;
  /// The booking of a place; nothing if the node does not exist or the device number is invalid. A
  /// device that the node no longer has is valid: it may come back, and is then in use. On a node
  /// with anonymous GPUs, devices that are missing or in use are replaced by free ones.
  std::optional<Booking> booking_of(const TaskPlace& place, const Claim& claim) const;
  /// Whether the node has anonymous GPUs, and tasks (kLater: tasks that are not leaving, and
  /// promises) hold others than those it has.
  bool holds_missing_gpus(NodeIndex node, FreeWhen room = FreeWhen::kNow) const;
  /// Replaces the GPUs of `booking` that are not free by free ones. `when`: free now, or after all
  /// pending releases. If too few are free, the result has numbers that the node does not have.
  /// REQUIRES: `booking` is not in the books, and the GPUs of its node are anonymous.
  Booking on_free_gpus(Booking booking, FreeWhen when = FreeWhen::kNow) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The frequent claims of the submitted gangs; recent gangs have more weight. Input of the
/// fragmentation measure. Bounded: a new claim replaces the rarest one.
class UsualClaims {
 public:
  void add(const Gang& gang);
  /// Whether enough was added since the last take() to update the measure.
  bool has_changed_enough() const;
  /// All claims with their weights.
  std::vector<UsualClaim> take();

 private:
  std::vector<UsualClaim> claims_;
  double weight_of_next_ = 1;
  int added_ = 0;  ///< since the last take()
  int taken_ = 0;  ///< number added by the last take(), up to a bound
};

}  // namespace muster::schedule
