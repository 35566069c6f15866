#include "base/text.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::base {
namespace {

TEST(Rfc3339, CutsTheFractionToThePlacesAskedFor) {
  const Time time{std::chrono::nanoseconds{1'700'000'000'123'456'789}};

  EXPECT_EQ(to_rfc3339(time), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(to_rfc3339(time, 0), "2023-11-14T22:13:20Z");
  EXPECT_EQ(to_rfc3339(time, 9), "2023-11-14T22:13:20.123456789Z");
}

TEST(Nearest, FindsTheWordThatWasMeantAndNothingFarFetched) {
  const std::vector<std::string> words{"submit", "list", "logs", "delete"};

  EXPECT_EQ(nearest("submti", words), "submit");
  EXPECT_EQ(nearest("lst", words), "list");
  EXPECT_EQ(nearest("lits", words), "list");
  EXPECT_EQ(nearest("frobnicate", words), "");
}

TEST(ShellQuoted, SurvivesAShell) {
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_joined({"mpirun", "-np", "2", "a b", ""}), "mpirun -np 2 'a b' ''");
}

TEST(Joined, PutsTheSeparatorBetweenTheWordsOfAnyContainer) {
  EXPECT_EQ(joined({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(joined({"", "b"}, ";"), ";b");
  EXPECT_EQ(joined(std::set<std::string_view>{"b", "a"}, ","), "a,b");
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
}

TEST(Listed, PutsAWordBeforeTheLast) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(listed(Words{}), "");
  EXPECT_EQ(listed(Words{"a"}), "a");
  EXPECT_EQ(listed(Words{"a", "b"}), "a and b");
  EXPECT_EQ(listed(Words{"a", "b", "c"}, "or"), "a, b or c");
}

TEST(CountText, KnowsThePlural) {
  EXPECT_EQ(count_text(0, "task"), "0 tasks");
  EXPECT_EQ(count_text(1, "task"), "1 task");
  EXPECT_EQ(count_text(12, "task"), "12 tasks");
}

TEST(InQuotes, ShowsALongTextCutAndAsUtf8) {
  EXPECT_EQ(single_quoted("a\xff"), "'a\xff'");
  EXPECT_EQ(in_quotes("a\xff"), "'a\uFFFD'");
  EXPECT_EQ(in_quotes(std::string(70, 'x')), "'" + std::string(60, 'x') + "...'");
}

TEST(Trimmed, LeavesOutTheBlanksAtBothEnds) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed(" a\n", " "), "a\n");
  EXPECT_EQ(trimmed(" \n "), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(LowerCase, ChangesAsciiLettersOnly) {
  EXPECT_EQ(lower_case("GPU-\u00c4[@Z"), "gpu-\u00c4[@z");
  EXPECT_TRUE(same_but_for_case("PerUser", "peruser"));
  EXPECT_FALSE(same_but_for_case("PerUser", "peruse"));
  EXPECT_FALSE(same_but_for_case("[", "{"));
}

TEST(Split, GivesThePartsBetweenSeparators) {
  EXPECT_EQ(split("a:b::c", ':'), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(split("", ':'), std::vector<std::string>{});
}

}  // namespace
}  // namespace muster::base
