#include "muster/training/distributed_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace muster::training {
namespace {

using Samples = std::vector<std::uint64_t>;

Samples all_of(DistributedSampler& sampler, std::uint64_t batch = 7) {
  Samples samples;
  for (Samples part = sampler.next(batch); !part.empty(); part = sampler.next(batch)) {
    samples.insert(samples.end(), part.begin(), part.end());
  }
  return samples;
}

DistributedSampler make_sampler(const SamplerOptions& options) {
  auto sampler = DistributedSampler::create(options);
  EXPECT_TRUE(sampler) << sampler.error().to_string();
  return *std::move(sampler);
}

// The samples of each rank in one epoch.
std::vector<Samples> shares(SamplerOptions options, std::uint64_t epoch) {
  std::vector<Samples> all;
  for (options.rank = 0; options.rank < options.size; ++options.rank) {
    DistributedSampler sampler = make_sampler(options);
    sampler.set_epoch(epoch);
    all.push_back(all_of(sampler));
    EXPECT_EQ(all.back().size(), sampler.size());
  }
  return all;
}

std::map<std::uint64_t, int> counts(const std::vector<Samples>& shares) {
  std::map<std::uint64_t, int> count;
  for (const Samples& share : shares) {
    for (const std::uint64_t sample : share) ++count[sample];
  }
  return count;
}

TEST(DistributedSampler, GivesEverySampleOnceIfTheyDivideEvenly) {
  for (const int size : {1, 2, 3, 4}) {
    const auto count = counts(shares({.samples = 120, .size = size, .seed = 3}, 5));
    EXPECT_EQ(count.size(), 120u);
    for (const auto& [sample, times] : count) EXPECT_EQ(times, 1) << sample;
  }
}

TEST(DistributedSampler, PadsTheTailWithTheBeginningOfTheOrder) {
  const auto all = shares({.samples = 10, .size = 4, .shuffle = false}, 0);
  EXPECT_EQ(all, (std::vector<Samples>{{0, 4, 8}, {1, 5, 9}, {2, 6, 0}, {3, 7, 1}}));
}

TEST(DistributedSampler, DropsTheTailOnRequest) {
  const auto all = shares({.samples = 10, .size = 4, .shuffle = false, .tail = Tail::kDrop}, 0);
  EXPECT_EQ(all, (std::vector<Samples>{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(DistributedSampler, PadsWithSeveralRoundsIfThereAreFewerSamplesThanRanks) {
  const auto all = shares({.samples = 2, .size = 5, .shuffle = false}, 0);
  EXPECT_EQ(all, (std::vector<Samples>{{0}, {1}, {0}, {1}, {0}}));
}

TEST(DistributedSampler, PaddedAndDroppedSharesDifferOnlyInTheTail) {
  for (const std::uint64_t samples : {97u, 100u, 101u}) {
    const auto padded = counts(shares({.samples = samples, .size = 4, .seed = 1}, 2));
    EXPECT_EQ(padded.size(), samples);
    const auto dropped =
        counts(shares({.samples = samples, .size = 4, .seed = 1, .tail = Tail::kDrop}, 2));
    EXPECT_EQ(dropped.size(), samples / 4 * 4);
    for (const auto& [sample, times] : dropped) EXPECT_EQ(times, 1) << sample;
  }
}

TEST(DistributedSampler, TheOrderDependsOnlyOnSeedAndEpoch) {
  const SamplerOptions options{.samples = 1000, .size = 2, .seed = 11};
  EXPECT_EQ(shares(options, 3), shares(options, 3));
  EXPECT_NE(shares(options, 3), shares(options, 4));
  EXPECT_NE(shares(options, 3), shares({.samples = 1000, .size = 2, .seed = 12}, 3));
  EXPECT_NE(shares({.samples = 1000, .seed = 1}, 0), shares({.samples = 1000, .seed = 0}, 1));
}

// If every order is equally likely, each of 4 samples is first in a quarter of them:
// 10,000 of 40,000, with a standard deviation of 87.
TEST(DistributedSampler, ShufflesEvenly) {
  DistributedSampler sampler = make_sampler({.samples = 4, .seed = 5});
  std::vector<int> first(4);
  for (std::uint64_t epoch = 0; epoch < 40'000; ++epoch) {
    sampler.set_epoch(epoch);
    ++first[sampler.next(1).front()];
  }
  for (const int times : first) EXPECT_NEAR(times, 10'000, 6 * 87);
}

TEST(DistributedSampler, ContinuesAtAPosition) {
  const SamplerOptions options{.samples = 50, .rank = 1, .size = 3, .seed = 2};
  DistributedSampler whole = make_sampler(options);
  whole.set_epoch(4);
  const Samples before = whole.next(6);
  EXPECT_EQ(whole.position(), 6u);
  DistributedSampler resumed = make_sampler(options);
  resumed.set_epoch(4);
  resumed.seek(6);
  EXPECT_EQ(all_of(resumed), all_of(whole));
  resumed.seek(1'000'000);
  EXPECT_EQ(resumed.position(), resumed.size());
  EXPECT_TRUE(resumed.next(1).empty());
}

TEST(DistributedSampler, RejectsInvalidOptionsWithAllFaults) {
  const auto fault = [](const SamplerOptions& options) {
    const auto sampler = DistributedSampler::create(options);
    return sampler ? std::string() : sampler.error().to_string();
  };
  EXPECT_EQ(fault({.samples = 0, .rank = 3, .size = 2}),
            "the data set has no samples; rank 3 is not in a world of 2");
  EXPECT_EQ(fault({.samples = 5, .size = 0}), "a world of 0 ranks is invalid");
  EXPECT_EQ(fault({.samples = 5, .rank = -1}), "rank -1 is not in a world of 1");
  EXPECT_EQ(fault({.samples = 3, .size = 4, .tail = Tail::kDrop}),
            "3 samples are too few for 4 ranks if the tail is dropped");
}

}  // namespace
}  // namespace muster::training
