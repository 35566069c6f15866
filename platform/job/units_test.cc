#include "job/units.h"

#include <gtest/gtest.h>

namespace muster::job {
namespace {

using std::chrono::milliseconds;

TEST(Duration, ReadsTheUnitsPeopleWrite) {
  EXPECT_EQ(*parse_duration("30"), milliseconds(30'000));
  EXPECT_EQ(*parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(*parse_duration("5m"), milliseconds(300'000));
  EXPECT_EQ(*parse_duration("2h"), milliseconds(7'200'000));
}

TEST(Duration, RefusesWhatIsNoTimeAndNamesIt) {
  for (const char* text : {"", "s", "-1s", "5 m", "5w", "99999999999999999d", "1.5h"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().what.find(text), std::string::npos);
  }
}

TEST(Bytes, ReadsPowersOf1024) {
  EXPECT_EQ(*parse_bytes("512"), 512);
  EXPECT_EQ(*parse_bytes("2K"), 2048);
  EXPECT_EQ(*parse_bytes("16Gi"), 16LL << 30);
  EXPECT_FALSE(parse_bytes("16 G"));
  EXPECT_FALSE(parse_bytes("99999999999T"));
}

TEST(FormatDuration, ShowsTheTwoLargestUnits) {
  EXPECT_EQ(format_duration(milliseconds(350)), "350ms");
  EXPECT_EQ(format_duration(milliseconds(12'400)), "12s");
  EXPECT_EQ(format_duration(milliseconds(3'725'000)), "1h2m");
  EXPECT_EQ(format_duration(milliseconds(90'061'000)), "1d1h");
  EXPECT_EQ(format_duration(milliseconds(3'600'000)), "1h");
}

}  // namespace
}  // namespace muster::job
