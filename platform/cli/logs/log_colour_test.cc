#include <gtest/gtest.h>

#include <set>

#include "cli/logs/log_printer.h"

namespace muster::cli::logs {

namespace {

std::string_view colour(const std::string& task, std::optional<int> rank = std::nullopt) {
  return colour_of({.task = task, .rank = rank});
}

TEST(LogColour, IsSharedByNoTwoTasksOfAJobWhileThereAreOthers) {
  std::set<std::string_view> colours{colour("chief")};
  for (int i = 0; i < 6; ++i) colours.insert(colour("worker-" + std::to_string(i)));
  for (int i = 0; i < 3; ++i) colours.insert(colour("ps-" + std::to_string(i)));

  EXPECT_EQ(colours.size(), 10U);
}

TEST(LogColour, OfRanksDiffersFromTheirLaunchersAndFromEachOthers) {
  std::set<std::string_view> colours{colour("launcher")};
  for (int rank = 0; rank < 9; ++rank) colours.insert(colour("worker-0", rank));

  EXPECT_EQ(colours.size(), 10U);
}

TEST(LogColour, IsThereForAnyNameAndAnyNumber) {
  for (const std::string name : {"", "worker-", "worker--1", "worker-99999999999999999999", "x"}) {
    EXPECT_TRUE(colour(name).starts_with("\x1b["));
    EXPECT_EQ(colour(name), colour(name));
  }
  EXPECT_TRUE(colour("launcher", 2147483647).starts_with("\x1b["));
}

}  // namespace

}  // namespace muster::cli::logs
