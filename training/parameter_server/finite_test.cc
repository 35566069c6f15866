#include "parameter_server/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace muster::parameter_server {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Finite, FindsTheFirstNumberThatIsNone) {
  EXPECT_EQ(first_not_finite({}), std::nullopt);
  const std::vector<float> extremes = {0, -0.0F, std::numeric_limits<float>::max(),
                                       std::numeric_limits<float>::lowest(),
                                       std::numeric_limits<float>::denorm_min()};
  EXPECT_EQ(first_not_finite(extremes), std::nullopt);
  for (const float odd : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (const std::size_t at : {0, 7, 999}) {
      std::vector<float> values(1'000, 1);
      values[at] = odd;
      values[999] = odd;
      EXPECT_EQ(first_not_finite(values), at);
    }
  }
}

TEST(Finite, LooksAtEachOfHoweverMany) {
  for (std::size_t count = 1; count < 40; ++count) {
    for (std::size_t at = 0; at < count; ++at) {
      std::vector<float> values(count, 1);
      EXPECT_EQ(first_not_finite(values), std::nullopt);
      values[at] = kNan;
      EXPECT_EQ(first_not_finite(values), at) << "of " << count;
    }
  }
}

TEST(Finite, SaysWhoseGradientItIsAndWhere) {
  EXPECT_EQ(not_finite(kNan, "element 7 of 'w'", 3).message,
            "the gradient of worker 3 has a NaN as element 7 of 'w', and nothing of this push was "
            "applied");
  EXPECT_NE(not_finite(-kInfinity, "", 3).message.find("has an infinity"), std::string::npos);
  EXPECT_EQ(not_finite(kNan, "", 3).rank, 3);
}

}  // namespace
}  // namespace muster::parameter_server
