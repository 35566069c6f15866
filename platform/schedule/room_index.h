// The nodes by what is free on them. Nodes of one kind with equal room are one class: what holds
// for one of them holds for all, so a search looks at classes, of which a busy cluster of ten
// thousand equal machines has a few dozen. Classes stand in buckets by their free GPUs, each with
// bounds on the rest, so that most of what cannot fit is never looked at.
//
// Brought up to date when it is asked, not when a node changes: a trial that books and unbooks
// costs nothing here. Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/node_table.h"

namespace muster::schedule {

/// How a task would go to a node: less waste is better, on a device with so much free.
struct Score {
  double waste = 0;
  int device_milli = 0;  ///< of a share; else 0
};
inline constexpr int kNotScored = -1;  ///< as device_milli

struct NodeClass {
  int kind = 0;
  NodeRoom room;                   ///< its devices in descending order
  std::vector<NodeIndex> members;  ///< in the order of their names
  // Memories of choose_node().
  std::optional<double> waste;  ///< of one of its nodes as it is
  std::vector<Score> scores;    ///< by number of claim
};

/// Upper bounds of the classes in a bucket.
struct RoomBounds {
  int64_t cpu_milli = std::numeric_limits<int64_t>::min();
  int64_t memory_bytes = std::numeric_limits<int64_t>::min();
  int whole_gpus = 0;
  int largest_device = 0;   ///< thousandths
  int largest_partial = 0;  ///< of the devices that are in use already
};

struct RoomBucket {
  std::vector<int> classes;  ///< by free CPUs, then memory
  RoomBounds bounds;
};

class RoomIndex {
 public:
  explicit RoomIndex(Room room) : room_(room) {}

  /// This node may have changed.
  void touch(NodeIndex node);
  /// Everything may have.
  void touch_all() { stale_ = true; }
  /// REQUIRES, for all below: called since the last touch(). Ranks are settled.
  void settle(const NodeTable& table);
  /// Only these nodes, whatever there is besides; settled.
  void restrict_to(const NodeTable& table, const std::vector<NodeIndex>& nodes);

  /// Those without GPUs stand apart: first false, then true; each by free thousandths of GPUs.
  using Buckets = std::map<std::pair<bool, int64_t>, RoomBucket>;
  Buckets& buckets() { return buckets_; }
  const Buckets& buckets() const { return buckets_; }
  NodeClass& at(int number) { return classes_[static_cast<size_t>(number)]; }
  const NodeClass& at(int number) const { return classes_[static_cast<size_t>(number)]; }
  /// The class of a node, or -1 where it is cordoned or not there.
  int class_of(NodeIndex node) const { return class_of_[static_cast<size_t>(node)]; }
  void tighten(RoomBucket& bucket) const;
  /// The first class of the bucket with so many CPUs free.
  std::vector<int>::const_iterator first_with(const RoomBucket& bucket, int64_t cpu_milli) const;

  /// The number that NodeClass::scores has for `claim`.
  size_t number_of(const Claim& claim);
  void forget_scores();

 private:
  void rebuild(const NodeTable& table);
  void update(const NodeTable& table, NodeIndex node);
  int class_for(int kind, const NodeRoom& room);
  void join(const NodeTable& table, NodeIndex node, int number);
  void leave(const NodeTable& table, NodeIndex node);
  void drop_empty_classes();
  std::vector<int>::iterator place_in(RoomBucket& bucket, int number);

  Room room_;
  bool stale_ = true;
  std::vector<NodeIndex> touched_;
  std::vector<bool> is_touched_;
  std::vector<int> class_of_;
  std::vector<NodeClass> classes_;
  std::unordered_multimap<uint64_t, int> by_state_;
  std::vector<int> free_numbers_;
  int empty_ = 0;  ///< classes without members, kept because nodes come back to them
  Buckets buckets_;
  std::vector<Claim> scored_claims_;
  NodeRoom scratch_;
};

}  // namespace muster::schedule
