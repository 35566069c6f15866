// The arithmetic of one node: what is booked on it, what that leaves free, whether a task fits, and
// on which of its GPUs it goes.
//
// Pure values. Free room may be negative (a node that came back smaller): then nothing fits.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/model.h"
#include "schedule/nodes.h"

namespace muster::schedule {

/// Free task slots where the node sets no bound.
inline constexpr int kNoSlotBound = std::numeric_limits<int>::max();

/// What is booked on a node.
struct NodeUse {
  std::vector<int> devices;  ///< thousandths by device; shorter than the node has: the rest is 0
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int tasks = 0;

  void add(const Booking& booking);
  void remove(const Booking& booking);

  bool operator==(const NodeUse& other) const;
};

/// What is free on a node.
struct NodeRoom {
  std::vector<int> devices;  ///< thousandths by device
  int64_t gpu_milli = 0;     ///< their sum
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int task_slots = 0;
  bool lacks_devices = false;  ///< some are booked that the node has no more: it takes no GPU task

  /// Of the devices that are not over-booked: one that is takes nothing from the others.
  int64_t usable_gpu_milli() const;

  bool operator==(const NodeRoom&) const = default;
};

/// GPUs of `node` that can be told apart in a booking.
int device_count(const Node& node);

/// Writes into `room`, whose memory is used again. Devices that are booked and no longer there have
/// less than nothing free.
void free_room(const Node& node, const NodeUse& use, NodeRoom& room);
/// What is free in both: of each device, and of the rest.
void free_room(const Node& node, const NodeUse& one, const NodeUse& other, NodeRoom& room);

/// A claim on the GPUs of one model: a part by memory has become a share.
struct Need {
  int gpus = 0;         ///< whole ones
  int share_milli = 0;  ///< 1 to 1000, of one; 0 where it needs whole ones or none
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;

  int64_t gpu_milli() const { return int64_t{gpus} * kWholeGpu + share_milli; }
  bool operator==(const Need&) const = default;
};

/// Nothing where no GPU of so much memory can serve it: a part by memory that is larger than the
/// device, or of a device whose memory is unknown.
std::optional<Need> need_on(const Claim& claim, int64_t gpu_memory_bytes);

bool wants_gpu(const Claim& claim);

bool gpus_fit(const NodeRoom& room, const Need& need);
bool fits(const NodeRoom& room, const Need& need);

/// The lowest of the free GPUs, or the fullest that has the share. REQUIRES: gpus_fit().
uint64_t pick_devices(const NodeRoom& room, const Need& need);

// How much of a node's free GPUs is of no use for what is usually asked: the measure by which the
// default packing chooses nodes. A placement goes where it raises this least.
//
// The start is Fragmentation Gradient Descent (Weng et al., "Beware of Fragmentation: Scheduling
// GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC'23). For a usual claim m
// and a node n with T thousandths of GPUs free, they count as wasted
//   next(n, m) = T                                      where m does not fit n,
//              = the sum of the devices too small for m   where it does.
// That looks one task ahead: a node with 8 free GPUs and 12 CPUs counts as good for tasks with 1
// GPU and 12 CPUs, though it takes a single one. So as much again weighs what remains when n is
// filled with m:
//   fill(n, m) = T - (as many m as n has GPUs, CPUs, memory and slots for) * (GPUs of m)
//   waste(n)   = sum of weight(m) * ((1 - a) * next(n, m) + a * fill(n, m)),  a = 0.6
// with weight(m) = how often m is asked for, times (part of a GPU that m takes)^-1.5 where it takes
// a part: the small ones decide what a nearly full device is still good for. docs/scheduler.md has
// what each of these is worth on the openb workloads.
//
// Pure: equal rooms have equal waste, whatever came before.

/// The usual claims as the GPUs of one model see them, those together that need the same of them.
struct UsualNeeds {
  struct Rest {
    int64_t cpu_milli = 0;
    int64_t memory_bytes = 0;
    double weight = 0;
  };
  struct Group {
    int gpus = 0;
    int share_milli = 0;
    double weight = 0;  ///< of all of them
    std::vector<Rest> rests;
  };
  std::vector<Group> groups;
  double useless = 0;  ///< the weight of those that can never run there
};

double waste(const UsualNeeds& usual, const NodeRoom& room);

class Fragmentation {
 public:
  void set(std::vector<UsualClaim> claims);
  bool knows_nothing() const { return claims_.empty(); }
  const UsualNeeds& usual_for(const std::string& gpu_model, int64_t gpu_memory_bytes) const;

 private:
  std::vector<UsualClaim> claims_;
  mutable std::map<std::pair<std::string, int64_t>, UsualNeeds> by_model_;
};

}  // namespace muster::schedule
