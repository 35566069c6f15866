#include "base/varint.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace muster::base {
namespace {

TEST(Varint, IsReadAsItWasWritten) {
  std::string bytes;
  const uint64_t numbers[] = {0, 1, 127, 128, 300, 1U << 21, std::numeric_limits<uint64_t>::max()};
  for (const uint64_t number : numbers) append_varint(bytes, number);

  EXPECT_EQ(bytes.substr(0, 3), std::string("\0\1\x7f", 3));
  std::string_view rest = bytes;
  for (const uint64_t number : numbers) EXPECT_EQ(take_varint(rest), number);
  EXPECT_TRUE(rest.empty());
}

TEST(Varint, IsNothingIfItsBytesEndBeforeIt) {
  for (const std::string text :
       {"", "\x80", "\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    std::string_view rest = text;
    EXPECT_EQ(take_varint(rest), std::nullopt);
  }
}

TEST(Zigzag, MakesNumbersNearZeroSmall) {
  EXPECT_EQ(zigzag(0), 0U);
  EXPECT_EQ(zigzag(-1), 1U);
  EXPECT_EQ(zigzag(1), 2U);
  for (const int64_t number : {int64_t{-300}, int64_t{300}, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(from_zigzag(zigzag(number)), number);
  }
}

}  // namespace
}  // namespace muster::base
