#include "schedule/placement.h"

#include <gtest/gtest.h>

#include "schedule/test_nodes.h"

namespace muster::schedule {
namespace {

TEST(Placement, PacksOntoTheFullestNodeThatFits) {
  Nodes nodes = nodes_of({node_of("a", 8), node_of("b", 4), node_of("c", 2)});
  EXPECT_EQ(where(nodes, gang_of(1, gpus(1))), "c");
  EXPECT_EQ(where(nodes, gang_of(1, gpus(2))), "b");
  EXPECT_EQ(where(nodes, gang_of(1, gpus(4))), "a");
  EXPECT_EQ(where(nodes, gang_of(3, gpus(1))), "c b b");
}

TEST(Placement, SpreadsOntoTheEmptiestNode) {
  Nodes nodes = nodes_of({node_of("a", 2), node_of("b", 4)});
  EXPECT_EQ(where(nodes, gang_of(4, gpus(1)), Packing::kSpread), "b b a b");
}

TEST(Placement, AGangsOwnPackingComesFirst) {
  Nodes nodes = nodes_of({node_of("a", 2), node_of("b", 4)});
  Gang gang = gang_of(1, gpus(1));
  gang.packing = Packing::kSpread;
  EXPECT_EQ(where(nodes, gang, Packing::kPack), "b");
}

TEST(Placement, WithoutUsualClaimsFragmentationPacks) {
  Nodes nodes = nodes_of({node_of("a", 8), node_of("b", 2)});
  EXPECT_EQ(where(nodes, gang_of(1, gpus(1)), Packing::kFragmentation), "b");
}

TEST(Placement, APartlyUsedGpuIsPreferredToAWholeGpuOnAFullerNode) {
  Nodes nodes = nodes_of({node_of("a", 4), node_of("b", 1)});
  nodes.book({.node = 0, .devices = 0b0100, .share_milli = 600});

  const auto placed = place(nodes, gang_of(2, share(300)));
  ASSERT_TRUE(placed);
  EXPECT_EQ(nodes.place_of(placed->at(0)), (TaskPlace{"a", {2}, 300}));
  EXPECT_EQ(nodes.place_of(placed->at(1)), (TaskPlace{"b", {0}, 300}));
}

TEST(Placement, TasksThatAskForCpusAloneAvoidNodesWithGpus) {
  Nodes nodes = nodes_of({node_of("a", 8, 16), node_of("z", 0, 64)});
  for (const Packing packing : {Packing::kPack, Packing::kSpread, Packing::kFragmentation}) {
    Nodes fresh = nodes;
    EXPECT_EQ(where(fresh, gang_of(3, cpus(30)), packing), "none");
    EXPECT_EQ(where(fresh, gang_of(2, cpus(32)), packing), "z z");
    EXPECT_EQ(where(fresh, gang_of(1, cpus(8)), packing), "a");
  }
}

TEST(Placement, BooksNothingWhenOneTaskOfTheGangFindsNoRoom) {
  Nodes nodes = nodes_of({node_of("a", 2), node_of("b", 1)});
  const Nodes before = nodes;

  EXPECT_FALSE(place(nodes, gang_of(2, gpus(2))));
  EXPECT_TRUE(nodes == before);
}

TEST(Placement, ReportsTheShortage) {
  Node cordoned = node_of("z", 8);
  cordoned.cordoned = true;
  Nodes nodes = nodes_of({node_of("a", 4, 8), node_of("b", 4, 64, 2), node_of("c", 1), cordoned});
  const Gang gang = gang_of(4, {.gpus = 2, .cpu_milli = 4000, .memory_bytes = 2 * kGib});

  const auto placed = place(nodes, gang);
  ASSERT_FALSE(placed);
  const Shortage& shortage = placed.error();
  EXPECT_EQ(shortage.tasks, 4);
  EXPECT_EQ(shortage.placed,
            3);  // two on a, which has no CPUs and GPUs left; one on b, which has no memory left
  EXPECT_EQ(shortage.claim, gang.groups[0].claim);
  EXPECT_EQ(shortage.nodes, 3);
  EXPECT_EQ(shortage.cordoned, 1);
  EXPECT_EQ(shortage.free_gpu_milli, 9000);  // without the gang
  EXPECT_EQ(shortage.largest_free_gpu_milli, 4000);
  EXPECT_EQ(shortage.largest_free_cpu_milli, 64'000);
  EXPECT_EQ(shortage.largest_free_memory_bytes, 256 * kGib);
  EXPECT_EQ(shortage.lack_gpu, 2);
  EXPECT_EQ(shortage.lack_cpu, 1);
  EXPECT_EQ(shortage.lack_memory, 1);
  EXPECT_EQ(shortage.lack_task_slots, 0);
  EXPECT_EQ(shortage.topology, "");
}

TEST(Placement, TheShortageNamesTheSilentNodesThatMayBeMeant) {
  const auto a100 = [](const std::string& name, int count) {
    Node node = node_of(name, count);
    node.gpu_model = "A100";
    return node;
  };
  Node silent = a100("z", 8);
  silent.cordoned = silent.silent = true;
  Node other_model = silent;
  other_model.name = "y";
  other_model.gpu_model = "H100";
  const Node unknown{.name = "x", .cordoned = true, .silent = true, .fault = "no route"};
  Node cordoned = a100("w", 8);
  cordoned.cordoned = true;
  Nodes nodes = nodes_of({a100("a", 1), silent, other_model, unknown, cordoned});
  Gang gang = gang_of(1, gpus(2));
  gang.gpu_models = {"A100"};

  const auto placed = place(nodes, gang);

  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().cordoned, 1);
  ASSERT_EQ(placed.error().silent.size(), 2U);
  EXPECT_EQ(placed.error().silent[0]->name, "x");
  EXPECT_EQ(placed.error().silent[0]->fault, "no route");
  EXPECT_EQ(placed.error().silent[1]->name, "z");

  gang.excluded_nodes = {"x", "z"};
  EXPECT_TRUE(place(nodes, gang).error().silent.empty());
  EXPECT_EQ(place(nodes, gang).error().cordoned, 1);
  silent.cordoned = silent.silent = false;
  nodes.set(silent);
  gang.excluded_nodes = {"x"};
  EXPECT_TRUE(place(nodes, gang));
}

TEST(Placement, TheShortageNamesTheGroupThatDoesNotFit) {
  Nodes nodes = nodes_of({node_of("a", 2, 4)});
  Gang gang{.groups = {{.claim = cpus(1)}, {.claim = gpus(4)}}};
  const auto placed = place(nodes, gang);
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().placed, 1);
  EXPECT_EQ(placed.error().claim, gpus(4));
}

// The first group takes the only node on which the last group fits.

TEST(Placement, TriesTheLargestTasksFirstIfTheOrderOfTheGroupsFindsNoRoom) {
  Nodes nodes = nodes_of({node_of("a", 8, 64), node_of("b", 0, 16)});
  const Gang cluster{.groups = {{.claim = cpus(1), .count = 1, .minimum = 1},
                                {.claim = gpus(1, 8), .count = 7, .minimum = 7},
                                {.claim = cpus(16), .count = 1, .minimum = 1}}};
  EXPECT_FALSE(nodes.could_never_hold(cluster));

  EXPECT_EQ(where(nodes, cluster), "a a a a a a a a b");
}

TEST(Placement, TriesToPackIfSpreadTasksFindNoRoom) {
  Nodes nodes = nodes_of({node_of("a", 8), node_of("b", 4)});
  Gang cluster{.groups = {{.claim = gpus(1)}, {.claim = gpus(8)}}};
  cluster.packing = Packing::kSpread;
  EXPECT_FALSE(nodes.could_never_hold(cluster));

  EXPECT_EQ(where(nodes, cluster), "b a");
}

TEST(Placement, TriesOtherOrdersWithinEachDomain) {
  Node a = node_of("a", 8, 64);
  Node b = node_of("b", 0, 16);
  Node c = node_of("c", 1, 64);
  a.topology = b.topology = {{"rack", "r1"}};
  c.topology = {{"rack", "r2"}};
  Nodes nodes = nodes_of({a, b, c});
  Gang cluster{.groups = {{.claim = cpus(1)}, {.claim = gpus(7, 56)}, {.claim = cpus(16)}}};
  cluster.required_topology = "rack";

  EXPECT_EQ(where(nodes, cluster), "a a b");
}

TEST(Placement, TriesOtherOrdersForResourcesThatBecomeFree) {
  Nodes nodes = nodes_of({node_of("a", 8, 64), node_of("b", 0, 16)});
  const Gang cluster{.groups = {{.claim = cpus(1)}, {.claim = gpus(7, 56)}, {.claim = cpus(16)}}};

  EXPECT_EQ(where(nodes, cluster, Packing::kPack, FreeWhen::kLater), "a a b");
}

TEST(Placement, ReportsTheFirstAttemptIfNoOrderFindsRoom) {
  Nodes nodes = nodes_of({node_of("a", 3), node_of("b", 3)});
  const Nodes before = nodes;
  const Gang cluster{.groups = {{.claim = gpus(2), .count = 2}, {.claim = gpus(2, 1)}}};

  const auto placed = place(nodes, cluster);

  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().placed, 2);
  EXPECT_EQ(placed.error().claim, gpus(2, 1));
  EXPECT_EQ(placed.error().free_gpu_milli, 6000);
  EXPECT_EQ(placed.error().lack_gpu, 2);
  EXPECT_TRUE(nodes == before);
}

TEST(Placement, TaskSlotsAreASeparateLimit) {
  Node node = node_of("a", 8);
  node.task_slots = 2;
  Nodes nodes = nodes_of({node});
  EXPECT_EQ(where(nodes, gang_of(2, cpus(1))), "a a");
  const auto placed = place(nodes, gang_of(1, gpus(1)));
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().lack_task_slots, 1);
  EXPECT_EQ(placed.error().lack_gpu, 0);
}

TEST(Placement, HonoursModelsLabelsAndExclusions) {
  Node a = node_of("a", 1);
  a.gpu_model = "A100";
  a.labels = {{"zone", "1"}};
  Node b = node_of("b", 1);
  b.gpu_model = "H100";
  b.labels = {{"zone", "1"}, {"disk", "ssd"}};
  Node c = node_of("c", 1);
  c.gpu_model = "H100";
  Nodes nodes = nodes_of({a, b, c});
  const auto fitting = [&](const Gang& gang) {
    Nodes fresh = nodes;
    const auto placed = fresh.place(gang, {4}, {});
    return placed ? -1 : placed.error().nodes;
  };
  Gang gang = gang_of(4, gpus(1));
  EXPECT_EQ(fitting(gang), 3);
  gang.gpu_models = {"H100", "B200"};
  EXPECT_EQ(fitting(gang), 2);
  gang.excluded_nodes = {"c", "unheard of"};
  EXPECT_EQ(fitting(gang), 1);
  gang.gpu_models.clear();
  gang.excluded_nodes.clear();
  gang.node_labels = {{"zone", "1"}};
  EXPECT_EQ(fitting(gang), 2);
  gang.node_labels["disk"] = "ssd";
  EXPECT_EQ(fitting(gang), 1);
  gang.node_labels["disk"] = "hdd";
  EXPECT_EQ(fitting(gang), 0);

  gang.node_labels = {{"disk", "ssd"}};
  EXPECT_EQ(where(nodes, gang_of(1, gpus(1))), "a");
  gang.groups[0] = {.claim = gpus(1)};
  EXPECT_EQ(where(nodes, gang), "b");
}

TEST(Placement, UsesATaintedNodeOnlyForGangsThatTolerateAllItsTaints) {
  Nodes nodes;
  Node node = node_of("n", 1);
  node.taints = {"for=train:NoSchedule", "spot:NoExecute"};
  nodes.set(node);
  Gang gang = gang_of(1, gpus(1));
  EXPECT_EQ(where(nodes, gang), "none");
  gang.tolerations = {"for"};
  EXPECT_EQ(where(nodes, gang), "none");
  gang.tolerations = {"for=train", "spot:NoExecute"};
  EXPECT_EQ(where(nodes, gang), "n");
}

TEST(Placement, FindsANodeByALabelThatDiffersOnEachOfManyNodes) {
  Nodes nodes;
  for (int number = 0; number < 100; ++number) {
    Node node = node_of("n" + std::to_string(number), 1);
    node.labels = {{"host", node.name}, {"parity", number % 2 == 0 ? "even" : "odd"}};
    node.cordoned = number == 8;
    nodes.set(node);
  }
  Gang gang = gang_of(1, gpus(1));
  gang.node_labels = {{"host", "n42"}, {"parity", "even"}};
  EXPECT_EQ(where(nodes, gang), "n42");
  const auto taken = place(nodes, gang);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().nodes, 1);
  EXPECT_EQ(taken.error().cordoned, 0);
  EXPECT_EQ(taken.error().lack_gpu, 1);

  gang.node_labels = {{"host", "n8"}};
  const auto cordoned = place(nodes, gang);
  ASSERT_FALSE(cordoned);
  EXPECT_EQ(cordoned.error().nodes, 0);
  EXPECT_EQ(cordoned.error().cordoned, 1);
  gang.excluded_nodes = {"n8", "n8"};
  EXPECT_EQ(place(nodes, gang).error().cordoned, 0);
  gang.node_labels["parity"] = "odd";
  EXPECT_EQ(where(nodes, gang), "none");
}

TEST(Placement, ClosedNodesAreLeftOut) {
  Nodes nodes = nodes_of({node_of("a", 1), node_of("b", 1)});
  const std::vector<bool> closed = {true, false};
  const Gang gang = gang_of(1, gpus(1));
  const auto first = nodes.place(gang, {1}, {.closed = &closed});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->front().node, 1);
  const auto second = nodes.place(gang, {1}, {.closed = &closed});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().nodes, 1);
}

TEST(Placement, OnlyTheTasksThatAreCountedArePlaced) {
  Nodes nodes = nodes_of({node_of("a", 8)});
  Gang gang{.groups = {{.claim = gpus(1), .count = 4}, {.claim = gpus(2), .count = 4}}};
  const auto placed = nodes.place(gang, {0, 2}, {});
  ASSERT_TRUE(placed);
  ASSERT_EQ(placed->size(), 2U);
  EXPECT_EQ(placed->at(0).devices, 0b0011U);
  EXPECT_EQ(placed->at(1).devices, 0b1100U);
}

}  // namespace
}  // namespace muster::schedule
