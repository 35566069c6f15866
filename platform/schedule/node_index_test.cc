#include "schedule/node_index.h"

#include <gtest/gtest.h>

#include "schedule/test_nodes.h"

namespace muster::schedule {
namespace {

Node in(std::string name, int gpus, std::string rack, std::string block) {
  Node node = node_of(std::move(name), gpus);
  if (!rack.empty()) node.topology["rack"] = std::move(rack);
  if (!block.empty()) node.topology["block"] = std::move(block);
  return node;
}

// Block b1 has the racks r1 and r2, b2 has r3; x is in no block.
Nodes cluster() {
  return nodes_of({in("a", 2, "r1", "b1"), in("b", 2, "r1", "b1"), in("c", 2, "r2", "b1"),
                   in("d", 4, "r3", "b2"), in("e", 4, "r3", "b2"), in("x", 8, "", "")});
}

Gang gang_in(int tasks, const Claim& claim, std::string required, std::string preferred = "") {
  Gang gang = gang_of(tasks, claim);
  gang.required_topology = std::move(required);
  gang.preferred_topology = std::move(preferred);
  return gang;
}

TEST(Topology, AGangThatRequiresALevelGoesIntoTheFullestDomainThatHoldsItAll) {
  Nodes nodes = cluster();
  EXPECT_EQ(where(nodes, gang_in(3, gpus(1), "rack")), "a a b");
  EXPECT_EQ(where(nodes, gang_in(2, gpus(1), "rack")), "c c");
  EXPECT_EQ(where(nodes, gang_in(2, gpus(1), "rack")), "d d");
}

TEST(Topology, ANodeWithoutTheLevelIsNoDomain) {
  Nodes nodes = cluster();
  EXPECT_EQ(where(nodes, gang_in(1, gpus(8), "rack")), "none");
  EXPECT_EQ(where(nodes, gang_of(1, gpus(8))), "x");
}

TEST(Topology, NoTasksNeedNoDomain) {
  Nodes nodes = nodes_of({node_of("a", 1)});
  const auto placed = nodes.place(gang_in(1, gpus(1), "rack"), {0}, {});
  ASSERT_TRUE(placed);
  EXPECT_TRUE(placed->empty());
}

TEST(Topology, TheShortageNamesTheLevelIfOnlyTheLevelPreventsThePlacement) {
  Nodes nodes = cluster();
  const Nodes before = nodes;
  const auto placed = place(nodes, gang_in(3, gpus(4), "rack"));
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().topology, "rack");
  EXPECT_EQ(placed.error().tasks, 3);
  EXPECT_EQ(placed.error().nodes, 6);
  EXPECT_TRUE(nodes == before);

  const auto nowhere = place(nodes, gang_in(30, gpus(1), "rack"));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().topology, "");
  EXPECT_EQ(nowhere.error().placed, 22);
  EXPECT_TRUE(nodes == before);
}

TEST(Topology, TheShortageHasTheNumberOfTasksThatFitIntoTheBestDomain) {
  Nodes nodes = nodes_of({in("a", 4, "r1", ""), in("b", 3, "r2", ""), in("c", 3, "r2", "")});
  const auto placed = place(nodes, gang_in(3, gpus(2), "rack"));
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().topology, "rack");
  EXPECT_EQ(placed.error().placed, 2);
}

TEST(Topology, APreferredLevelIsLeftWhereNoDomainHoldsTheGang) {
  Nodes nodes = cluster();
  EXPECT_EQ(where(nodes, gang_in(4, gpus(1), "", "rack")), "a a b b");
  EXPECT_EQ(where(nodes, gang_in(3, gpus(4), "", "rack")), "d e x");
}

TEST(Topology, FallsBackFromThePreferredToTheRequiredLevel) {
  Nodes nodes = cluster();
  EXPECT_EQ(where(nodes, gang_in(5, gpus(1), "block", "rack")), "d d d d e");
  nodes = cluster();
  Gang gang = gang_in(3, gpus(2), "block", "rack");
  gang.excluded_nodes = {"d", "e"};
  EXPECT_EQ(where(nodes, gang), "a b c");
}

TEST(Topology, FurtherTasksJoinTheDomainOfThoseThatRun) {
  Nodes nodes = cluster();
  const Gang gang = gang_in(1, gpus(1), "rack");
  const Booking runs{.node = *nodes.find("d"), .devices = 1, .share_milli = kWholeGpu};
  nodes.book(runs);

  const auto more = nodes.place(gang, {7}, {}, {runs});
  ASSERT_TRUE(more);
  for (const Booking& booking : *more)
    EXPECT_EQ(nodes.node(booking.node).topology.at("rack"), "r3");
  const auto full = nodes.place(gang, {1}, {}, {runs});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().topology, "rack");
}

TEST(Topology, ADomainChangesWithItsNodes) {
  Nodes nodes = cluster();
  EXPECT_EQ(where(nodes, gang_in(6, gpus(2), "rack")), "none");
  nodes.set(in("f", 4, "r3", "b2"));
  EXPECT_EQ(where(nodes, gang_in(6, gpus(2), "rack")), "d d e e f f");
}

}  // namespace
}  // namespace muster::schedule
