#include "world/world.h"

#include <gtest/gtest.h>

namespace muster::collective {
namespace {

TEST(Topology, NumbersHostsInTheOrderOfTheirLowestRank) {
  const Topology topology = topology_of({"b", "a", "b", "c", "a"});
  EXPECT_EQ(topology.host_of, (std::vector<int>{0, 1, 0, 2, 1}));
  EXPECT_EQ(topology.ranks_on, (std::vector<std::vector<int>>{{0, 2}, {1, 4}, {3}}));
  EXPECT_EQ(topology.hosts(), 3);
  EXPECT_EQ(topology.local_rank_of(4), 1);
  EXPECT_EQ(topology.neighbours_of(2), (std::vector<int>{0, 2}));
}

TEST(Topology, IsHierarchicalWithTheSameNumberOfSharingRanksOnEachHost) {
  struct Row {
    std::vector<std::string> host_ids;
    std::vector<bool> memory_on;
    bool is_hierarchical;
  };
  for (const Row& row :
       {Row{{"a", "a", "b", "b"}, {true, true}, true},
        Row{{"a", "b", "a", "b"}, {true, true}, true},
        Row{{"a", "a", "b", "b"}, {true, false}, false}, Row{{"a", "a", "b"}, {true, false}, false},
        Row{{"a", "b"}, {false, false}, false}, Row{{"a", "a"}, {true}, false}}) {
    Topology topology = topology_of(row.host_ids);
    topology.memory_on = row.memory_on;
    EXPECT_EQ(topology.is_hierarchical(), row.is_hierarchical);
  }
}

TEST(Topology, OfOneHostIsSharedIfItsMemoryIs) {
  Topology topology = topology_of({"a", "a"});
  EXPECT_FALSE(topology.is_one_shared_host());
  topology.memory_on[0] = true;
  EXPECT_TRUE(topology.is_one_shared_host());
}

}  // namespace
}  // namespace muster::collective
