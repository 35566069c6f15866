#include "job/quantity.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace muster::job {
namespace {

TEST(Quantity, IsReadInThousandthsAndRoundedUp) {
  struct Case {
    const char* text;
    int64_t milli;
  };
  for (const Case& one : std::vector<Case>{{"2", 2000},
                                           {"0.5", 500},
                                           {"0.1", 100},
                                           {"100m", 100},
                                           {".5", 500},
                                           {"5.", 5000},
                                           {"+1", 1000},
                                           {"1e3", 1'000'000},
                                           {"1E-2", 10},
                                           {"1500u", 2},
                                           {"1n", 1},
                                           {"2k", 2'000'000},
                                           {"1Ki", 1'024'000},
                                           {"16Gi", 17'179'869'184'000},
                                           {"0", 0}}) {
    EXPECT_EQ(milli_of_quantity(one.text), one.milli) << one.text;
  }
}

TEST(Quantity, IsRefusedIfItIsNone) {
  for (const char* text : {"", ".", "x", "-1", "1.2.3", "1Gb", "1 Gi", "1e99", "9e30", "1ei",
                           "0x10", "1234567890123456789012345678901"}) {
    EXPECT_EQ(milli_of_quantity(text), std::nullopt) << text;
  }
}

TEST(Quantity, IsReadInBytes) {
  const std::vector<std::pair<const char*, int64_t>> sizes{{"1Gi", int64_t{1} << 30},
                                                           {"1.5Ki", 1536},
                                                           {"1e3", 1000},
                                                           {"500m", 1},
                                                           {"24576Mi", int64_t{24} << 30},
                                                           {"1E", 1'000'000'000'000'000'000},
                                                           {"128974848", 128974848}};
  for (const auto& [text, bytes] : sizes) EXPECT_EQ(whole_of_quantity(text), bytes) << text;
  for (const char* const wrong : {"", "x", "1Zi", "1 Gi", "nan", "inf", "99E", "1Gi2"}) {
    EXPECT_EQ(whole_of_quantity(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace muster::job
