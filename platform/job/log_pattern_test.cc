#include "job/log_pattern.h"

#include <gtest/gtest.h>

namespace muster::job {
namespace {

bool found(const std::string& pattern, const std::string& line) {
  const auto compiled = LogPattern::compile(pattern);
  EXPECT_TRUE(compiled) << compiled.error().what;
  return compiled && compiled->found_in(line);
}

TEST(LogPattern, IsFoundAnywhereInALine) {
  EXPECT_TRUE(found("CUDA error", "E0101 CUDA error: an illegal access"));
  EXPECT_TRUE(found("NCCL (WARN|ERROR)", "[3] NCCL ERROR 12"));
  EXPECT_TRUE(found("^rank [0-9]{1,3}\\b", "rank 17 died"));
  EXPECT_TRUE(found("Xid \\d+", "NVRM: Xid 79"));
  EXPECT_FALSE(found("^error", "an error"));
  EXPECT_FALSE(found("CUDA error", "cuda error"));
}

TEST(LogPattern, TakesAnyBytes) {
  EXPECT_TRUE(found("x", std::string("\xFF\0x", 3)));
  EXPECT_FALSE(found("y", std::string("\xFF\0x", 3)));
}

TEST(LogPattern, RefusesWhatNoRegexIs) {
  for (const char* text : {"(", "[a", "a{2", "*", "\\", "(?<n>a)", "a{3,2}", "a)|(b"}) {
    EXPECT_FALSE(LogPattern::compile(text)) << text;
  }
}

TEST(LogPattern, RefusesWhatWouldGrowWithoutBound) {
  EXPECT_FALSE(LogPattern::compile(std::string(kMaxPatternBytes + 1, 'a')));
  EXPECT_TRUE(LogPattern::compile(std::string(kMaxPatternBytes, 'a')));
  EXPECT_FALSE(LogPattern::compile("a{101}"));
  EXPECT_FALSE(LogPattern::compile("(a{11}){10}"));
  EXPECT_FALSE(LogPattern::compile("a{99999999999999999999}"));
  EXPECT_TRUE(LogPattern::compile("(a{10}){2,10}"));
  EXPECT_FALSE(LogPattern::compile("(a)\\1"));
}

// Each takes 2^40 steps and more where a matcher backtracks, or a deep stack where it recurses.
TEST(LogPattern, EndsOnWhatMakesOthersBacktrack) {
  const std::string line(kMaxMatchedBytes, 'a');
  std::string empty_branches = "(";
  while (empty_branches.size() < 190) empty_branches += "a?";
  for (const std::string& pattern :
       {std::string("(a*)*b"), std::string("(a|a)*b"), std::string("(a|aa)+$b"),
        std::string(95, '(') + "a" + std::string(95, ')') + "*b", empty_branches + "){100}b"}) {
    EXPECT_FALSE(found(pattern, line)) << pattern;
  }
}

TEST(LogPattern, LooksAtTheStartOfALongLineOnly) {
  EXPECT_TRUE(found("end", std::string(kMaxMatchedBytes - 3, 'x') + "end"));
  EXPECT_FALSE(found("end", std::string(kMaxMatchedBytes, 'x') + "end"));
}

}  // namespace
}  // namespace muster::job
