// Runs tests/data/scheduler-scenarios.md and holds the scenarios that differ against the list that
// docs/scheduler.md explains: one that starts to differ is a fault, and so is one that no longer
// does and is still on the list. The scenarios of tests/data/scheduler-moves.md have no such list.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "simulate/scenarios.h"

namespace muster::simulate {
namespace {

/// By design: each with its reason in docs/scheduler.md.
const std::vector<std::string> kDiffer = {
    // Nobody is moved for a job that has its minimum and could grow.
    "consolidation/consolidation_test.go: 2 elastic jobs running on different GPUs, 1 job of 3 "
    "gpus is pending -  consolidate",
    // The notation has no word for the department's CPU limit, by which upstream keeps it waiting.
    "integration_tests/allocate/allocate_test.go: don't allow job over DEPARTMENT deserved CPU",
    // Not a scenario: the letters of a Go expression.
    "preempt/preemptGang_test.go: flaky scenario",
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SchedulerScenarios, ComeOutAsExpectedButForThoseThatAreDocumented) {
  const auto scenarios = parse_scenarios(text_of(MUSTER_SCENARIOS));
  ASSERT_TRUE(scenarios) << scenarios.error().to_string();
  EXPECT_EQ(scenarios->size(), 104u);

  const std::vector<ScenarioResult> verdicts = run_scenarios(*scenarios);

  std::vector<std::string> differ;
  for (const ScenarioResult& verdict : verdicts)
    if (!verdict.difference.empty()) differ.push_back(verdict.section + ": " + verdict.name);
  std::sort(differ.begin(), differ.end());
  EXPECT_EQ(differ, kDiffer) << report_of(verdicts);
}

TEST(SchedulerScenarios, OfMovesAllComeOutAsExpected) {
  const auto scenarios = parse_scenarios(text_of(MUSTER_MOVES));
  ASSERT_TRUE(scenarios) << scenarios.error().to_string();

  const std::vector<ScenarioResult> verdicts = run_scenarios(*scenarios);

  EXPECT_TRUE(all_as_expected(verdicts)) << report_of(verdicts);
}

}  // namespace
}  // namespace muster::simulate
