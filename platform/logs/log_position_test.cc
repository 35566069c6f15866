#include "logs/log_position.h"

#include <gtest/gtest.h>

namespace muster::logs {
namespace {

using What = LogPosition::Part::What;
using job::LogStream;

LogPosition full_position() {
  return {.settled = 1,
          .sources = {{.attempt = 2,
                       .task = "worker-0",
                       .from = 100,
                       .at = 250,
                       .parts = {{3, LogStream::kOutput, What::kPending, 17},
                                 {std::nullopt, LogStream::kError, What::kBegun, 0},
                                 {1, LogStream::kError, What::kHidden, 5},
                                 {-1, LogStream::kNotice, What::kSeen, UINT64_MAX}}},
                      {.attempt = 2, .task = "worker-1", .from = 99, .at = 99, .parts = {}},
                      {.attempt = 2,
                       .task = "worker-2",
                       .from = 7,
                       .at = 7,
                       .damage_shown = true,
                       .parts = {{4, LogStream::kOutput, What::kSeen, 2}}}}};
}

TEST(LogPosition, ReadsBackUnchanged) {
  EXPECT_EQ(to_string(full_position()),
            "1;2.worker-0@100-250,3o-17,e~0,1e^5,-1n+18446744073709551615;2.worker-1@99;"
            "2.worker-2@7!,4o+2");
  EXPECT_EQ(log_position_of(to_string(full_position())), full_position());
  EXPECT_EQ(log_position_of("0"), LogPosition{});
}

TEST(LogPosition, RefusesOtherTexts) {
  for (const std::string_view text : {"",
                                      "x",
                                      "-1",
                                      "2147483647",
                                      "0;",
                                      ";",
                                      "0;1.main",
                                      "0;1.main@",
                                      "0;1.@5",
                                      "0;main@5",
                                      "0;1.main@9-5",
                                      "0;1.main@5,",
                                      "0;1.main@5,o",
                                      "0;1.main@5,o-",
                                      "0;1.main@5,x-1",
                                      "0;1.main@5,o*1",
                                      "0;1.main@5,3.o-1",
                                      "0;1.main@18446744073709551616",
                                      "0;1.main@!",
                                      "0;1.main@5!!",
                                      "0;1.main@5,o-1!",
                                      "0;1.main@0-2097153",
                                      " 0"}) {
    EXPECT_FALSE(log_position_of(text)) << text;
  }
}

TEST(LogPosition, FindsATaskOfAnAttempt) {
  const LogPosition position = full_position();

  EXPECT_EQ(position.find(2, "worker-1")->at, 99U);
  EXPECT_EQ(position.find(1, "worker-1"), nullptr);
  EXPECT_EQ(position.find(2, "worker-3"), nullptr);
}

}  // namespace
}  // namespace muster::logs
