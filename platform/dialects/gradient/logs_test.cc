#include "dialects/gradient/logs.h"

#include <gtest/gtest.h>

namespace muster::dialects::gradient {

namespace {

using Lines = std::vector<std::pair<int64_t, std::string>>;

job::LogRecord record(std::string task, std::string text, bool continues = false) {
  return {.task = std::move(task), .text = std::move(text), .continues = continues};
}

TEST(LogLines, NumbersLinesFromOneAndNamesTheirTasks) {
  LogLines lines({.first = 0, .most = 10}, {.prefix = true});
  EXPECT_TRUE(lines.add(record("launcher", "epoch 1")));
  EXPECT_TRUE(lines.add(record("worker-0", "ready")));
  EXPECT_EQ(lines.finish(), (Lines{{1, "[launcher] epoch 1"}, {2, "[worker-0] ready"}}));
}

TEST(LogLines, JoinsThePiecesOfALongLine) {
  LogLines lines({.first = 0, .most = 10}, {.prefix = false});
  lines.add(record("main", "one ", true));
  lines.add(record("main", "line"));
  lines.add(record("main", "cut off", true));
  EXPECT_EQ(lines.finish(), (Lines{{1, "one line"}, {2, "cut off"}}));
}

TEST(LogLines, BeginsAtALineAndEndsAfterAGivenNumber) {
  LogLines lines({.first = 2, .most = 2}, {.prefix = false});
  EXPECT_TRUE(lines.add(record("main", "a")));
  EXPECT_TRUE(lines.add(record("main", "b")));
  EXPECT_FALSE(lines.add(record("main", "c")));
  EXPECT_FALSE(lines.add(record("main", "d")));
  EXPECT_EQ(lines.finish(), (Lines{{2, "b"}, {3, "c"}}));
}

TEST(LogLines, IsEmptyWithoutOutput) {
  EXPECT_EQ(LogLines({.first = 0, .most = 10}, {}).finish(), Lines{});
}

}  // namespace

}  // namespace muster::dialects::gradient
