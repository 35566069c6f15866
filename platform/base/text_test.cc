#include "base/text.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::base {
namespace {

TEST(Rfc3339, CutsTheFractionToTheRequestedPlaces) {
  const Time time{std::chrono::nanoseconds{1'700'000'000'123'456'789}};

  EXPECT_EQ(to_rfc3339(time), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(to_rfc3339(time, 0), "2023-11-14T22:13:20Z");
  EXPECT_EQ(to_rfc3339(time, 9), "2023-11-14T22:13:20.123456789Z");
}

TEST(Nearest, FindsTheMostSimilarWordAndNothingTooDifferent) {
  const std::vector<std::string> words{"submit", "list", "logs", "delete"};

  EXPECT_EQ(nearest("submti", words), "submit");
  EXPECT_EQ(nearest("lst", words), "list");
  EXPECT_EQ(nearest("lits", words), "list");
  EXPECT_EQ(nearest("frobnicate", words), "");
}

TEST(Nearest, PrefersTheShortestNameThatBeginsWithTheWordToADistantOne) {
  EXPECT_EQ(nearest("prio", {"purpose", "priority-class", "priority"}), "priority");
  EXPECT_EQ(nearest("workerCont", {"workerContainer", "workerCount"}), "workerCount");
  EXPECT_EQ(nearest("pr", {"priority"}), "");
}

TEST(Nearest, FindsNothingForWordsOfOneOrTwoLetters) {
  EXPECT_EQ(nearest("x", {"y", "xy"}), "");
  EXPECT_EQ(nearest("ab", {"ac", "abc"}), "");
}

TEST(FaultMessage, PutsAColonBeforeASentenceWithItsOwnSubject) {
  EXPECT_EQ(fault_message("--workers", "is missing"), "--workers is missing");
  EXPECT_EQ(fault_message("--workers", "'x' is not a whole number"),
            "--workers 'x' is not a whole number");
  EXPECT_EQ(fault_message("--workers", "0 is out of range"), "--workers 0 is out of range");
  EXPECT_EQ(fault_message("--after", "a job cannot wait for itself"),
            "--after: a job cannot wait for itself");
  EXPECT_EQ(fault_message("'workers'", "is set twice"), "'workers' is set twice");
  EXPECT_EQ(fault_message("'workers'", "'x' is not a whole number"),
            "'workers': 'x' is not a whole number");
}

TEST(ShellQuoted, IsReadBackByAShell) {
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

TEST(CountText, UsesThePlural) {
  EXPECT_EQ(count_text(0, "task"), "0 tasks");
  EXPECT_EQ(count_text(1, "task"), "1 task");
  EXPECT_EQ(count_text(12, "task"), "12 tasks");
}

TEST(InQuotes, ShortensALongTextAndReplacesInvalidUtf8) {
  EXPECT_EQ(single_quoted("a\xff"), "'a\xff'");
  EXPECT_EQ(in_quotes("a\xff"), "'a\uFFFD'");
  EXPECT_EQ(in_quotes(std::string(70, 'x')), "'" + std::string(60, 'x') + "...'");
}

TEST(Trimmed, RemovesBlanksAtBothEnds) {
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

TEST(Split, ReturnsThePartsBetweenSeparators) {
  EXPECT_EQ(split("a:b::c", ':'), (std::vector<std::string>{"a", "b", "", "c"}));
  EXPECT_EQ(split("", ':'), std::vector<std::string>{});
}

}  // namespace
namespace {

TEST(Utf8, IsRecognisedAccordingToTheStandard) {
  for (const std::string_view good : {"", "plain", "é", "漢字", "🚀", "\xF4\x8F\xBF\xBF", "\x7F"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
    EXPECT_TRUE(is_utf8("in the midst of ASCII " + std::string(good) + " and more of it"));
  }
  for (const std::string_view bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE6\xBC", "\xF0\x9F\x9A", "\xC3("}) {
    EXPECT_FALSE(is_utf8(bad));
    EXPECT_FALSE(is_utf8("in the midst of ASCII " + std::string(bad)));
  }
}

TEST(Utf8, IsCutOnlyBetweenCharacters) {
  EXPECT_EQ(shortened("aé漢", 60), "aé漢");
  EXPECT_EQ(shortened("aé漢", 2), "a...");
  EXPECT_EQ(shortened("aé漢", 3), "aé...");
}

TEST(Utf8, HasAReplacementForEachInvalidByte) {
  EXPECT_EQ(as_utf8("a\xFF\xC3(é"), "a\xEF\xBF\xBD\xEF\xBF\xBD(é");
}

}  // namespace
}  // namespace muster::base
