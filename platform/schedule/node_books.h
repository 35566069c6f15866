// All that stands behind Nodes: the table of nodes, and what is derived from it. Whoever changes a
// booking does it here, so that the indexes hear of it.
#pragma once

#include <vector>

#include "schedule/fragmentation.h"
#include "schedule/node_table.h"
#include "schedule/room_index.h"
#include "schedule/topology.h"

namespace muster::schedule {

struct NodeBooks {
  NodeTable table;
  RoomIndex now{Room::kNow};
  RoomIndex later{Room::kLater};
  Fragmentation fragmentation;
  TopologyMemory topology;

  RoomIndex& index(Room room) { return room == Room::kNow ? now : later; }

  /// kNow: in what is free now and later; kLater: only later.
  void take(const Booking& booking, Room room);
  void give(const Booking& booking, Room room);
  void take_now_only(const Booking& booking);
  void give_now_only(const Booking& booking);

  NodeIndex set(const Node& node);
  void remove(NodeIndex node);
  /// Brings up to date what a search in `room` looks at.
  void settle(Room room);

 private:
  void touch(NodeIndex node) {
    now.touch(node);
    later.touch(node);
  }
};

}  // namespace muster::schedule
