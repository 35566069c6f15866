#include "schedule/nodes.h"

#include <gtest/gtest.h>

#include "schedule/test_nodes.h"

namespace muster::schedule {
namespace {

Booking one_gpu(NodeIndex node) {
  return {.node = node, .devices = 1, .share_milli = kWholeGpu};
}

TEST(Nodes, AReleaseGivesLaterFirstAndNowAtItsEnd) {
  Nodes nodes = nodes_of({node_of("a", 1)});
  const auto free = [&] {
    return std::pair(nodes.free_devices(0, FreeWhen::kNow)[0],
                     nodes.free_devices(0, FreeWhen::kLater)[0]);
  };
  const Booking booking = one_gpu(0);

  nodes.book(booking);
  EXPECT_EQ(free(), std::pair(0, 0));
  nodes.begin_release(booking);
  EXPECT_EQ(free(), std::pair(0, 1000));
  nodes.undo_begin_release(booking);
  EXPECT_EQ(free(), std::pair(0, 0));
  nodes.begin_release(booking);
  nodes.end_release(booking);
  EXPECT_EQ(free(), std::pair(1000, 1000));
}

TEST(Nodes, AReleaseCanBeUndoneUntilItsResourcesArePromised) {
  Nodes nodes = nodes_of({node_of("a", 2, 4)});
  const Booking first{.node = 0, .devices = 1, .share_milli = kWholeGpu, .cpu_milli = 3000};
  nodes.book(first);
  nodes.begin_release(first);
  EXPECT_TRUE(nodes.can_undo_release(first));

  const Booking same_gpu{.node = 0, .devices = 1, .share_milli = 500};
  nodes.reserve(same_gpu);
  EXPECT_FALSE(nodes.can_undo_release(first));
  nodes.unreserve(same_gpu);

  const Booking same_cpus{.node = 0, .devices = 2, .share_milli = kWholeGpu, .cpu_milli = 2000};
  nodes.reserve(same_cpus);
  EXPECT_FALSE(nodes.can_undo_release(first));
}

TEST(Nodes, FreeInAllCountsNoOverbookedAndNoCordonedNode) {
  Nodes nodes = nodes_of({node_of("a", 2, 4, 8), node_of("b", 2, 4, 8), node_of("c", 1, 1, 1)});
  nodes.book({.node = 0, .devices = 1, .share_milli = 300, .cpu_milli = 1000});
  nodes.book({.node = 0, .devices = 2, .share_milli = kWholeGpu, .cpu_milli = 5000});
  nodes.reserve(one_gpu(1));
  Node cordoned = node_of("c", 1, 1, 1);
  cordoned.cordoned = true;
  nodes.set(cordoned);

  EXPECT_EQ(nodes.free_in_all(FreeWhen::kLater), (Amounts{1700, 4000, 16 * kGib}));
}

TEST(Nodes, ReservedResourcesAreUnusedUntilATaskHoldsThem) {
  Nodes nodes = nodes_of({node_of("a", 2)});
  NodeRoom room;
  nodes.reserve(one_gpu(0));
  nodes.unused(0, room);
  EXPECT_EQ(room.devices, (std::vector<int>{kWholeGpu, kWholeGpu}));

  nodes.claim_reserved(one_gpu(0));
  nodes.unused(0, room);
  EXPECT_EQ(room.devices, (std::vector<int>{0, kWholeGpu}));
}

TEST(Nodes, APlacementWithoutAmountsIsTheSameAndARefusalBooksNothing) {
  Nodes nodes = nodes_of({node_of("a", 2), node_of("b", 1)});
  const Nodes before = nodes;
  for (const auto& [tasks, topology] : {std::pair(4, ""), std::pair(2, "rack")}) {
    Gang gang = gang_of(tasks, gpus(1));
    gang.required_topology = topology;
    EXPECT_FALSE(nodes.place(gang, {tasks}, {.with_amounts = false}));
    EXPECT_EQ(nodes, before);
  }

  const Gang fits = gang_of(3, gpus(1));
  Nodes same = nodes;
  const auto with = nodes.place(fits, {3}, {});
  const auto without = same.place(fits, {3}, {.with_amounts = false});
  ASSERT_TRUE(with && without);
  EXPECT_EQ(*without, *with);
}

TEST(Nodes, SetsOfEqualNodesAreOrderedByFreeGpusWhateverTheHistory) {
  const auto sets = [](Nodes& nodes, int most) {
    std::string text;
    nodes.each_set(FreeWhen::kLater, [&](const NodeSet& same) {
      for (const NodeIndex node : same.nodes) text += nodes.node(node).name;
      text += ":" + std::to_string(same.free.gpu_milli) + " ";
      return --most > 0;
    });
    return text;
  };
  const std::vector<Node> list{node_of("d", 0), node_of("c", 2), node_of("a", 2), node_of("b", 2)};
  Nodes nodes = nodes_of(list);
  EXPECT_EQ(sets(nodes, 9), "abc:2000 d:0 ");

  Node cordoned = list.back();
  cordoned.cordoned = true;
  nodes.set(cordoned);
  const Booking booking = one_gpu(*nodes.find("a"));
  nodes.book(booking);
  EXPECT_EQ(sets(nodes, 9), "c:2000 a:1000 d:0 ");
  EXPECT_EQ(sets(nodes, 1), "c:2000 ");
  nodes.begin_release(booking);
  EXPECT_EQ(sets(nodes, 9), "ac:2000 d:0 ");
}

TEST(Nodes, PromisedResourcesAreNotFreeForOthers) {
  Nodes nodes = nodes_of({node_of("a", 1)});
  nodes.reserve(one_gpu(0));

  EXPECT_EQ(where(nodes, gang_of(1, gpus(1))), "none");
  EXPECT_TRUE(nodes.can_claim_reserved(one_gpu(0)));
  nodes.claim_reserved(one_gpu(0));
  nodes.begin_release(one_gpu(0));
  EXPECT_EQ(where(nodes, gang_of(1, gpus(1))), "none");
  EXPECT_EQ(where(nodes, gang_of(1, gpus(1)), Packing::kPack, FreeWhen::kLater), "a");
}

TEST(Nodes, AReservedPlaceIsClaimedOnceItIsLeft) {
  Nodes nodes = nodes_of({node_of("a", 1, 4)});
  const Booking old{.node = 0, .cpu_milli = 3000};
  nodes.book(old);
  nodes.begin_release(old);
  const auto promised = place(nodes, gang_of(1, gpus(1, 2)), Packing::kPack, FreeWhen::kLater);
  ASSERT_TRUE(promised);

  EXPECT_FALSE(nodes.can_claim_reserved(promised->front()));
  nodes.end_release(old);
  EXPECT_TRUE(nodes.can_claim_reserved(promised->front()));
  nodes.claim_reserved(promised->front());
  EXPECT_EQ(nodes.free(0, FreeWhen::kNow), (Amounts{0, 2000, 256 * kGib}));
}

TEST(Nodes, APromisedPlaceIsLostIfItsNodeBecomesTooSmall) {
  Nodes nodes = nodes_of({node_of("a", 4, 8)});
  const Booking running{.node = 0, .devices = 0b11, .share_milli = kWholeGpu, .cpu_milli = 4000};
  const Booking promised{.node = 0, .devices = 0b1100, .share_milli = kWholeGpu, .cpu_milli = 4000};
  nodes.book(running);
  nodes.reserve(promised);
  EXPECT_TRUE(nodes.has_reserved(promised));

  nodes.set(node_of("a", 3, 8));
  EXPECT_FALSE(nodes.has_reserved(promised));
  nodes.set(node_of("a", 4, 7));
  EXPECT_FALSE(nodes.has_reserved(promised));
  nodes.begin_release(running);
  EXPECT_TRUE(nodes.has_reserved(promised)) << "the leaving task holds the rest";
  Node cordoned = node_of("a", 4, 8);
  cordoned.cordoned = true;
  nodes.set(cordoned);
  EXPECT_FALSE(nodes.has_reserved(promised));
}

TEST(Nodes, AReservationCountsBesideTasksThatStayAndNotBesideTasksThatYieldToIt) {
  Nodes nodes = nodes_of({node_of("a", 8, 96)});
  Booking running{.node = 0, .devices = 0b111111, .share_milli = kWholeGpu, .cpu_milli = 72'000};
  nodes.book(running);
  const Nodes before = nodes;
  const Booking kept{.node = 0, .devices = 0b1111, .share_milli = kWholeGpu, .cpu_milli = 64'000};
  nodes.keep(kept);
  EXPECT_EQ(nodes.free(0, FreeWhen::kNow).cpu_milli, -40'000);

  nodes.set_yields(running, true);
  EXPECT_EQ(nodes.free(0, FreeWhen::kNow), (Amounts{2000, 24'000, 256 * kGib}));
  EXPECT_EQ(nodes.free(0, FreeWhen::kLater), (Amounts{2000, 24'000, 256 * kGib}));
  nodes.begin_release(running);
  EXPECT_EQ(nodes.free(0, FreeWhen::kNow), (Amounts{2000, 24'000, 256 * kGib}));
  EXPECT_EQ(nodes.free(0, FreeWhen::kLater), (Amounts{4000, 32'000, 256 * kGib}));
  EXPECT_TRUE(nodes.can_undo_release(running));
  nodes.undo_begin_release(running);

  nodes.set_yields(running, false);
  nodes.unkeep(kept);
  EXPECT_EQ(nodes, before);
}

TEST(Nodes, ACordonedNodeGetsNoTasksAndKeepsItsTasks) {
  Nodes nodes = nodes_of({node_of("a", 2), node_of("b", 1)});
  nodes.book(one_gpu(0));
  nodes.reserve({.node = 0, .devices = 2, .share_milli = kWholeGpu});
  Node cordoned = nodes.node(0);
  cordoned.cordoned = true;
  EXPECT_EQ(nodes.set(cordoned), 0);

  EXPECT_EQ(nodes.total(), (Amounts{1000, 64'000, 256 * kGib}));
  EXPECT_FALSE(nodes.can_claim_reserved({.node = 0, .devices = 2, .share_milli = kWholeGpu}));
  EXPECT_EQ(where(nodes, gang_of(1, gpus(1))), "b");
  EXPECT_EQ(where(nodes, gang_of(1, gpus(1))), "none");
  EXPECT_EQ(nodes.free_devices(0, FreeWhen::kLater), (std::vector<int>{0, 0}));
}

TEST(Nodes, TheTotalIsUnlimitedWhereItsSumIsTooLarge) {
  constexpr int64_t kHuge = int64_t{1} << 60;
  Nodes nodes;
  for (int i = 0; i < 9; ++i) {
    nodes.set({.name = std::to_string(i), .gpus = 1, .memory_bytes = kHuge});
  }
  EXPECT_EQ(nodes.total(), (Amounts{9000, 0, kUnlimited}));

  for (int i = 1; i < 9; ++i) nodes.remove(i);
  EXPECT_EQ(nodes.total(), (Amounts{1000, 0, kHuge}));
}

TEST(Nodes, ANodeThatComesBackSmallerHasLessThanNothingFree) {
  Nodes nodes = nodes_of({node_of("a", 4, 8)});
  nodes.book({.node = 0, .devices = 0b1100, .share_milli = kWholeGpu, .cpu_milli = 6000});
  nodes.set(node_of("a", 2, 4));

  EXPECT_EQ(nodes.free(0, FreeWhen::kNow), (Amounts{0, -2000, 256 * kGib}));
  EXPECT_EQ(where(nodes, gang_of(1, Claim{})), "none");
  nodes.unbook({.node = 0, .devices = 0b1100, .share_milli = kWholeGpu, .cpu_milli = 6000});
  EXPECT_EQ(nodes.free_devices(0, FreeWhen::kNow), (std::vector<int>{1000, 1000}));
  EXPECT_EQ(where(nodes, gang_of(2, gpus(1))), "a a");
}

TEST(Nodes, ARemovedNodeIsForgottenAndItsIndexUsedAgain) {
  Nodes nodes = nodes_of({node_of("a", 1), node_of("b", 1)});
  nodes.remove(0);
  EXPECT_FALSE(nodes.find("a"));
  EXPECT_EQ(nodes.all(), (std::vector<NodeIndex>{1}));
  EXPECT_EQ(nodes.total().gpu_milli, 1000);
  EXPECT_EQ(where(nodes, gang_of(2, gpus(1))), "none");

  EXPECT_EQ(nodes.set(node_of("c", 2)), 0);
  EXPECT_EQ(where(nodes, gang_of(3, gpus(1))), "b c c");
}

TEST(Nodes, EqualNodesAreUsedInTheOrderOfTheirNamesWhateverTheHistory) {
  Nodes forward = nodes_of({node_of("a", 1), node_of("b", 1), node_of("c", 1)});
  Nodes backward = nodes_of({node_of("c", 1), node_of("b", 1), node_of("a", 1)});
  EXPECT_EQ(where(forward, gang_of(2, gpus(1))), "a b");
  EXPECT_EQ(where(backward, gang_of(2, gpus(1))), "a b");
  EXPECT_TRUE(forward == backward);
}

TEST(Nodes, APartByMemoryIsChargedAsThatOfTheSmallestGpu) {
  Node small = node_of("small", 1);
  small.gpu_memory_bytes = 16 * kGib;
  Node large = node_of("large", 1);
  large.gpu_memory_bytes = 80 * kGib;
  Nodes nodes = nodes_of({small, large});

  EXPECT_EQ(nodes.charge({.gpu_memory_bytes = 4 * kGib}).gpu_milli, 250);
  EXPECT_EQ(nodes.charge({.gpu_memory_bytes = 40 * kGib}).gpu_milli, 1000);
  EXPECT_EQ(nodes.charge(gpus(3, 2)), (Amounts{3000, 2000, 0}));
  EXPECT_EQ(nodes.charge(share(300)).gpu_milli, 300);
  EXPECT_EQ(Nodes().charge({.gpu_memory_bytes = 1}).gpu_milli, 1000);

  const auto placed = place(nodes, gang_of(1, {.gpu_memory_bytes = 40 * kGib}));
  ASSERT_TRUE(placed);
  EXPECT_EQ(nodes.node(placed->front().node).name, "large");
  EXPECT_EQ(placed->front().share_milli, 500);
}

TEST(Nodes, APlaceAndItsBookingStandForEachOther) {
  Nodes nodes = nodes_of({node_of("a", 4)});
  const Booking booking{.node = 0, .devices = 0b1010, .share_milli = 1000, .cpu_milli = 2000};
  const TaskPlace place{.node = "a", .devices = {1, 3}, .share_milli = 1000};

  EXPECT_EQ(nodes.place_of(booking), place);
  EXPECT_EQ(nodes.booking_of(place, gpus(2, 2)), booking);
  EXPECT_EQ(nodes.booking_of({.node = "b"}, {}), std::nullopt);
  EXPECT_EQ(nodes.booking_of({.node = "a", .devices = {kMaxGpusPerNode}}, {}), std::nullopt);
  EXPECT_EQ(nodes.booking_of({.node = "a", .devices = {-1}}, {}), std::nullopt);
}

TEST(Nodes, AnonymousGpusAreCountedWhateverTheirNumbers) {
  Node node = node_of("a", 7);
  node.anonymous_gpus = true;
  Nodes nodes = nodes_of({node});
  const auto book = [&](const std::vector<int>& devices) {
    const TaskPlace place{.node = "a", .devices = devices, .share_milli = kWholeGpu};
    const auto booking = nodes.booking_of(place, {.gpus = static_cast<int>(devices.size())});
    nodes.book(*booking);
    return *booking;
  };

  EXPECT_EQ(book({4, 5, 6, 7}).devices, 0b1110001U) << "the node has no GPU 7";
  const Booking second = book({0, 1, 3});
  EXPECT_EQ(second.devices, 0b0001110U) << "GPU 0 is in use";
  EXPECT_FALSE(nodes.holds_missing_gpus(0));
  Booking third = book({0});
  EXPECT_EQ(third.devices, 0b10000000U) << "all are in use";
  EXPECT_TRUE(nodes.holds_missing_gpus(0));

  nodes.unbook(second);
  EXPECT_EQ(where(nodes, gang_of(1, gpus(1))), "none");
  nodes.unbook(third);
  third = nodes.on_free_gpus(third);
  EXPECT_EQ(third.devices, 0b0000010U);
  nodes.book(third);
  EXPECT_FALSE(nodes.holds_missing_gpus(0));
  EXPECT_EQ(where(nodes, gang_of(2, gpus(1))), "a a");
  EXPECT_EQ(where(nodes, gang_of(1, gpus(1))), "none");
}

TEST(Nodes, AClaimThatNeverFitsIsDistinguishedFromOneThatWaits) {
  Node cordoned = node_of("b", 8);
  cordoned.cordoned = true;
  Nodes nodes = nodes_of({node_of("a", 4), cordoned});
  nodes.book({.node = 0, .devices = 0b1111, .share_milli = kWholeGpu});

  EXPECT_FALSE(nodes.could_never_hold(gang_of(1, gpus(8))));
  EXPECT_FALSE(nodes.could_never_hold(gang_of(3, gpus(4))));
  const auto never = nodes.could_never_hold(gang_of(4, gpus(4)));
  ASSERT_TRUE(never);
  EXPECT_EQ(never->placed, 3);
  EXPECT_EQ(never->nodes, 2);
  EXPECT_EQ(never->free_gpu_milli, 12'000);
  EXPECT_FALSE(nodes.could_never_hold(gang_of(1, gpus(8)))) << "asking changes nothing";

  nodes.set(node_of("c", 16));
  EXPECT_FALSE(nodes.could_never_hold(gang_of(4, gpus(4))));
  Gang elastic = gang_of(100, gpus(4));
  elastic.groups[0].minimum = 2;
  EXPECT_FALSE(nodes.could_never_hold(elastic));
}

TEST(Nodes, ANodeThatHasNeverAnsweredMayHoldAnything) {
  const Node unknown{.name = "b", .cordoned = true, .silent = true};
  Nodes nodes = nodes_of({node_of("a", 4), unknown});
  Gang gang = gang_of(1, gpus(8));
  gang.gpu_models = {"H100"};
  EXPECT_FALSE(nodes.could_never_hold(gang));

  gang.excluded_nodes = {"b"};
  EXPECT_TRUE(nodes.could_never_hold(gang));
  gang.excluded_nodes.clear();
  nodes.set(node_of("b", 2));
  EXPECT_TRUE(nodes.could_never_hold(gang));
}

TEST(Nodes, ACopyIsIndependent) {
  Nodes nodes = nodes_of({node_of("a", 2)});
  Nodes shadow = nodes;
  EXPECT_TRUE(nodes == shadow);
  EXPECT_EQ(where(shadow, gang_of(2, gpus(1))), "a a");
  shadow.set(node_of("b", 2));

  EXPECT_FALSE(nodes == shadow);
  EXPECT_FALSE(nodes.find("b"));
  EXPECT_EQ(where(nodes, gang_of(2, gpus(1))), "a a");
}

}  // namespace
}  // namespace muster::schedule
