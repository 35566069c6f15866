#include "world/world.h"

#include <algorithm>

namespace muster::collective {

int Topology::local_rank_of(int rank) const {
  const std::vector<int>& local = neighbours_of(rank);
  return static_cast<int>(std::ranges::find(local, rank) - local.begin());
}

bool Topology::is_hierarchical() const {
  const std::size_t width = ranks_on.empty() ? 0 : ranks_on[0].size();
  return hosts() > 1 && width > 1 &&
         std::ranges::all_of(ranks_on, [&](const auto& ranks) { return ranks.size() == width; }) &&
         std::ranges::all_of(memory_on, [](bool shares) { return shares; });
}

Topology topology_of(const std::vector<std::string>& host_ids) {
  Topology topology;
  std::vector<std::string> seen;
  for (std::size_t rank = 0; rank < host_ids.size(); ++rank) {
    const auto found = std::ranges::find(seen, host_ids[rank]);
    const auto host = static_cast<std::size_t>(found - seen.begin());
    if (found == seen.end()) {
      seen.push_back(host_ids[rank]);
      topology.ranks_on.emplace_back();
      topology.memory_on.push_back(false);
    }
    topology.host_of.push_back(static_cast<int>(host));
    topology.ranks_on[host].push_back(static_cast<int>(rank));
  }
  return topology;
}

}  // namespace muster::collective
