// Domains: the nodes that share a value of one or several topology levels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "schedule/node_table.h"

namespace muster::schedule {

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

}  // namespace muster::schedule
