#include "job/log_record.h"

#include <gtest/gtest.h>

namespace muster::job {
namespace {

const base::Time kTime{std::chrono::seconds(1'700'000'000)};

LogBatch::Source source_of(const std::string& task, std::optional<int> rank = {}) {
  return std::make_shared<const LogSource>(
      LogSource{.task = task, .attempt = 2, .host = "h-" + task, .rank = rank});
}

/// "task:text" of each record, with "…" if its line continues.
std::vector<std::string> lines_of(const LogBatch& batch) {
  std::vector<std::string> lines;
  for (const LogRecord& record : records_of(batch)) {
    lines.push_back(record.task + ":" + record.text + (record.continues ? "…" : ""));
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LogBatch, ReturnsTheLinesOfEachSourceInOrder) {
  const auto a = source_of("a");
  const auto b = source_of("b");
  LogBatch batch;
  batch.add(a, kTime, "one\ntwo\n");
  batch.add(b, kTime, "half");
  batch.add(a, kTime, "\n");
  batch.add(b, kTime, " whole\n");

  EXPECT_EQ(lines_of(batch), (Lines{"a:one", "a:two", "b:half…", "a:", "b: whole"}));
  EXPECT_EQ(batch.sources().size(), 2U);
}

TEST(LogBatch, ReturnsRecordsWithAllFieldsOfTheirSource) {
  LogBatch batch;
  batch.add(source_of("worker-1", 3), kTime, "line\n");

  EXPECT_EQ(records_of(batch), std::vector<LogRecord>{(LogRecord{.time = kTime,
                                                                 .task = "worker-1",
                                                                 .attempt = 2,
                                                                 .host = "h-worker-1",
                                                                 .rank = 3,
                                                                 .text = "line"})});
}

TEST(LogBatch, JoinsOnlyLinesOfTheSameSourceAndTime) {
  const auto a = source_of("a");
  LogBatch batch;
  batch.add(a, kTime, "1\n");
  batch.add(a, kTime, "2\n");
  EXPECT_EQ(batch.runs().size(), 1U);

  batch.add(a, kTime + std::chrono::nanoseconds(1), "3\n");
  EXPECT_EQ(batch.runs().size(), 2U);
  batch.add(a, kTime + std::chrono::nanoseconds(1), "4");
  EXPECT_EQ(batch.runs().size(), 3U);
  batch.add(a, kTime + std::chrono::nanoseconds(1), "5\n");
  EXPECT_EQ(batch.runs().size(), 4U);
  EXPECT_EQ(lines_of(batch), (Lines{"a:1", "a:2", "a:3", "a:4…", "a:5"}));
}

TEST(LogBatch, IsEmptyAfterClear) {
  LogBatch batch;
  batch.add(source_of("a"), kTime, "1\n");
  batch.clear();
  batch.add(source_of("b"), kTime, "");

  EXPECT_TRUE(batch.empty());
  EXPECT_TRUE(records_of(batch).empty());
}

}  // namespace
namespace {

bool found(const std::string& pattern, const std::string& line) {
  const auto compiled = LogPattern::compile(pattern);
  EXPECT_TRUE(compiled) << compiled.error().what;
  return compiled && compiled->found_in(line);
}

TEST(LogPattern, MatchesAnywhereInALine) {
  EXPECT_TRUE(found("CUDA error", "E0101 CUDA error: an illegal access"));
  EXPECT_TRUE(found("NCCL (WARN|ERROR)", "[3] NCCL ERROR 12"));
  EXPECT_TRUE(found("^rank [0-9]{1,3}\\b", "rank 17 died"));
  EXPECT_TRUE(found("Xid \\d+", "NVRM: Xid 79"));
  EXPECT_FALSE(found("^error", "an error"));
  EXPECT_FALSE(found("CUDA error", "cuda error"));
}

TEST(LogPattern, MatchesAnyBytes) {
  EXPECT_TRUE(found("x", std::string("\xFF\0x", 3)));
  EXPECT_FALSE(found("y", std::string("\xFF\0x", 3)));
}

TEST(LogPattern, NamesTheMissingBracket) {
  EXPECT_EQ(LogPattern::compile("[").error().what, "'[' is not a pattern: a '[' has no ']'");
  EXPECT_EQ(
      LogPattern::compile("(a").error().what,
      "'(a' is not a pattern: a '(' or ')' has no counterpart, or nothing precedes a '*', '+' "
      "or '?'");
}

TEST(LogPattern, RefusesAnInvalidRegularExpression) {
  for (const char* text : {"(", "[a", "a{2", "*", "\\", "(?<n>a)", "a{3,2}", "a)|(b"}) {
    EXPECT_FALSE(LogPattern::compile(text)) << text;
  }
}

TEST(LogPattern, RefusesUnboundedGrowth) {
  EXPECT_FALSE(LogPattern::compile(std::string(kMaxPatternBytes + 1, 'a')));
  EXPECT_TRUE(LogPattern::compile(std::string(kMaxPatternBytes, 'a')));
  EXPECT_FALSE(LogPattern::compile("a{101}"));
  EXPECT_FALSE(LogPattern::compile("(a{11}){10}"));
  EXPECT_FALSE(LogPattern::compile("a{99999999999999999999}"));
  EXPECT_TRUE(LogPattern::compile("(a{10}){2,10}"));
  EXPECT_FALSE(LogPattern::compile("(a)\\1"));
}

// std::regex starts another match for a lookahead at each byte: nested ones take time of any power.
TEST(LogPattern, RefusesLookahead) {
  for (const char* text : {"(?=.*(?=.*(?=.*z)))", "a(?!b)", "\\\\(?=a)", "[a](?=b)", "[\\]](?!b)",
                           "[[:alpha:]](?=b)", "\\c[(?=.*z)]", "[\\c]](?=b)"}) {
    const auto pattern = LogPattern::compile(text);
    ASSERT_FALSE(pattern) << text;
    EXPECT_EQ(pattern.error().what, "'" + std::string(text) +
                                        "' contains a lookahead, (?= or (?!, which is not "
                                        "supported");
  }
}

TEST(LogPattern, AcceptsTheSignsOfALookaheadAsText) {
  EXPECT_TRUE(found("\\(?=1", "(=1"));
  EXPECT_TRUE(found("[(?=]=", "x?="));
  EXPECT_TRUE(found("[\\](?=]=", "]="));
  EXPECT_TRUE(found("[[:digit:](?!]=", "7="));
}

TEST(LogPattern, CountsTheStatesOfItsAutomaton) {
  const auto states = [](const std::string& text) {
    const auto pattern = LogPattern::compile(text);
    EXPECT_TRUE(pattern) << text;
    return pattern ? pattern->states() : 0;
  };
  EXPECT_EQ(states("CUDA error"), 0U);
  EXPECT_EQ(states("Xid \\d+"), 6U);
  EXPECT_EQ(states("[a-z_]{20}"), 20U);
  EXPECT_EQ(states("(a|b){3}"), 12U);
  EXPECT_EQ(states("(?:ab){2,}"), 12U);
}

// A byte of a line visits every state: 19,000 of them take a second for each KiB.
TEST(LogPattern, RefusesALargeAutomaton) {
  std::string optional = "(";
  for (int i = 0; i < 95; ++i) optional += "a?";

  EXPECT_EQ(LogPattern::compile(optional + "){100}b").error().what,
            "'" + optional +
                "){100}b' has 19101 parts when its counts are written out, more than 300; use * or "
                "+ instead of counts");
  EXPECT_TRUE(LogPattern::compile(optional + ")b"));
  const std::string nested = "(((((((((a{1,}){1,}){1,}){1,}){1,}){1,}){1,}){1,}){1,}){1,}";
  EXPECT_EQ(LogPattern::compile(nested).error().what,
            "'" + nested +
                "' has 4092 parts when its counts are written out, more than 300; use * or + "
                "instead of counts");
}

// Each pattern takes 2^40 steps or more in a backtracking matcher, or a deep stack in a recursive
// matcher.
TEST(LogPattern, MatchesPathologicalPatternsInBoundedTime) {
  const std::string line(kMaxMatchedBytes, 'a');
  std::string empty_branches = "(";
  while (empty_branches.size() < 190) empty_branches += "a?";
  for (const std::string& pattern :
       {std::string("(a*)*b"), std::string("(a|a)*b"), std::string("(a|aa)+$b"),
        std::string(95, '(') + "a" + std::string(95, ')') + "*b", empty_branches + ")+b"}) {
    EXPECT_FALSE(found(pattern, line)) << pattern;
  }
}

TEST(LogPattern, MatchesOnlyTheStartOfALongLine) {
  EXPECT_TRUE(found("end", std::string(kMaxMatchedBytes - 3, 'x') + "end"));
  EXPECT_FALSE(found("end", std::string(kMaxMatchedBytes, 'x') + "end"));
}

}  // namespace
}  // namespace muster::job
