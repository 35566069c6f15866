#include "base/units.h"

#include <gtest/gtest.h>

namespace muster::base {
namespace {

using std::chrono::milliseconds;

TEST(Duration, ReadsTheUsualUnits) {
  EXPECT_EQ(*parse_duration("30"), milliseconds(30'000));
  EXPECT_EQ(*parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(*parse_duration("5m"), milliseconds(300'000));
  EXPECT_EQ(*parse_duration("2h"), milliseconds(7'200'000));
}

TEST(Duration, RefusesInvalidTextsAndNamesThem) {
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
  for (const char* text : {"2GB", "2GiB", "2gib", "2g", "2Gb"}) {
    EXPECT_TRUE(parse_bytes(text).error().what.ends_with("; did you mean 2G?")) << text;
  }
  for (const char* text : {"2B", "GB", "2GBs", "2X", "2 GB", ""}) {
    EXPECT_TRUE(parse_bytes(text).error().what.ends_with("such as 512M or 16G")) << text;
  }
  EXPECT_FALSE(parse_bytes("99999999999T"));
}

TEST(Milli, ReadsDecimalsToTheThousandth) {
  EXPECT_EQ(*parse_milli("2"), 2000);
  EXPECT_EQ(*parse_milli("0.5"), 500);
  EXPECT_EQ(*parse_milli("1.125"), 1125);
  EXPECT_EQ(*parse_milli("0"), 0);
  EXPECT_EQ(*parse_milli("999999999999999.999"), 999'999'999'999'999'999);
}

TEST(Milli, RefusesInvalidTextsAndNamesThem) {
  for (const char* text : {"", ".", ".5", "1.", "1.2.3", "-1", "+1", "0.0001", "1e3", " 1", "0.5 ",
                           "1000000000000000", "500m", "half"}) {
    const auto parsed = parse_milli(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().what.find(text), std::string::npos);
  }
}

TEST(Cpus, AreDecimalsOrThousandths) {
  EXPECT_EQ(*parse_cpus("4"), 4000);
  EXPECT_EQ(*parse_cpus("0.5"), 500);
  EXPECT_EQ(*parse_cpus("500m"), 500);
  for (const char* text : {"0.5m", "m", "-500m", "4 cores", "1k"}) {
    EXPECT_FALSE(parse_cpus(text)) << text;
  }
}

TEST(FormatMilli, ReadsBackUnchanged) {
  for (const char* text : {"0", "2", "0.5", "0.05", "0.005", "1.125", "10"}) {
    EXPECT_EQ(format_milli(*parse_milli(text)), text);
  }
  EXPECT_EQ(format_milli(-500), "-0.5");
  EXPECT_EQ(format_milli(-2500), "-2.5");
  EXPECT_EQ(format_milli(INT64_MIN), "-9223372036854775.808");
}

TEST(FormatBytes, ShowsTheLargestUnit) {
  EXPECT_EQ(format_bytes(0), "0");
  EXPECT_EQ(format_bytes(1023), "1023");
  EXPECT_EQ(format_bytes(16LL << 30), "16Gi");
  EXPECT_EQ(format_bytes(3LL << 29), "1.5Gi");
  EXPECT_EQ(format_bytes((1LL << 40) - 1), "1023.9Gi");
}

TEST(FormatDuration, ShowsTheTwoLargestUnits) {
  EXPECT_EQ(format_duration(milliseconds(350)), "350ms");
  EXPECT_EQ(format_duration(milliseconds(12'400)), "12s");
  EXPECT_EQ(format_duration(milliseconds(3'725'000)), "1h2m");
  EXPECT_EQ(format_duration(milliseconds(90'061'000)), "1d1h");
  EXPECT_EQ(format_duration(milliseconds(3'600'000)), "1h");
}

}  // namespace
}  // namespace muster::base
