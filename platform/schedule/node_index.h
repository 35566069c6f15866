// The nodes by index, by name and by kind, with what is booked on each: the truth that every index
// behind Nodes is made from.
//
// Plain data; copies share what seldom changes.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/node_room.h"
#include "schedule/nodes.h"

namespace muster::schedule {

/// What gangs tell nodes apart by, whatever is free on them. Cordoned nodes have kinds, too.
struct NodeKind {
  int gpus = 0;
  std::string gpu_model;
  int64_t gpu_memory_bytes = 0;
  std::map<std::string, std::string> labels;  ///< those of tell_apart_by()

  auto operator<=>(const NodeKind&) const = default;
};

struct KindEntry {
  NodeKind kind;
  int open = 0;      ///< nodes that are not cordoned
  int cordoned = 0;  ///< and those that are
};

struct NodeEntry {
  std::shared_ptr<const Node> spec;  ///< none: removed
  int kind = -1;
  NodeUse now;
  NodeUse later;
};

/// The order of names decides between equal nodes: it does not depend on who came first.
struct NodeNames {
  std::map<std::string, NodeIndex, std::less<>> by_name;
  std::vector<int> rank;  ///< by NodeIndex
  bool ranked = true;
};

class NodeTable {
 public:
  NodeTable() : names_(std::make_shared<NodeNames>()) {}

  int slots() const { return static_cast<int>(entries_.size()); }
  bool present(NodeIndex node) const;
  const Node& spec(NodeIndex node) const { return *at(node).spec; }
  NodeEntry& at(NodeIndex node) { return entries_[static_cast<size_t>(node)]; }
  const NodeEntry& at(NodeIndex node) const { return entries_[static_cast<size_t>(node)]; }
  const std::map<std::string, NodeIndex, std::less<>>& by_name() const { return names_->by_name; }
  std::optional<NodeIndex> find(const std::string& name) const;
  /// The place of a node in the order of names.
  int rank(NodeIndex node) const { return names_->rank[static_cast<size_t>(node)]; }
  /// To be called before rank(), where nodes came or went.
  void settle_ranks();

  NodeIndex set(const Node& node);
  void remove(NodeIndex node);

  /// Of those that are not cordoned.
  const Amounts& total() const { return total_; }
  const std::vector<KindEntry>& kinds() const { return kinds_; }
  /// A gang asks for these labels: from here on kinds tell nodes apart by them, too; but not by a
  /// label that is another on almost every node, a host name, which would make each node a kind of
  /// its own. Whether kinds have changed.
  bool tell_apart_by(const std::map<std::string, std::string>& labels);
  /// REQUIRES: tell_apart_by() was told of it.
  bool tells_apart(const std::string& label) const { return asked_labels_.at(label); }

  /// What a task of `claim` counts in the books, whichever GPU it gets.
  Amounts charge(const Claim& claim) const;

  /// The same nodes with the same bookings.
  bool operator==(const NodeTable& other) const;

 private:
  NodeNames& names_to_change();
  NodeIndex fresh_index();
  bool has_few_values(const std::string& label) const;
  void enter_kind(NodeEntry& entry);
  void leave_kind(NodeEntry& entry);
  void count_in(const Node& node);
  void count_out(const Node& node);

  std::vector<NodeEntry> entries_;
  std::shared_ptr<NodeNames> names_;  ///< shared by copies until one changes
  std::vector<NodeIndex> unused_;     ///< of removed nodes
  std::vector<KindEntry> kinds_;
  std::map<NodeKind, int> kind_numbers_;
  std::map<std::string, bool> asked_labels_;  ///< whether kinds have it
  std::map<int64_t, int> gpu_memories_;       ///< how many nodes have GPUs of so much memory
  Amounts total_;
};

/// The room that a placement may take: kNow takes what is free now and promised to nobody.
void room_for(const NodeEntry& entry, Room room, NodeRoom& out);

// The nodes by what is free on them. Nodes of one kind with equal room are one class: what holds
// for one of them holds for all, so a search looks at classes, of which a busy cluster of ten
// thousand equal machines has a few dozen. Classes stand in buckets by their free GPUs, each with
// bounds on the rest, so that most of what cannot fit is never looked at.
//
// Brought up to date when it is asked, not when a node changes: a trial that books and unbooks
// costs nothing here. Not thread-safe.

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

// Domains: the nodes that share a value of one or several topology levels.

/// A node without one of the levels is in no domain.
struct Domain {
  std::vector<std::string> path;  ///< its value of each level
  std::vector<NodeIndex> nodes;   ///< in the order of their names
};

/// The domains of the levels that were asked for, until a node changes.
class TopologyMemory {
 public:
  /// In the order of their paths.
  const std::vector<Domain>& domains(const NodeTable& table,
                                     const std::vector<std::string>& levels);
  void forget() { known_.clear(); }

 private:
  std::map<std::vector<std::string>, std::vector<Domain>> known_;
};

/// The value of each level; empty where the node lacks one.
std::vector<std::string> path_of(const Node& node, const std::vector<std::string>& levels);

// All that stands behind Nodes: the table of nodes, and what is derived from it. Whoever changes a
// booking does it here, so that the indexes hear of it.

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
