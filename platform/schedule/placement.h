// Finding room for all tasks of a gang together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedule/node_index.h"
#include "schedule/node_room.h"

namespace muster::schedule {

/// Nodes::place(), on the books.
base::Result<std::vector<Booking>, Shortage> place_gang(NodeBooks& books, const Gang& gang,
                                                        const std::vector<int>& counts,
                                                        const PlaceOptions& options,
                                                        const std::vector<Booking>& beside);

// The node, and the GPUs on it, for one task.
//
// Deterministic: between equal nodes the first by name is taken. Pure but for the memories of the
// index (bounds, scores).

/// Which nodes a gang may use: by kind, and the single ones that it may not.
struct Eligible {
  std::vector<bool> kinds;
  std::vector<NodeIndex> excluded;  ///< ascending
  const std::vector<bool>* closed = nullptr;
  const NodeTable* table = nullptr;
  std::map<std::string, std::string> labels;  ///< those that kinds do not have

  bool has_labels(NodeIndex node) const;
  bool is_shut(NodeIndex node) const;
  bool shuts_none() const { return excluded.empty() && closed == nullptr && labels.empty(); }
};

/// REQUIRES: the table was told of the labels that the gang asks for.
Eligible eligible_for(const NodeTable& table, const Gang& gang, const std::vector<bool>* closed);

/// What a task of one claim needs on nodes of each kind.
struct TaskNeeds {
  Claim claim;
  std::vector<std::optional<Need>> by_kind;  ///< nothing: it cannot run there
  bool possible = false;                     ///< on any kind
  Need least;                                ///< no kind needs less
};

TaskNeeds needs_for(const NodeTable& table, const Eligible& eligible, const Claim& claim);

/// Nothing where no eligible node of the index has room.
std::optional<Booking> choose_node(const NodeTable& table, RoomIndex& index,
                                   const Fragmentation& fragmentation, const Eligible& eligible,
                                   const TaskNeeds& needs, Packing packing, Room room);

// Counts what is missing, for the sentence that tells a user why a gang waits.

/// How many eligible nodes there are, and how much is free on them.
void count_free(const NodeBooks& books, const RoomIndex& index, const Eligible& eligible,
                Shortage& shortage);
/// How many of them lack what for one more task.
void count_lacks(const RoomIndex& index, const Eligible& eligible, const TaskNeeds& needs,
                 Shortage& shortage);

}  // namespace muster::schedule
