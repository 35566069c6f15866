#include "schedules.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "kernels/kernel.h"
#include "tcp/exchange.h"
#include "tcp/test_world.h"
#include "training.h"

namespace muster::collective::model {
namespace {

using tcp::Algorithm;

const Kernel& sum_of_floats() {
  static const Kernel kernel = Kernel::of({.type = DataType::kFloat32});
  return kernel;
}

// Over real sockets.
TEST(TwoTrees, SumAllInputsOnEveryRank) {
  for (const int ranks : {2, 3, 4, 5, 6, 7, 8}) {
    std::atomic<int> right = 0;
    testing::on_all(testing::make_worlds({.size = ranks}), [&](World& world) {
      constexpr std::uint64_t kCount = 100'003;
      const std::vector<float> in(kCount, static_cast<float>(world.rank + 1));
      std::vector<float> out(kCount);
      const tcp::Program program = plan_two_trees({world.rank, ranks}, {kCount, sizeof(float)},
                                                  {sum_of_floats(), sum_of_floats()});
      const tcp::Mesh mesh(world, tcp::everyone_in(world));
      const tcp::Greeting greeting = {
          .call = {.kind = CallKind::kAllReduce, .count = kCount, .sequence = 1}};
      world.monitor->entered(1);
      tcp::Scratch scratch;
      const tcp::Memory from(reinterpret_cast<const std::byte*>(in.data()), 4 * kCount);
      const tcp::Memory into(reinterpret_cast<const std::byte*>(out.data()), 4 * kCount);
      const Status done = tcp::Exchange(mesh, greeting, program, from, into, scratch).run();
      const int total = ranks * (ranks + 1) / 2;
      const auto sum = static_cast<float>(total);
      if (done && out == std::vector<float>(kCount, sum)) ++right;
    });
    EXPECT_EQ(right, ranks);
  }
}

TEST(TwoTrees, SendNoMoreThanTwiceTheBytesFromAnyRank) {
  for (const int ranks : {2, 3, 8, 13, 64, 100}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const tcp::Program program =
          plan_two_trees({rank, ranks}, {1000, 4}, {sum_of_floats(), sum_of_floats()});
      std::uint64_t sent = 0;
      for (const tcp::Dialogue& dialogue : program.dialogues) sent += dialogue.out_bytes;
      EXPECT_LE(sent, 2 * 4000U) << rank << " of " << ranks;
    }
  }
}

TEST(TwoTrees, LongBuffersAreExtrapolated) {
  const Network network;
  const double some = time_of_trees(network, 8, 4 << 20);
  const double more = time_of_trees(network, 8, 64 << 20);
  // 2 S bytes at the speed of a port.
  EXPECT_NEAR((more - some) / (2.0 * (60 << 20) * network.byte), 1, 0.05);
}

// The formulas of the library's choice (tcp::predict) hold where they apply: without contention, and
// where either the latency or the bandwidth dominates.
TEST(Schedules, AgreeWithTheFormulasOfTheCostModel) {
  Network network;
  network.touched_byte = 0;
  struct Case {
    Algorithm algorithm;
    std::uint64_t bytes;
  };
  for (const auto& [algorithm, bytes] :
       {Case{Algorithm::kDoubling, 64}, Case{Algorithm::kDoubling, 16 << 10},
        Case{Algorithm::kRabenseifner, 4096}, Case{Algorithm::kRing, 4096},
        Case{Algorithm::kRing, 1 << 20}, Case{Algorithm::kRing, 64 << 20}}) {
    for (const int ranks : {4, 16, 64}) {
      const double simulated = time_of_flat(network, algorithm, ranks, bytes);
      const double formula = predict(algorithm, {ranks, 1}, bytes, network.costs());
      EXPECT_NEAR(simulated / formula, 1, 0.15)
          << to_string(algorithm) << ", " << ranks << " ranks, " << bytes << " bytes";
    }
  }
}

TEST(Hierarchy, OfOneRankOnEachHostIsTheChosenAlgorithm) {
  const Network network;
  for (const std::uint64_t bytes : {std::uint64_t{4096}, std::uint64_t{16} << 20}) {
    Hierarchy hierarchy(network, 16);
    EXPECT_DOUBLE_EQ(hierarchy.time_of(bytes),
                     time_of_flat(network, hierarchy.between_hosts(bytes), 16, bytes));
  }
}

TEST(Hierarchy, TakesItsChunksOneAfterTheOther) {
  Hierarchy hierarchy(Network{.ranks_per_host = 4}, 16);
  const double chunk = hierarchy.time_of(4 << 20);
  EXPECT_DOUBLE_EQ(hierarchy.time_of(12 << 20), 3 * chunk);
  EXPECT_DOUBLE_EQ(hierarchy.time_of((4 << 20) + 4096), chunk + hierarchy.time_of(4096));
}

// A host sends 2 (m-1)/m of the buffer through its port, however many ranks it has.
TEST(Hierarchy, SendsNoMoreThanAHostMust) {
  Network network = {.ranks_per_host = 4};
  network.local_byte = network.touched_byte = network.reduced_byte = 0;
  network.latency = network.message = network.local_latency = 0;
  Hierarchy hierarchy(network, 16);
  EXPECT_NEAR(hierarchy.time_of(4 << 20) / (2 * 0.75 * (4 << 20) * network.byte), 1, 0.02);
}

TEST(Training, WithoutCommunicationIsPerfect) {
  Network network;
  network.byte = network.local_byte = network.touched_byte = network.reduced_byte = 0;
  network.latency = network.message = 0;
  Hierarchy hierarchy(network, 8);
  EXPECT_DOUBLE_EQ(efficiency(kTrainings[0], hierarchy), 1);
}

TEST(Training, ASingleTensorIsReducedAfterTheBackwardPass) {
  const Training training = {"one tensor", 1 << 20, 1, 30, "", 0};
  Hierarchy hierarchy(Network{}, 2);
  const double reduction = hierarchy.time_of(4 << 20);
  EXPECT_NEAR(efficiency(training, hierarchy), 30'000 / (30'000 + reduction), 1e-9);
}

// Ten tensors; each takes as long to be reduced as three take to be computed. Fusion is off.
TEST(Training, ReductionsThatAreSlowerThanTheBackwardPassQueue) {
  Hierarchy hierarchy(Network{}, 2);
  const double reduction = hierarchy.time_of(4 << 20);
  const double interval = reduction / 3;
  const Training training = {"ten tensors", 10.0 * (1 << 20), 10, 15 * interval / 1000, "", 0};
  const double step = 5 * interval + interval + 10 * reduction;
  EXPECT_NEAR(efficiency(training, hierarchy, 1), 15 * interval / step, 1e-9);
}

}  // namespace
}  // namespace muster::collective::model
