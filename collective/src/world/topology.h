// Which ranks are on one host. Hosts are numbered in the order of their lowest rank.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muster::collective {

struct Topology {
  std::vector<int> host_of;                // by rank: the number of its host
  std::vector<std::vector<int>> ranks_on;  // by host: its ranks, ascending
  std::vector<bool> memory_on;             // by host: whether its ranks share memory

  int hosts() const { return static_cast<int>(ranks_on.size()); }

  const std::vector<int>& neighbours_of(int rank) const {
    return ranks_on[static_cast<std::size_t>(host_of[static_cast<std::size_t>(rank)])];
  }

  /// The place of a rank among the ranks of its host.
  int local_rank_of(int rank) const;

  /// One host, whose ranks share memory: nothing else is needed.
  bool is_one_shared_host() const { return hosts() == 1 && memory_on[0]; }

  /// Every host has the same number of ranks, two or more, and they share memory.
  bool is_hierarchical() const;
};

/// From one id a rank: ranks with equal ids are on one host. `memory_on` is all false.
Topology topology_of(const std::vector<std::string>& host_ids);

}  // namespace muster::collective
