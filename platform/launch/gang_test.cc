#include <gtest/gtest.h>

#include "launch/test_plan.h"

namespace muster::launch {
namespace {

TEST(GangSeed, IsReadBackFromItsText) {
  for (uint64_t number = 0; number < 64; ++number) {
    EXPECT_EQ(seed_of(to_text(seed(number))), seed(number));
  }
}

TEST(GangSeed, HasDifferentTextsForDifferentSeeds) {
  GangSeed changed = seed();
  changed.rsh_key.back() ^= 1;

  EXPECT_NE(to_text(changed), to_text(seed()));
}

TEST(GangSeed, RefusesTruncatedAndOtherTexts) {
  const std::string text = to_text(seed());

  EXPECT_EQ(seed_of(""), std::nullopt);
  EXPECT_EQ(seed_of("no seed"), std::nullopt);
  EXPECT_EQ(seed_of(text.substr(0, text.size() - 4)), std::nullopt);
  EXPECT_EQ(seed_of(text + "AAAA"), std::nullopt);
}

}  // namespace
}  // namespace muster::launch
