// Whatever happens to it in whatever order, the controller starts nothing twice, gives nothing away
// that it does not have, and forgets nobody.
#include <cstdlib>

#include "control/random_world.h"

namespace muster::control {
namespace {

class AnyLife : public testing::TestWithParam<int> {};

TEST_P(AnyLife, HoldsWhatWasPromisedAndComesToRest) {
  constexpr int kLives = 10;
  constexpr int kSteps = 60;
  for (int life = 0; life < kLives && !HasFailure(); ++life) {
    const int seed = GetParam() * kLives + life;
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld world(static_cast<uint64_t>(seed), seed % 2 == 1);
    world.live(kSteps);
    if (!HasFailure()) world.come_to_rest();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyLife, testing::Range(0, 30));

}  // namespace
}  // namespace muster::control
