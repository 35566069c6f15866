#include "tcp/cost_model.h"

#include <gtest/gtest.h>

namespace muster::collective::tcp {
namespace {

constexpr Costs kNetwork = {
    .latency = 30, .message = 3, .byte = 1.0 / 1'000, .reduced_byte = 1.0 / 8'000};

struct Case {
  Party party;
  std::uint64_t bytes;
  bool sees_all_inputs;
  Algorithm best;
};

TEST(CostModel, ChoosesBySizeRanksAndPlace) {
  const Case cases[] = {
      {{2, 1}, 4, false, Algorithm::kExchange},
      {{2, 1}, 1 << 26, false, Algorithm::kExchange},
      {{8, 1}, 4, false, Algorithm::kExchange},
      {{64, 1}, 4, false, Algorithm::kDoubling},
      {{64, 1}, 4, true, Algorithm::kExchange},
      {{4, 1}, 1 << 20, false, Algorithm::kDirect},
      {{64, 1}, 1 << 20, false, Algorithm::kRabenseifner},
      {{64, 1}, 16 << 20, false, Algorithm::kRing},
      {{16, 8}, 1 << 26, false, Algorithm::kRing},
      {{16, 8}, 1 << 26, true, Algorithm::kDirect},
  };
  for (const Case& one : cases) {
    const auto candidates = rank_algorithms(one.party, one.bytes, kNetwork, one.sees_all_inputs);
    EXPECT_EQ(to_string(candidates.front().algorithm), to_string(one.best))
        << one.party.ranks << " ranks, " << one.party.crowd << " on a host, " << one.bytes
        << " bytes: " << describe(candidates, 2);
  }
}

TEST(CostModel, LetsMeasurementsChooseOnlyBetweenAlgorithmsWithTheSameBits) {
  const Costs slow = {.latency = 500, .message = 3, .byte = 0.01, .reduced_byte = 0.001};
  const Costs fast = {.latency = 2, .message = 0.1, .byte = 0.0001, .reduced_byte = 0.001};
  const auto sees_all = [](Party party, std::uint64_t bytes, const Costs& costs) {
    const Algorithm best = rank_algorithms(party, bytes, costs, false).front().algorithm;
    return best == Algorithm::kExchange || best == Algorithm::kDirect;
  };
  for (const int ranks : {2, 3, 4, 8, 9, 16, 64, 100}) {
    for (std::uint64_t bytes = 4; bytes <= 1 << 30; bytes *= 4) {
      const Party party = {ranks, 1};
      EXPECT_EQ(sees_all(party, bytes, slow), sees_all(party, bytes, fast))
          << ranks << " " << bytes;
      if (ranks <= kFewRanks) {
        EXPECT_TRUE(sees_all(party, bytes, slow)) << ranks << " " << bytes;
      }
    }
  }
}

TEST(CostModel, PredictsByTheFormulas) {
  constexpr Costs kPlain = {.latency = 10, .message = 1, .byte = 0.01, .reduced_byte = 0.001};
  constexpr Party kFour = {4, 1};
  EXPECT_NEAR(predict(Algorithm::kDoubling, kFour, 1000, kPlain), 2 * (10 + 10 + 1), 1e-9);
  EXPECT_NEAR(predict(Algorithm::kRing, kFour, 1000, kPlain), 60 + 15 + 0.75, 1e-9);
  constexpr double kLong = 4 * 1'000'000 * 0.01;
  EXPECT_NEAR(predict(Algorithm::kRing, kFour, 4'000'000, kPlain), 10 + 1.5 * kLong + 3'000, 1e-6);
  EXPECT_NEAR(predict(Algorithm::kRabenseifner, kFour, 1000, kPlain), 40 + 15 + 0.75, 1e-9);
  EXPECT_NEAR(predict(Algorithm::kRabenseifner, {5, 1}, 1000, kPlain), 40 + 16 + 0.8 + 40, 1e-9);
  EXPECT_NEAR(predict(Algorithm::kDirect, kFour, 1000, kPlain), 24 + 15 * 1.02 + 0.75, 1e-9);
  EXPECT_NEAR(predict(Algorithm::kExchange, kFour, 1000, kPlain), 12 + 30 * 1.02 + 3, 1e-9);
}

TEST(CostModel, DescribesTheChoiceWithItsAlternatives) {
  const Candidate candidates[] = {
      {Algorithm::kRing, 812.4}, {Algorithm::kDirect, 901}, {Algorithm::kRabenseifner, 850}};
  EXPECT_EQ(describe(candidates, 2),
            "ring, 2 streams (predicted 812 us; direct 901, rabenseifner 850)");
  EXPECT_EQ(describe(std::span(candidates).first(1), 1), "ring, 1 stream (predicted 812 us)");
}

TEST(CostModel, ReadsTheNamesOfTheOptions) {
  EXPECT_EQ(algorithm_named("rabenseifner"), Algorithm::kRabenseifner);
  EXPECT_EQ(algorithm_named("doubling"), Algorithm::kDoubling);
  EXPECT_EQ(algorithm_named("auto"), std::nullopt);
  EXPECT_EQ(algorithm_named(""), std::nullopt);
}

}  // namespace
}  // namespace muster::collective::tcp
