#include "ring_trainer.h"

#include <gtest/gtest.h>
#include <muster/collective/testing/spawn_ranks.h>

#include <mutex>

#include "test_digits.h"

namespace muster::digits {
namespace {

using collective::Communicator;
using collective::testing::spawn_ranks;

// Trains on `ranks` threads and returns the outcomes of all ranks, in any order.
std::vector<Outcome> train_on(int ranks, const Settings& settings) {
  std::vector<Outcome> outcomes;
  std::mutex mutex;
  spawn_ranks(ranks, [&](Communicator& world) {
    auto outcome = train_in_ring(world, digits(), settings, {});
    ASSERT_TRUE(outcome) << outcome.error().to_string();
    const std::lock_guard lock(mutex);
    outcomes.push_back(*std::move(outcome));
  });
  return outcomes;
}

class RingOn : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RingOn, ::testing::Range(1, 5),
                         ::testing::PrintToStringParamName());

TEST_P(RingOn, LearnsDigitsWithTheSameBitsInEveryRunAndOnEveryRank) {
  // Half of the default epochs: sufficient, and fast under sanitizers as well.
  const Settings settings{.epochs = 20};
  std::vector<Outcome> outcomes = train_on(GetParam(), settings);
  for (Outcome& outcome : train_on(GetParam(), settings)) outcomes.push_back(std::move(outcome));

  ASSERT_EQ(outcomes.size(), 2 * static_cast<std::size_t>(GetParam()));
  EXPECT_GE(outcomes[0].test_accuracy, 0.96);
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.weights, outcomes[0].weights);
    EXPECT_EQ(outcome.checksum, outcomes[0].checksum);
    EXPECT_EQ(outcome.test_accuracy, outcomes[0].test_accuracy);
  }
}

TEST(RingTrainer, ReportsEachEpochToItsObserver) {
  int epochs = 0;
  std::size_t steps = 0;
  spawn_ranks(1, [&](Communicator& world) {
    const Observer observer{
        .on_step = [&](int, std::size_t, std::size_t) { ++steps; },
        .on_epoch = [&](const EpochReport& report) { EXPECT_EQ(report.epoch, ++epochs); }};
    ASSERT_TRUE(train_in_ring(world, digits(), {.epochs = 2, .batch = 100}, observer));
  });
  EXPECT_EQ(epochs, 2);
  EXPECT_EQ(steps, 2u * 15u);
}

TEST(RingTrainer, BeginsWithRank0sWeights) {
  // With different seeds the ranks have different initial weights and orders, but still end alike.
  spawn_ranks(2, [&](Communicator& world) {
    const auto seed = static_cast<std::uint64_t>(world.rank());
    EXPECT_TRUE(train_in_ring(world, digits(), {.epochs = 1, .seed = seed}, {}));
  });
}

TEST(RingTrainer, DetectsRanksThatEndWithDifferentWeights) {
  spawn_ranks(2, [&](Communicator& world) {
    const double rate = world.rank() == 0 ? 0.01 : 0.02;
    const auto outcome = train_in_ring(world, digits(), {.epochs = 1, .learning_rate = rate}, {});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, collective::ErrorCode::kMismatch);
    EXPECT_TRUE(outcome.error().message.starts_with("the ranks have different weights: rank 0 0x"))
        << outcome.error().message;
  });
}

TEST(RingTrainer, RejectsFewerImagesThanRanks) {
  Dataset data = digits();
  data.train.labels.resize(1);
  spawn_ranks(2, [&](Communicator& world) {
    const auto outcome = train_in_ring(world, data, {}, {});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().message, "1 training images are too few for 2 ranks");
  });
}

}  // namespace
}  // namespace muster::digits
