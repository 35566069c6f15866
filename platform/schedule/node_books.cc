#include "schedule/node_books.h"

namespace muster::schedule {

void NodeBooks::take(const Booking& booking, Room room) {
  NodeEntry& entry = table.at(booking.node);
  if (room == Room::kNow) entry.now.add(booking);
  entry.later.add(booking);
  touch(booking.node);
}

void NodeBooks::give(const Booking& booking, Room room) {
  NodeEntry& entry = table.at(booking.node);
  if (room == Room::kNow) entry.now.remove(booking);
  entry.later.remove(booking);
  touch(booking.node);
}

void NodeBooks::take_now_only(const Booking& booking) {
  table.at(booking.node).now.add(booking);
  now.touch(booking.node);
}

void NodeBooks::give_now_only(const Booking& booking) {
  table.at(booking.node).now.remove(booking);
  now.touch(booking.node);
}

NodeIndex NodeBooks::set(const Node& node) {
  const auto known = table.find(node.name);
  const NodeIndex index = table.set(node);
  topology.forget();
  if (known) {
    touch(index);
  } else {  // the order of names has changed
    now.touch_all();
    later.touch_all();
  }
  return index;
}

void NodeBooks::remove(NodeIndex node) {
  table.remove(node);
  topology.forget();
  now.touch_all();
  later.touch_all();
}

void NodeBooks::settle(Room room) {
  table.settle_ranks();
  index(room).settle(table);
}

}  // namespace muster::schedule
