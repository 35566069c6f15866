// The nodes with what is free on each of their devices, now and once everything that is being
// released has gone; and placing gangs on them.
//
// Booked and unbooked by trial: every change has its exact inverse. The indexes behind it make a
// placement cost the number of tasks, not of nodes. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "schedule/model.h"

namespace muster::schedule {

using NodeIndex = int;

/// Room of one task on one node. Small, and copied freely.
struct Booking {
  NodeIndex node = -1;
  uint64_t devices = 0;  ///< bit i: GPU i
  int share_milli = 0;   ///< of each of these GPUs
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;

  bool operator==(const Booking&) const = default;
};

/// Which room a placement may take.
enum class Room {
  kNow,    ///< free now, and promised to nobody
  kLater,  ///< free once all that is being released is gone, and promised to nobody
};

/// Why a gang found no place, with the numbers a sentence needs. What is free is told as things are
/// without the gang; what the nodes lack, with those of its tasks in place that found room.
struct Shortage {
  int tasks = 0;     ///< of the minimum
  int placed = 0;    ///< of these, found room at best
  Claim claim;       ///< of the task that found none
  int nodes = 0;     ///< that it may use: model, labels, neither excluded, closed nor cordoned
  int cordoned = 0;  ///< left out for being cordoned
  int64_t free_gpu_milli = 0;          ///< on these, in all
  int64_t largest_free_gpu_milli = 0;  ///< on one node
  int64_t largest_free_cpu_milli = 0;
  int64_t largest_free_memory_bytes = 0;
  /// Of these nodes, how many lack what for one more task of `claim`. One may lack several.
  int lack_gpu = 0;
  int lack_cpu = 0;
  int lack_memory = 0;
  int lack_task_slots = 0;
  std::string topology;  ///< the required level no domain of which holds the gang; else empty
};

struct PlaceOptions {
  Room room = Room::kNow;
  Packing packing = Packing::kFragmentation;
  /// Nodes that must not be used, by index; for reservations. Empty: none.
  const std::vector<bool>* closed = nullptr;
};

/// What is usually asked for: what the fragmentation term goes by. Weights need not add up to 1.
struct UsualClaim {
  Claim claim;
  std::vector<std::string> gpu_models;
  double weight = 1;
};

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

  /// Adds a node, or changes the one of this name: what is booked on it stays booked, and where it
  /// became smaller than that, its free room is negative and takes nothing.
  NodeIndex set(const Node& node);
  /// Its bookings must be gone. The index is not used again until a node is added.
  void remove(NodeIndex node);
  std::optional<NodeIndex> find(const std::string& name) const;
  const Node& node(NodeIndex index) const;
  std::vector<NodeIndex> all() const;  ///< in the order of their names

  /// All of the nodes that are not cordoned. What a task of `claim` counts in the books: a part by
  /// memory counts as the share of the smallest GPU.
  Amounts total() const;
  Amounts charge(const Claim& claim) const;
  Amounts free(NodeIndex node, Room room) const;
  /// By device: thousandths free.
  std::vector<int> free_devices(NodeIndex node, Room room) const;

  /// Without any, Packing::kFragmentation is kPack. The formula: fragmentation.h.
  void set_usual_claims(std::vector<UsualClaim> claims);

  // A booking's life. book -> begin_release -> end_release; or reserve -> claim_reserved (then as
  // booked). Each has its inverse.
  void book(const Booking& booking);  ///< takes now and later
  void unbook(const Booking& booking);
  void begin_release(const Booking& booking);  ///< gives later
  void undo_begin_release(const Booking& booking);
  /// What begin_release() gave is promised to no other booking.
  bool can_undo_release(const Booking& booking) const;
  void end_release(const Booking& booking);  ///< gives now
  void reserve(const Booking& booking);      ///< takes later
  void unreserve(const Booking& booking);
  /// Its room is free now, and the node is not cordoned.
  bool can_claim_reserved(const Booking& booking) const;
  void claim_reserved(const Booking& booking);  ///< takes now, too

  /// Finds room for tasks [of `gang`], `counts[g]` of group g, all or none, and books it: kNow with
  /// book(), kLater with reserve(). In the order of the groups. A required topology level holds for
  /// all of them together with `beside`, the bookings that the gang has already. Between equal
  /// nodes the first by name is taken, in whatever order they were set.
  base::Result<std::vector<Booking>, Shortage> place(const Gang& gang,
                                                     const std::vector<int>& counts,
                                                     const PlaceOptions& options,
                                                     const std::vector<Booking>& beside = {});

  /// Whether an empty cluster of these nodes (cordoned ones included) could hold the minimum of
  /// `gang`; the shortage if not.
  std::optional<Shortage> could_never_hold(const Gang& gang) const;

  TaskPlace place_of(const Booking& booking) const;
  /// The booking that a place stands for; nothing where there is no such node, or the device is
  /// none that any could have. One that the node has no more is a device all the same: it may come
  /// back, and then somebody holds it.
  std::optional<Booking> booking_of(const TaskPlace& place, const Claim& claim) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What is usually asked for: the claims of the gangs submitted so far, the recent ones weighing
// more. The fragmentation term of the placement goes by it.
//
// Pure values; bounded: the rarest claim makes room for a new one.

class UsualClaims {
 public:
  void add(const Gang& gang);
  /// Nothing where so little was added since the last time that it is not worth it. Else all of
  /// them, with their weights.
  bool is_worth_telling() const;
  std::vector<UsualClaim> tell();

 private:
  std::vector<UsualClaim> claims_;
  double weight_of_next_ = 1;
  int added_ = 0;  ///< since the last tell()
  int told_ = 0;   ///< how many had been added by then, up to a bound
};

}  // namespace muster::schedule
