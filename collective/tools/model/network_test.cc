#include "network.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tcp/plan.h"

namespace muster::collective::model {
namespace {

using tcp::Algorithm;
using tcp::Extent;
using tcp::Place;
using tcp::Program;
using tcp::Range;
using tcp::Space;

// A cell of this length takes 16 microseconds through a port.
constexpr std::uint64_t kCell = 16 * 1024;

// Processors that need no time, and no latency within a host.
constexpr Network kPlain = {.latency = 10,
                            .byte = 1.0 / 1024,
                            .local_latency = 0,
                            .local_byte = 0,
                            .message = 2,
                            .touched_byte = 0,
                            .reduced_byte = 0};

const Kernel& float_sum() {
  static const Kernel kernel = Kernel::of({.type = DataType::kFloat32});
  return kernel;
}

Program plan(Algorithm algorithm, Place place, std::uint64_t bytes) {
  const Extent extent = {bytes / 4, 4};
  if (sees_all_inputs(algorithm)) return plan_at_once(algorithm, place, extent, float_sum());
  return plan_in_steps(algorithm, place, extent, {float_sum(), float_sum()});
}

Outcome run(const Network& network, Algorithm algorithm, int ranks, std::uint64_t bytes,
            Symmetry symmetry = Symmetry::kNone) {
  return execute(network, ranks, symmetry,
                 [&](int rank) { return plan(algorithm, {rank, ranks}, bytes); });
}

struct Transfer {
  int from;
  int to;
  std::uint64_t bytes;
};

Outcome transfer(const Network& network, int ranks, const std::vector<Transfer>& transfers) {
  return execute(network, ranks, Symmetry::kNone, [&](int rank) {
    Program program;
    for (const Transfer& one : transfers) {
      if (one.from == rank) program.send(one.to, {Space::kIn, 0, one.bytes});
      if (one.to == rank) program.store(one.from, {Space::kOut, 0, one.bytes});
    }
    return program;
  });
}

TEST(Network, AMessageTakesItsLatencyAndItsBytes) {
  for (const std::uint64_t cells : {1U, 2U, 100U}) {
    const Outcome outcome = transfer(kPlain, 2, {{0, 1, cells * kCell}});
    EXPECT_TRUE(outcome.complete);
    EXPECT_DOUBLE_EQ(outcome.microseconds, 2 + 10 + 16.0 * static_cast<double>(cells));
    EXPECT_EQ(outcome.network_bytes, cells * kCell);
  }
}

TEST(Network, ALinkCarriesBothDirectionsAtOnce) {
  const Outcome outcome = transfer(kPlain, 2, {{0, 1, 4 * kCell}, {1, 0, 4 * kCell}});
  EXPECT_DOUBLE_EQ(outcome.microseconds, 2 + 10 + 4 * 16);
}

TEST(Network, RanksOfAHostShareItsPort) {
  Network network = kPlain;
  network.ranks_per_host = 2;
  const Outcome outcome = transfer(network, 6, {{0, 2, 4 * kCell}, {1, 4, 4 * kCell}});
  EXPECT_DOUBLE_EQ(outcome.microseconds, 2 + 10 + 8 * 16);
}

TEST(Network, SendersToOneHostShareItsPort) {
  const Outcome outcome = transfer(kPlain, 3, {{0, 2, 4 * kCell}, {1, 2, 4 * kCell}});
  EXPECT_DOUBLE_EQ(outcome.microseconds, 2 + 10 + 8 * 16);
}

TEST(Network, ALongMessageDoesNotDelayAShortOneBySharing) {
  Network network = kPlain;
  network.ranks_per_host = 2;
  const Outcome both = transfer(network, 4, {{0, 2, 100 * kCell}, {1, 3, 4 * kCell}});
  // Rank 3 has its bytes after 8 cells; all is done when the long message is.
  EXPECT_DOUBLE_EQ(both.microseconds, 2 + 10 + 104 * 16);
}

TEST(Network, MessagesWithinAHostDoNotUseItsPort) {
  Network network = kPlain;
  network.ranks_per_host = 2;
  network.local_latency = 1;
  network.local_byte = 1.0 / 4096;
  const Outcome outcome = transfer(network, 2, {{0, 1, 4 * kCell}});
  EXPECT_DOUBLE_EQ(outcome.microseconds, 2 + 1 + 4 * 4);
  EXPECT_EQ(outcome.network_bytes, 0U);
}

TEST(Network, HostsOfASwitchShareItsUplinks) {
  Network network = kPlain;
  network.hosts_per_switch = 2;
  network.hop = 3;
  network.uplink_byte = 2 * network.byte;
  const std::vector<Transfer> crossing = {{0, 2, 4 * kCell}, {1, 3, 4 * kCell}};
  EXPECT_DOUBLE_EQ(transfer(network, 4, crossing).microseconds, 2 + 10 + 6 + 8 * 32);
  const std::vector<Transfer> near = {{0, 1, 4 * kCell}, {2, 3, 4 * kCell}};
  EXPECT_DOUBLE_EQ(transfer(network, 4, near).microseconds, 2 + 10 + 4 * 16);
  network.uplink_byte = 0;
  EXPECT_DOUBLE_EQ(transfer(network, 4, crossing).microseconds, 2 + 10 + 6 + 4 * 16);
}

// The tokens of the bucket are gone at first. The second message is sent after 16 + 10 + 2 us; the
// ports of rank 1 then have saved up one cell and more.
TEST(Network, APortMaySaveUpABurst) {
  Network network = kPlain;
  const auto there_and_back = [&network] {
    return execute(network, 2, Symmetry::kNone, [](int rank) {
      Program program;
      if (rank == 0) {
        program.send(1, {Space::kIn, 0, kCell});
        program.store(1, {Space::kOut, 0, kCell});
      } else {
        const tcp::Track received = program.store(0, {Space::kOut, 0, kCell});
        program.send(0, {Space::kOut, 0, kCell}, {received});
      }
      return program;
    });
  };
  EXPECT_DOUBLE_EQ(there_and_back().microseconds, 2 * (2 + 16 + 10));
  network.burst = 2 * kCell;
  EXPECT_DOUBLE_EQ(there_and_back().microseconds, (2 + 14 + 10) + (2 + 10));
}

TEST(Network, ProcessorsTouchAndReduceEachByte) {
  Network network = kPlain;
  network.touched_byte = 1.0 / 4096;  // 4 us for a cell
  network.reduced_byte = 1.0 / 8192;  // 2 us
  const Outcome outcome = run(network, Algorithm::kExchange, 2, kCell);
  EXPECT_DOUBLE_EQ(outcome.microseconds, 2 + 4 + 16 + 10 + 4 + 2);
}

TEST(Network, ARingOfShortSlicesTakesAllItsSteps) {
  constexpr int kRanks = 5;
  const Outcome outcome = run(kPlain, Algorithm::kRing, kRanks, kRanks * kCell);
  EXPECT_TRUE(outcome.complete);
  EXPECT_DOUBLE_EQ(outcome.microseconds, 2 * (kRanks - 1) * (2 + 10 + 16));
}

// The first cell of a slice comes back while the rest is still being sent, so ports are never idle.
TEST(Network, ARingOfLongSlicesTakesOneLatency) {
  constexpr int kRanks = 5;
  const Outcome outcome = run(kPlain, Algorithm::kRing, kRanks, kRanks * 8 * kCell);
  EXPECT_DOUBLE_EQ(outcome.microseconds, 2 + 2 * (kRanks - 1) * 8 * 16 + 10);
  EXPECT_EQ(outcome.network_bytes, kRanks * 2 * (kRanks - 1) * 8 * kCell);
}

TEST(Network, DoublingAndHalvingTakeALatencyForEachStep) {
  EXPECT_DOUBLE_EQ(run(kPlain, Algorithm::kDoubling, 8, kCell).microseconds, 3 * (2 + 10 + 16));
  EXPECT_DOUBLE_EQ(run(kPlain, Algorithm::kRabenseifner, 2, 2 * kCell).microseconds,
                   2 * (2 + 10 + 16));
}

TEST(Network, EveryAlgorithmEndsForEveryNumberOfRanks) {
  for (const Algorithm algorithm : {Algorithm::kExchange, Algorithm::kDirect, Algorithm::kDoubling,
                                    Algorithm::kRabenseifner, Algorithm::kRing}) {
    for (const int ranks : {2, 3, 4, 6, 7, 8, 12, 16}) {
      for (const std::uint64_t bytes : {std::uint64_t{4}, std::uint64_t{1'000'004}}) {
        const Outcome outcome = run(Network{.ranks_per_host = 2}, algorithm, ranks, bytes);
        EXPECT_TRUE(outcome.complete) << to_string(algorithm) << " " << ranks << " " << bytes;
      }
    }
  }
}

TEST(Network, AFewRanksStandForAll) {
  struct Case {
    Algorithm algorithm;
    Symmetry symmetry;
  };
  for (const auto& [algorithm, symmetry] :
       {Case{Algorithm::kRing, Symmetry::kShift}, Case{Algorithm::kDirect, Symmetry::kShift},
        Case{Algorithm::kExchange, Symmetry::kShift},
        Case{Algorithm::kDoubling, Symmetry::kFlip}}) {
    for (const int width : {1, 2, 4}) {
      Network network;
      network.ranks_per_host = width;
      const double all = run(network, algorithm, 16, 16 * 64 * 1024).microseconds;
      const double few = run(network, algorithm, 16, 16 * 64 * 1024, symmetry).microseconds;
      EXPECT_NEAR(few, all, 0.02 * all) << to_string(algorithm) << ", " << width << " on a host";
    }
  }
}

TEST(Network, AProgramThatWaitsInVainIsNotComplete) {
  const Outcome outcome = execute(kPlain, 2, Symmetry::kNone, [](int rank) {
    Program program;
    if (rank == 0) program.store(1, {Space::kOut, 0, 4});
    return program;
  });
  EXPECT_FALSE(outcome.complete);
}

}  // namespace
}  // namespace muster::collective::model
