// The arithmetic of one node: what is booked on it, what that leaves free, whether a task fits, and
// on which of its GPUs it goes.
//
// Pure values. Free room may be negative (a node that came back smaller): then nothing fits.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "schedule/amounts.h"
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

}  // namespace muster::schedule
