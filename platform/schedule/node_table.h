// The nodes by index, by name and by kind, with what is booked on each: the truth that every index
// behind Nodes is made from.
//
// Plain data; copies share what seldom changes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
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

}  // namespace muster::schedule
