#include <gtest/gtest.h>

#include "simulate/scenarios.h"

namespace muster::simulate {
namespace {

/// The verdict on one scenario of a section in `folder`.
ScenarioResult verdict_on(const std::string& folder, const std::string& lines) {
  const auto scenarios = parse_scenarios("## " + folder + "/a_test.go\n- **a name**\n" + lines);
  EXPECT_TRUE(scenarios);
  return run_scenario(scenarios->front());
}

const std::string kOneGpu = "  nodes: n0:1G \u00b7 queues: q(des=1)\n";
const std::string kTwoNodes = "  nodes: n0:1G; n1:1G \u00b7 queues: q(des=2)\n";

TEST(RunScenario, ShowsOnePassOfTheFoldersActionBeforeItIsCarriedOut) {
  const std::string jobs =
      "  jobs: old[q,train,1G x1]{1xRunning@n0} | new[q,build,1G x1]{1xPending}\n";

  EXPECT_EQ(verdict_on("preempt", kOneGpu + jobs + "  expect: old=Releasing@n0, new=Pipelined@n0\n")
                .difference,
            "");
  EXPECT_EQ(
      verdict_on("allocate", kOneGpu + jobs + "  expect: old=Running@n0, new=Pending\n").difference,
      "");
}

TEST(RunScenario, RepeatsFullCyclesInIntegrationTestsUntilNothingChanges) {
  EXPECT_EQ(
      verdict_on("integration_tests/preempt",
                 kOneGpu +
                     "  jobs: old[q,train,1G x1]{1xRunning@n0} | new[q,build,1G x1]{1xPending}\n"
                     "  expect: old=Pending, new=Running@n0\n")
          .difference,
      "");
}

TEST(RunScenario, ReportsTheExpectedAndTheActualResult) {
  const ScenarioResult verdict = verdict_on(
      "allocate", kOneGpu +
                      "  jobs: a[q,train,1G x1]{1xPending} | b[q,train,1G x2]{2xPending}\n"
                      "  expect: a=Pending, b=Binding@n0\n");

  EXPECT_EQ(verdict.section, "allocate/a_test.go");
  EXPECT_EQ(verdict.name, "a name");
  EXPECT_EQ(verdict.difference,
            "expected a=Pending, b-0=Binding@n0, b-1=Binding@n0 "
            "got a=Binding@n0, b-0=Pending, b-1=Pending");
}

TEST(RunScenario, AcceptsAnyOfSeveralEqualNodes) {
  const std::string jobs = "  jobs: a[q,train,1G x2]{2xPending}\n";

  EXPECT_EQ(verdict_on("allocate", kTwoNodes + jobs + "  expect: a-0=Binding@n0, a-1=Binding@n1\n")
                .difference,
            "");
  EXPECT_EQ(verdict_on("allocate", kTwoNodes + jobs + "  expect: a-0=Binding@n1, a-1=Binding@n0\n")
                .difference,
            "");
  EXPECT_NE(verdict_on("allocate", kTwoNodes + jobs + "  expect: a=Binding@n0\n").difference, "");
}

TEST(RunScenario, DistinguishesNodesByTheirRunningTasks) {
  const std::string jobs =
      "  jobs: old[q,train,1G x1]{1xRunning@n0} | new[q,train,1G x1]{1xPending}\n";

  EXPECT_EQ(verdict_on("allocate", kTwoNodes + jobs + "  expect: new=Binding@n1\n").difference, "");
  EXPECT_NE(verdict_on("allocate", kTwoNodes + jobs + "  expect: new=Binding@n0\n").difference, "");
}

TEST(RunScenario, CountsOneThatCannotBeReadAsDifferent) {
  EXPECT_EQ(verdict_on("allocate", kOneGpu + "  jobs: m | a\n").difference,
            "cannot be read: job 'm' is not written name[queue,priority,1G x1]{1xPending}");
  EXPECT_EQ(verdict_on("allocate", kOneGpu + "  jobs: a[q,train,1G x2]{2xRunning@n0}\n").difference,
            "cannot be read: 'a' runs on 'n0', which has no room for it");
  EXPECT_EQ(verdict_on("retire", kOneGpu).difference,
            "cannot be read: its section 'retire/a_test.go' begins with no action's folder, nor "
            "with integration_tests/");
}

TEST(ReportOf, HasALineForEachAndTheCountLast) {
  const std::vector<ScenarioResult> verdicts = {{"s", "first", ""},
                                                {"s", "second", "expected a got b"}};

  EXPECT_EQ(report_of(verdicts), "ok first\ndiffers second: expected a got b\n1 of 2\n");
  EXPECT_FALSE(all_as_expected(verdicts));
  EXPECT_TRUE(all_as_expected({verdicts[0]}));
}

}  // namespace
}  // namespace muster::simulate
