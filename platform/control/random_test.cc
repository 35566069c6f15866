// Random events in random order: the controller starts nothing twice, grants only resources that
// exist, and loses no job.
#include <cstdlib>

#include "control/random_world.h"

namespace muster::control {
namespace {

class AnyLife : public testing::TestWithParam<int> {
 protected:
  /// `machines_of`: the machines of the world of a seed.
  template <class MachinesOf>
  void live(const MachinesOf& machines_of) {
    constexpr int kLives = 10;
    constexpr int kSteps = 60;
    for (int life = 0; life < kLives && !HasFailure(); ++life) {
      const int seed = GetParam() * kLives + life;
      SCOPED_TRACE("seed " + std::to_string(seed));
      RandomWorld world(static_cast<uint64_t>(seed), machines_of(seed));
      world.live(kSteps);
      if (!HasFailure()) world.come_to_rest();
    }
  }
};

TEST_P(AnyLife, KeepsTheInvariantsAndComesToRest) {
  live([](int seed) {
    return seed % 2 == 1 ? RandomWorld::Machines::kInImages : RandomWorld::Machines::kPlain;
  });
}

TEST_P(AnyLife, OnAClusterKeepsTheInvariantsAndComesToRest) {
  live([](int) { return RandomWorld::Machines::kAtCluster; });
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyLife, testing::Range(0, 30));
INSTANTIATE_TEST_SUITE_P(SeedsThatFailedOnce, AnyLife,
                         testing::Values(64, 100, 136, 138, 193, 237, 263, 307));

}  // namespace
}  // namespace muster::control
