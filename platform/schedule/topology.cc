#include "schedule/topology.h"

namespace muster::schedule {

std::vector<std::string> path_of(const Node& node, const std::vector<std::string>& levels) {
  std::vector<std::string> path;
  for (const std::string& level : levels) {
    const auto found = node.topology.find(level);
    if (found == node.topology.end()) return {};
    path.push_back(found->second);
  }
  return path;
}

const std::vector<Domain>& TopologyMemory::domains(const NodeTable& table,
                                                   const std::vector<std::string>& levels) {
  const auto known = known_.find(levels);
  if (known != known_.end()) return known->second;
  std::map<std::vector<std::string>, std::vector<NodeIndex>> by_path;
  for (const auto& [name, index] : table.by_name()) {
    std::vector<std::string> path = path_of(table.spec(index), levels);
    if (!path.empty()) by_path[std::move(path)].push_back(index);
  }
  std::vector<Domain>& domains = known_[levels];
  for (auto& [path, nodes] : by_path) domains.push_back({path, std::move(nodes)});
  return domains;
}

}  // namespace muster::schedule
