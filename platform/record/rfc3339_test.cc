#include "record/rfc3339.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text.h"

namespace muster::record {
namespace {

base::Time at(int64_t nanoseconds) {
  return base::Time(std::chrono::nanoseconds(nanoseconds));
}

std::string written_time(base::Time time) {
  std::string text;
  append_rfc3339(text, time);
  return text;
}

TEST(Rfc3339, IsWrittenAsByTheGeneralFunction) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 10'000; ++round) {
    const base::Time time = at(static_cast<int64_t>(random() >> 2U));
    ASSERT_EQ(written_time(time), base::to_rfc3339(time, 9));
    ASSERT_EQ(parse_rfc3339(written_time(time)), time) << written_time(time);
  }
  EXPECT_EQ(written_time(at(-1)), "1969-12-31T23:59:59.999999999Z");
}

TEST(Rfc3339, AcceptsAnyNumberOfDigits) {
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:01Z"), at(kSecond));
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:01.5Z"), at(kSecond * 3 / 2));
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.000000001Z"), at(1));
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00.00000000199999Z"), at(1));
}

TEST(Rfc3339, AcceptsAnyOffset) {
  const base::Time noon = *parse_rfc3339("2026-01-31T12:00:00Z");

  EXPECT_EQ(parse_rfc3339("2026-01-31T14:00:00+02:00"), noon);
  EXPECT_EQ(parse_rfc3339("2026-01-31t06:30:00-05:30"), noon);
  EXPECT_EQ(parse_rfc3339("2026-01-31T12:00:00z"), noon);
}

TEST(Rfc3339, RefusesInvalidTexts) {
  for (const char* text :
       {"", "yesterday", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31T12:00:00.Z",
        "2026-02-30T12:00:00Z", "2026-13-01T12:00:00Z", "2026-01-31T24:00:00Z",
        "2026-01-31T12:60:00Z", "2026-01-31T12:00:61Z", "2026-01-31T12:00:00Z ",
        "2026-01-31T12:00:00+2:00", "2026-01-31T12:00:00+24:00", "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z", "-026-01-31T12:00:00Z", "2026-01-31 12:00:00Z",
        "2026-99-31T12:00:00.5Z"}) {
    EXPECT_FALSE(parse_rfc3339(text)) << text;
  }
}

}  // namespace
}  // namespace muster::record
