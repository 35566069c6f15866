// The data behind Nodes: the table of nodes with their bookings, and the indexes derived from it
// (by free resources, by topology domain).
//
// Plain data; copies share parts that seldom change. Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/node_room.h"
#include "schedule/nodes.h"

namespace muster::schedule {

/// The properties by which gangs select nodes, independent of what is free. Cordoned nodes also
/// have a kind.
struct NodeKind {
  int gpus = 0;
  std::string gpu_model;
  int64_t gpu_memory_bytes = 0;
  std::map<std::string, std::string> labels;  ///< only labels of distinguish_by()
  std::vector<std::string> taints;

  auto operator<=>(const NodeKind&) const = default;
};

struct KindEntry {
  NodeKind kind;
  int open = 0;      ///< nodes that are not cordoned
  int cordoned = 0;  ///< nodes that are cordoned
};

struct NodeEntry {
  std::shared_ptr<const Node> spec;  ///< nullptr: removed
  int kind = -1;
  NodeUse now;    ///< by tasks
  NodeUse later;  ///< by tasks that are not leaving, and promised
  NodeUse kept;   ///< as `later`, with reservations and without the tasks that yield to them
};

/// Equal nodes are ordered by name, so that the order does not depend on when they were added.
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
  /// The position of a node in the order of names. REQUIRES: settle_ranks() was called.
  int rank(NodeIndex node) const { return names_->rank[static_cast<size_t>(node)]; }
  /// Updates the ranks after nodes were added or removed.
  void settle_ranks();

  NodeIndex set(const Node& node);
  void remove(NodeIndex node);

  /// The sum of all nodes that are not cordoned, at most kUnlimited of each.
  Amounts total() const { return total_.clamped(); }
  const std::vector<KindEntry>& kinds() const { return kinds_; }
  /// Adds these labels, which a gang requires, to the node kinds. Labels with a different value on
  /// almost every node, such as a host name, are not added: each node would be a kind of its own.
  /// Returns whether kinds have changed.
  bool distinguish_by(const std::map<std::string, std::string>& labels);
  /// The nodes that do not answer.
  const std::set<NodeIndex>& silent() const { return silent_; }

  /// REQUIRES: distinguish_by() was called with this label.
  bool distinguishes(const std::string& label) const { return asked_labels_.at(label); }

  /// The GPU memory of the smallest GPU; 0: unknown.
  int64_t smallest_gpu_memory() const {
    return gpu_memories_.empty() ? 0 : gpu_memories_.begin()->first;
  }
  /// The amounts that a task of `claim` counts in the ledger, on any GPU. They depend on the nodes
  /// only by smallest_gpu_memory().
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
  std::map<std::string, bool> asked_labels_;  ///< label -> whether kinds contain it
  std::map<int64_t, int> gpu_memories_;       ///< GPU memory -> number of nodes
  std::set<NodeIndex> silent_;
  WideAmounts total_;
};

/// Whether the node has never answered, so that its resources, labels and GPU model are not known.
bool has_unknown_size(const Node& node);

/// What a placement may use on a node.
void room_for(const NodeEntry& entry, FreeWhen room, NodeRoom& out);

// The nodes by what is free on them. Nodes of one kind with equal free resources form a class, and
// a search examines classes: a busy cluster of ten thousand equal machines has a few dozen. Classes
// are in buckets by free GPUs; each bucket has bounds of the other resources, so that a search
// skips most buckets that cannot fit.
//
// The index is updated when it is searched, not when a node changes, so trials that book and unbook
// cost nothing.

/// The rating of a node for a task: less waste is better.
struct Score {
  double waste = 0;
  int device_milli = 0;  ///< free on the device, for a share; else 0
};
inline constexpr int kNotScored = -1;  ///< as device_milli

struct NodeClass {
  int kind = 0;
  NodeRoom room;                   ///< devices in descending order
  std::vector<NodeIndex> members;  ///< in the order of their names
  // Caches of choose_node().
  std::optional<double> waste;  ///< of one of its nodes without the task
  std::vector<Score> scores;    ///< by number_of(claim)
};

/// Upper bounds of the classes in a bucket.
struct RoomBounds {
  int64_t cpu_milli = std::numeric_limits<int64_t>::min();
  int64_t memory_bytes = std::numeric_limits<int64_t>::min();
  int whole_gpus = 0;
  int largest_device = 0;   ///< thousandths
  int largest_partial = 0;  ///< of the partly used devices
};

struct RoomBucket {
  std::vector<int> classes;  ///< by free CPUs, then memory
  RoomBounds bounds;
};

class RoomIndex {
 public:
  explicit RoomIndex(FreeWhen room) : room_(room) {}

  /// Marks a node as changed.
  void touch(NodeIndex node);
  /// Marks all nodes as changed.
  void touch_all() { stale_ = true; }
  /// Updates the index. REQUIRES: ranks are settled. All functions below require settle() after the
  /// last touch().
  void settle(const NodeTable& table);
  /// Restricts the index to these nodes, and settles it.
  void restrict_to(const NodeTable& table, const std::vector<NodeIndex>& nodes);

  /// By (node has GPUs, free thousandths of GPUs).
  using Buckets = std::map<std::pair<bool, int64_t>, RoomBucket>;
  Buckets& buckets() { return buckets_; }
  const Buckets& buckets() const { return buckets_; }
  NodeClass& at(int number) { return classes_[static_cast<size_t>(number)]; }
  const NodeClass& at(int number) const { return classes_[static_cast<size_t>(number)]; }
  /// The class of a node; -1 if it is cordoned or removed.
  int class_of(NodeIndex node) const { return class_of_[static_cast<size_t>(node)]; }
  void tighten(RoomBucket& bucket) const;
  /// The first class of the bucket with at least `cpu_milli` free.
  std::vector<int>::const_iterator first_with(const RoomBucket& bucket, int64_t cpu_milli) const;

  /// The index of `claim` in NodeClass::scores.
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

  FreeWhen room_;
  bool stale_ = true;
  std::vector<NodeIndex> touched_;
  std::vector<bool> is_touched_;
  std::vector<int> class_of_;
  std::vector<NodeClass> classes_;
  std::unordered_multimap<uint64_t, int> by_state_;
  std::vector<int> free_numbers_;
  int empty_ = 0;  ///< number of classes without members; kept, because nodes often return to them
  Buckets buckets_;
  std::vector<Claim> scored_claims_;
  NodeRoom scratch_;
};

/// The nodes with the same values of one or several topology levels. A node without a value of one
/// of the levels is in no domain.
struct Domain {
  std::vector<std::string> path;  ///< the value of each level
  std::vector<NodeIndex> nodes;   ///< by name
};

/// A cache of domains, until a node changes.
class TopologyMemory {
 public:
  /// By path.
  const std::vector<Domain>& domains(const NodeTable& table,
                                     const std::vector<std::string>& levels);
  void forget() { known_.clear(); }

 private:
  std::map<std::vector<std::string>, std::vector<Domain>> known_;
};

/// The value of each level; empty if the node lacks one.
std::vector<std::string> path_of(const Node& node, const std::vector<std::string>& levels);

/// The table of nodes and its indexes. Bookings are changed here, so that the indexes are updated.
struct NodeBooks {
  NodeTable table;
  RoomIndex now{FreeWhen::kNow};
  RoomIndex later{FreeWhen::kLater};
  Fragmentation fragmentation;
  TopologyMemory topology;

  RoomIndex& index(FreeWhen room) { return room == FreeWhen::kNow ? now : later; }

  /// kNow: changes what is free now and later; kLater: only later.
  void take(const Booking& booking, FreeWhen room);
  void give(const Booking& booking, FreeWhen room);
  void take_now_only(const Booking& booking);
  void give_now_only(const Booking& booking);
  void take_kept_only(const Booking& booking);
  void give_kept_only(const Booking& booking);

  NodeIndex set(const Node& node);
  void remove(NodeIndex node);
  /// Updates the index that a search for `room` uses.
  void settle(FreeWhen room);

 private:
  void touch(NodeIndex node) {
    now.touch(node);
    later.touch(node);
  }
};

}  // namespace muster::schedule
