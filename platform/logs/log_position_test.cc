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

/// A job of 1,000 tasks with eight ranks each.
LogPosition large_position(const std::vector<LogPosition::Part>& of_rank) {
  LogPosition position{.settled = 2, .sources = {}};
  for (int task = 0; task < 1000; ++task) {
    const uint64_t at = 123'456'789 + 54'321 * static_cast<uint64_t>(task);
    LogPosition::Source source{.attempt = 3,
                               .task = "worker-" + std::to_string(task),
                               .from = at - 1'000,
                               .at = at,
                               .parts = {}};
    for (int rank = 8 * task; rank < 8 * task + 8; ++rank) {
      for (LogPosition::Part part : of_rank) {
        part.rank = rank;
        part.bytes = part.bytes * static_cast<uint64_t>(rank + 1) / 8000;
        source.parts.push_back(part);
      }
    }
    position.sources.push_back(source);
  }
  return position;
}

TEST(LogPosition, OfAVeryLargeJobFitsIntoAHeader) {
  constexpr size_t kRoom = 60 << 10;  // of 64 KiB
  // Progress bars; the same on both streams; and lines that are left out of a tail.
  for (const LogPosition& position :
       {large_position({{{}, LogStream::kError, What::kBegun, 120}}),
        large_position({{{}, LogStream::kOutput, What::kPending, 120},
                        {{}, LogStream::kError, What::kBegun, 120}}),
        large_position({{{}, LogStream::kOutput, What::kSeen, 2'000'000}})}) {
    const std::string text = to_string(position);
    EXPECT_LT(text.size(), kRoom);
    EXPECT_EQ(text.find_first_of(" \r\n"), std::string::npos);
    EXPECT_EQ(log_position_of(text), position);
  }
}

/// A position whose text is too long.
LogPosition varied_position() {
  LogPosition position = full_position();
  for (int i = 0; i < 300; ++i) {
    LogPosition::Source source = full_position().sources[static_cast<size_t>(i) % 3];
    source.attempt = 2 + i / 100;
    source.task = "task-" + std::to_string(i % 7 == 0 ? 7 * i : i);
    position.sources.push_back(source);
  }
  position.sources.push_back({.attempt = INT32_MAX,
                              .task = "x007",
                              .from = UINT64_MAX,
                              .at = UINT64_MAX,
                              .parts = {{INT32_MAX, LogStream::kOutput, What::kSeen, 1},
                                        {INT32_MIN, LogStream::kOutput, What::kSeen, 1}}});
  return position;
}

TEST(LogPosition, ReadsItsShortFormBackUnchanged) {
  const LogPosition position = varied_position();
  const std::string text = to_string(position);

  EXPECT_TRUE(text.starts_with('z'));
  EXPECT_EQ(log_position_of(text), position);

  LogPosition with_long_name = varied_position();
  with_long_name.sources[0].task = std::string(300, 'x');
  EXPECT_EQ(log_position_of(to_string(with_long_name)), with_long_name);
}

TEST(LogPosition, RefusesDamagedShortForms) {
  const std::string text = to_string(varied_position());
  std::vector<std::string> damaged;
  for (size_t i = 1; i < text.size(); i += 5) {
    damaged.push_back(text.substr(0, i));
    damaged.push_back(text);
    damaged.back()[i] = text[i] == 'A' ? 'B' : 'A';
  }
  for (const std::string& other : damaged) {
    const auto position = log_position_of(other);
    // Some are the position of another log.
    if (position) {
      EXPECT_EQ(to_string(*position), other);
    }
  }
  EXPECT_FALSE(log_position_of("zAA==")) << "it has a readable form";
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
