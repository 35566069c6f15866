// For the tests of nodes and placement: short names for values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schedule/node_room.h"
#include "schedule/nodes.h"
#include "schedule/test_units.h"

namespace muster::schedule {

inline Node node_of(std::string name, int gpus, int64_t cpus = 64, int64_t gib = 256) {
  return {
      .name = std::move(name), .gpus = gpus, .cpu_milli = cpus * 1000, .memory_bytes = gib * kGib};
}

inline Nodes nodes_of(const std::vector<Node>& list) {
  Nodes nodes;
  for (const Node& node : list) nodes.set(node);
  return nodes;
}

/// The free amounts of each device, CPU and memory.
inline NodeRoom room_of(std::vector<int> devices, int64_t cpus, int64_t gib) {
  NodeRoom room{.devices = std::move(devices),
                .cpu_milli = cpus * 1000,
                .memory_bytes = gib * kGib,
                .task_slots = kNoSlotBound};
  for (const int free : room.devices) room.gpu_milli += free;
  return room;
}

inline Claim gpus(int count, int64_t cpus = 0) {
  return {.gpus = count, .cpu_milli = cpus * 1000};
}
inline Claim share(int milli) {
  return {.gpu_share_milli = milli};
}
inline Claim cpus(int64_t count) {
  return {.cpu_milli = count * 1000};
}

inline Gang gang_of(int tasks, const Claim& claim) {
  return {.groups = {{.claim = claim, .count = tasks, .minimum = tasks}}};
}

inline std::vector<int> counts_of(const Gang& gang) {
  std::vector<int> counts;
  for (const TaskGroup& group : gang.groups) counts.push_back(group.count);
  return counts;
}

inline base::Result<std::vector<Booking>, Shortage> place(Nodes& nodes, const Gang& gang,
                                                          Packing packing = Packing::kPack,
                                                          FreeWhen room = FreeWhen::kNow) {
  return nodes.place(gang, counts_of(gang), {.room = room, .packing = packing});
}

/// The node of each task: "n1 n1 n2"; "none" if the gang does not fit.
inline std::string where(Nodes& nodes, const Gang& gang, Packing packing = Packing::kPack,
                         FreeWhen room = FreeWhen::kNow) {
  const auto placed = place(nodes, gang, packing, room);
  if (!placed) return "none";
  std::string text;
  for (const Booking& booking : *placed)
    text += (text.empty() ? "" : " ") + nodes.node(booking.node).name;
  return text;
}

}  // namespace muster::schedule
