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

// Each pattern takes 2^40 steps or more in a backtracking matcher, or a deep stack in a recursive
// matcher.
TEST(LogPattern, MatchesPathologicalPatternsInBoundedTime) {
  const std::string line(kMaxMatchedBytes, 'a');
  std::string empty_branches = "(";
  while (empty_branches.size() < 190) empty_branches += "a?";
  for (const std::string& pattern :
       {std::string("(a*)*b"), std::string("(a|a)*b"), std::string("(a|aa)+$b"),
        std::string(95, '(') + "a" + std::string(95, ')') + "*b", empty_branches + "){100}b"}) {
    EXPECT_FALSE(found(pattern, line)) << pattern;
  }
}

TEST(LogPattern, MatchesOnlyTheStartOfALongLine) {
  EXPECT_TRUE(found("end", std::string(kMaxMatchedBytes - 3, 'x') + "end"));
  EXPECT_FALSE(found("end", std::string(kMaxMatchedBytes, 'x') + "end"));
}

}  // namespace
}  // namespace muster::job
