// The arithmetic of one node: what is booked, what is free, whether a task fits, and on which GPUs.
//
// Pure values. Free amounts may be negative (a node that became smaller); then nothing fits.
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

/// Free task slots of a node without a bound.
inline constexpr int kNoSlotBound = std::numeric_limits<int>::max();

/// What is booked on a node.
struct NodeUse {
  std::vector<int> devices;  ///< thousandths by device; missing entries are 0
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
  bool lacks_devices = false;  ///< devices are booked that the node no longer has: no GPU task fits

  /// The sum over devices that are not over-booked.
  int64_t usable_gpu_milli() const;

  bool operator==(const NodeRoom&) const = default;
};

/// Number of GPUs of `node` that a booking can name.
int device_count(const Node& node);

/// Writes into `room`, reusing its memory. Booked devices that no longer exist have negative
/// amounts.
void free_room(const Node& node, const NodeUse& use, NodeRoom& room);
/// What is free in all of these uses: the minimum of each amount.
void free_room(const Node& node, const NodeUse& one, const NodeUse& other, NodeRoom& room);
void free_room(const Node& node, const NodeUse& one, const NodeUse& other, const NodeUse& third,
               NodeRoom& room);

/// A claim on the GPUs of one model, with GPU memory converted to a share.
struct Need {
  int gpus = 0;         ///< whole ones
  int share_milli = 0;  ///< 1 to 1000 of one GPU; 0 for whole GPUs or none
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;

  int64_t gpu_milli() const { return int64_t{gpus} * kWholeGpu + share_milli; }
  bool operator==(const Need&) const = default;
};

/// Nothing if no GPU of this model can serve the claim: it requests more GPU memory than a device
/// has, or the device's memory is unknown.
std::optional<Need> need_on(const Claim& claim, int64_t gpu_memory_bytes);

bool needs_gpu(const Claim& claim);

bool gpus_fit(const NodeRoom& room, const Need& need);
bool fits(const NodeRoom& room, const Need& need);
/// How many tasks with this need fit one after the other, at most `most`.
int fitting_tasks(const NodeRoom& room, const Need& need, int most);

/// The lowest free GPUs, or the fullest GPU on which the share fits. REQUIRES: gpus_fit().
uint64_t pick_devices(const NodeRoom& room, const Need& need);

// The fragmentation of a node: how much of its free GPUs cannot be used by the usual claims. The
// default packing chooses the node whose fragmentation rises least.
//
// The start is Fragmentation Gradient Descent (Weng et al., "Beware of Fragmentation: Scheduling
// GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC'23). For a usual claim m
// and a node n with T free thousandths of GPUs, these count as wasted
//   next(n, m) = T                                      if m does not fit n,
//              = the sum of the devices too small for m   if m fits.
// That looks one task ahead: a node with 8 free GPUs and 12 CPUs counts as good for tasks with 1
// GPU and 12 CPUs, though it holds a single one. So the remainder after n is filled with m counts,
// too:
//   fill(n, m) = T - (as many m as n has GPUs, CPUs, memory and slots for) * (GPUs of m)
//   waste(n)   = sum of weight(m) * ((1 - a) * next(n, m) + a * fill(n, m)),  a = 0.6
// where weight(m) = the frequency of m, times (part of a GPU that m takes)^-1.5 if it takes a part:
// small claims decide whether the rest of a nearly full device is usable. docs/scheduler.md shows
// the effect of each term on the openb workloads.
//
// Pure: equal rooms have equal waste, in any history.

/// The usual claims on GPUs of one model; claims with equal needs are together.
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
  double useless = 0;  ///< the weight of claims that can never run there
};

double waste(const UsualNeeds& usual, const NodeRoom& room);

class Fragmentation {
 public:
  void set(std::vector<UsualClaim> claims);
  bool is_empty() const { return claims_.empty(); }
  const UsualNeeds& usual_for(const std::string& gpu_model, int64_t gpu_memory_bytes) const;

 private:
  std::vector<UsualClaim> claims_;
  mutable std::map<std::pair<std::string, int64_t>, UsualNeeds> by_model_;
};

}  // namespace muster::schedule
