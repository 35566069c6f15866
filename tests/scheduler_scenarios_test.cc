// Runs the scenarios of tests/data/scheduler-scenarios.md. Those whose result differs from upstream
// must be exactly the scenarios of kDiffer, whose reasons docs/scheduler.md explains. All scenarios
// of tests/data/scheduler-moves.md must have the expected result.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "simulate/scenarios.h"

namespace muster::simulate {
namespace {

/// The scenarios that differ from upstream by design.
const std::vector<std::string> kDiffer = {
    // Muster does not move jobs so that a job that already has its minimum can grow.
    "consolidation/consolidation_test.go: 2 elastic jobs running on different GPUs, 1 job of 3 "
    "gpus is pending -  consolidate",
    // The notation cannot express the CPU limit of a department, which makes the job wait upstream.
    "integration_tests/allocate/allocate_test.go: don't allow job over DEPARTMENT deserved CPU",
    // Not a real scenario: the name is part of a Go expression.
    "preempt/preemptGang_test.go: flaky scenario",
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SchedulerScenarios, HaveTheExpectedResultsExceptForTheDocumentedDifferences) {
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

TEST(SchedulerScenarios, OfMovesHaveTheExpectedResults) {
  const auto scenarios = parse_scenarios(text_of(MUSTER_MOVES));
  ASSERT_TRUE(scenarios) << scenarios.error().to_string();

  const std::vector<ScenarioResult> verdicts = run_scenarios(*scenarios);

  EXPECT_TRUE(all_as_expected(verdicts)) << report_of(verdicts);
}

}  // namespace
}  // namespace muster::simulate
