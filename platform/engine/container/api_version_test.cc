#include "engine/container/api_version.h"

#include <gtest/gtest.h>

#include "engine/container/http_date.h"

namespace muster::engine {
namespace {

TEST(ChooseApiVersion, TakesTheHighestThatBothKnow) {
  EXPECT_EQ(*choose_api_version("1.40"), "1.40");
  EXPECT_EQ(*choose_api_version("1.41"), "1.41");
  EXPECT_EQ(*choose_api_version("1.51"), "1.51");
  EXPECT_EQ(*choose_api_version("1.99"), kNewestApi);
  EXPECT_EQ(*choose_api_version("2.0"), kNewestApi);
}

TEST(ChooseApiVersion, AnEngineThatIsTooOldIsSaidToBe) {
  const auto chosen = choose_api_version("1.9");
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, base::ErrorCode::kUnavailable);
  EXPECT_EQ(chosen.error().what,
            "it speaks version 1.9 of the Docker Engine API at most, Muster 1.40 at least");
  EXPECT_EQ(chosen.error().advice, "update it: Docker 19.03 or Podman 4 will do");
}

TEST(ChooseApiVersion, WhatIsNoVersionIsNoEngine) {
  for (const char* text : {"", "one", "1", "1.", ".41", "1.41.2", "-1.41", "1.-4", "1.41 "}) {
    const auto chosen = choose_api_version(text);
    ASSERT_FALSE(chosen) << text;
    EXPECT_EQ(chosen.error().code, base::ErrorCode::kUnavailable);
  }
}

TEST(ParseHttpDate, TakesTheOneFormAndNoOther) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_EQ(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  EXPECT_EQ(parse_http_date("Thu, 29 Feb 2024 23:59:59 GMT"), 1709251199);
  for (const char* text : {"", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
                           "Sun, 06 Now 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET",
                           "Sun, -6 Nov 1994 08:49:37 GMT"}) {
    EXPECT_FALSE(parse_http_date(text)) << text;
  }
}

}  // namespace
}  // namespace muster::engine
