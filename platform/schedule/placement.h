// The placement of a gang: nodes and GPUs for all its tasks, or a shortage.
//
// Deterministic: of equal nodes, the first by name is used. Pure, except that it fills the caches
// of the index (bounds, scores).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedule/node_index.h"
#include "schedule/node_room.h"

namespace muster::schedule {

/// Implements Nodes::place().
base::Result<std::vector<Booking>, Shortage> place_gang(NodeBooks& books, const Gang& gang,
                                                        const std::vector<int>& counts,
                                                        const PlaceOptions& options,
                                                        const std::vector<Booking>& beside);

/// Implements Nodes::would_fit_without().
std::optional<bool> place_without(NodeBooks& books, const std::vector<Booking>& reserved,
                                  const Gang& gang, const std::vector<int>& counts,
                                  const Shortage& shortage);

/// The nodes that a gang may use: kinds, without single nodes.
struct Eligible {
  std::vector<bool> kinds;
  std::vector<NodeIndex> excluded;  ///< ascending
  const std::vector<bool>* closed = nullptr;
  const NodeTable* table = nullptr;
  std::map<std::string, std::string> labels;  ///< required labels that node kinds do not contain

  bool has_labels(NodeIndex node) const;
  bool is_shut(NodeIndex node) const;
  bool shuts_none() const { return excluded.empty() && closed == nullptr && labels.empty(); }
};

/// REQUIRES: NodeTable::distinguish_by() was called with the gang's labels.
Eligible eligible_for(const NodeTable& table, const Gang& gang, const std::vector<bool>* closed);

/// What a task of one claim needs on nodes of each kind.
struct TaskNeeds {
  Claim claim;
  std::vector<std::optional<Need>> by_kind;  ///< nothing: the task cannot run on this kind
  bool possible = false;                     ///< on at least one kind
  Need least;                                ///< the smallest need of all kinds
};

TaskNeeds needs_for(const NodeTable& table, const Eligible& eligible, const Claim& claim);

/// The node and the GPUs for one task; nothing if it fits on no eligible node of the index.
std::optional<Booking> choose_node(const NodeTable& table, RoomIndex& index,
                                   const Fragmentation& fragmentation, const Eligible& eligible,
                                   const TaskNeeds& needs, Packing packing, FreeWhen room);

/// Counts the eligible nodes and what is free on them.
void count_free(const NodeBooks& books, const RoomIndex& index, const Eligible& eligible,
                Shortage& shortage);
/// Counts how many eligible nodes lack each resource for one more task.
void count_lacks(const RoomIndex& index, const Eligible& eligible, const TaskNeeds& needs,
                 Shortage& shortage);

}  // namespace muster::schedule
