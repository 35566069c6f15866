#include "simulate/scenarios.h"

#include <gtest/gtest.h>

namespace muster::simulate {
namespace {

/// One scenario of `lines` below a heading.
Scenario scenario_of(const std::string& lines) {
  const auto scenarios = parse_scenarios("## allocate/a_test.go\n\n- **a name**\n" + lines);
  EXPECT_TRUE(scenarios);
  EXPECT_EQ(scenarios->size(), 1u);
  return scenarios->front();
}

const std::string kCluster = "  nodes: n0:4G; n1:2G \u00b7 queues: q(des=2)\n";

TEST(ParseScenarios, ReadsNodesQueuesJobsAndExpectations) {
  const Scenario scenario = scenario_of(
      "  nodes: n0:4G; n1 \u00b7 queues: q(des=2,w=0.5,max=3,prio=100+1,parent=d) \u00b7 "
      "depts: d(des=4)\n"
      "  jobs: a[q,train,2G x1]{1xRunning@n0} | b[q,build,1G x3 min=1]{1xRunning@n0 2xPending}\n"
      "  expect: a=Running@n0, b-2=Binding@n1\n");

  EXPECT_EQ(scenario.fault, "");
  EXPECT_EQ(scenario.section, "allocate/a_test.go");
  EXPECT_EQ(scenario.name, "a name");
  EXPECT_EQ(scenario.line, 3);
  ASSERT_EQ(scenario.nodes.size(), 2u);
  EXPECT_EQ(scenario.nodes[0].gpus, 4);
  EXPECT_EQ(scenario.nodes[1].gpus, 0);
  ASSERT_EQ(scenario.projects.size(), 2u);
  EXPECT_EQ(scenario.projects[0].parent, "d");
  EXPECT_EQ(scenario.projects[0].priority, 101);
  EXPECT_EQ(scenario.projects[0].quota.deserved.gpu_milli, 2000);
  EXPECT_EQ(scenario.projects[0].quota.limit.gpu_milli, 3000);
  EXPECT_EQ(scenario.projects[0].quota.weight, 0.5);
  ASSERT_EQ(scenario.jobs.size(), 2u);
  EXPECT_TRUE(scenario.jobs[0].gang.preemptible);
  EXPECT_FALSE(scenario.jobs[1].gang.preemptible);
  EXPECT_EQ(scenario.jobs[1].gang.groups[0].minimum, 1);
  EXPECT_EQ(scenario.jobs[1].tasks, (std::vector<TaskView>{{TaskState::kRunning, "n0"}, {}, {}}));
  EXPECT_EQ(scenario.expected,
            (std::vector<Expectation>{{"a", std::nullopt, {TaskState::kRunning, "n0"}},
                                      {"b", 2, {TaskState::kBinding, "n1"}}}));
}

TEST(ParseScenarios, GivesDepartmentsAWeightFromTheirQuotaAndQueuesNone) {
  const Scenario scenario =
      scenario_of("  queues: q(des=2,parent=d) \u00b7 depts: d(des=3); e(des=-1); f(des=3,w=1)\n");

  std::vector<double> weights;
  for (const schedule::Project& project : scenario.projects)
    weights.push_back(project.quota.weight);
  EXPECT_EQ(weights, (std::vector<double>{0, 3, 0, 1}));
  EXPECT_EQ(scenario.projects[2].quota.deserved.gpu_milli, schedule::kUnlimited);
}

TEST(ParseScenarios, LetsTasksWithoutAClaimRequestACpuIfNodesHaveCpus) {
  const std::string jobs =
      "  jobs: a[q,train,1G x1]{1xPending} | b[q,train,1G+20mCPU x1]{1xPending}\n";
  const Scenario counted = scenario_of("  nodes: n:4G+CPUMillis=4000 \u00b7 queues: q\n" + jobs);
  const Scenario ample = scenario_of("  nodes: n:4G \u00b7 queues: q\n" + jobs);

  EXPECT_EQ(counted.jobs[0].gang.groups[0].claim.cpu_milli, 1000);
  EXPECT_EQ(counted.jobs[1].gang.groups[0].claim.cpu_milli, 20);
  EXPECT_EQ(ample.jobs[0].gang.groups[0].claim.cpu_milli, 0);
}

TEST(ParseScenarios, ReadsPrioritiesByNameAndDistance) {
  const Scenario scenario =
      scenario_of(kCluster +
                  "  jobs: a[q,train-1,1G x1]{1xPending} | b[q,build-preempt,1G x1]{1xPending} | "
                  "c[q,build,1G x1]{1xPending} | d[q,inference,0.5G x1]{1xPending}\n");

  std::vector<int> priorities;
  for (const ScenarioJob& job : scenario.jobs) priorities.push_back(job.gang.priority);
  EXPECT_EQ(priorities, (std::vector<int>{49, 75, 100, 125}));
  EXPECT_EQ(scenario.jobs[3].gang.groups[0].claim,
            (schedule::Claim{.gpus = 0, .gpu_share_milli = 500}));
}

TEST(ParseScenarios, TakesAJobsOwnNameBeforeTheTaskOfAnother) {
  const Scenario scenario =
      scenario_of(kCluster +
                  "  jobs: job[q,train,1G x2]{2xPending} | job-1[q,train,1G x2]{2xPending}\n"
                  "  expect: job-1=Pending, job-0=Pending, job-1-0=Pending@n0\n");

  EXPECT_EQ(scenario.expected, (std::vector<Expectation>{
                                   {"job-1", std::nullopt, {}}, {"job", 0, {}}, {"job-1", 0, {}}}));
}

TEST(ParseScenarios, LeavesOutProseAndKeepsScenariosOfEverySection) {
  const auto scenarios = parse_scenarios(
      "# Title\n\n- a list\n  of prose\n## one/a.go\n- **first**\n  nodes: n:1G\n"
      "## two/b.go\nprose\n  more: prose\n- **second**\n  nodes: n:1G\n");

  ASSERT_TRUE(scenarios);
  ASSERT_EQ(scenarios->size(), 2u);
  EXPECT_EQ((*scenarios)[0].section, "one/a.go");
  EXPECT_EQ((*scenarios)[1].section, "two/b.go");
  EXPECT_EQ((*scenarios)[0].fault + (*scenarios)[1].fault, "");
}

TEST(ParseScenarios, RefusesATextWithoutAny) {
  const auto scenarios = parse_scenarios("# Title\nprose\n");

  ASSERT_FALSE(scenarios);
  EXPECT_EQ(scenarios.error().what, "the file contains no scenario");
}

TEST(ParseScenarios, ReportsTheFaultOfAScenarioAndReadsTheOthers) {
  const struct {
    const char* line;
    const char* fault;
  } cases[] = {
      {"jobs: m | a", "job 'm' is not written name[queue,priority,1G x1]{1xPending}"},
      {"jobs: a[q,train]{1xPending}", "job 'a' has not three entries in its brackets"},
      {"jobs: a[q,slow,1G x1]{1xPending}",
       "'slow' is not one of the priorities train, build-preempt, build, inference"},
      {"jobs: a[q,train,1G]{1xPending}", "'1G' has no number of tasks"},
      {"jobs: a[q,train,1G x0]{}", "'1G x0' has no tasks"},
      {"jobs: a[q,train,1Q x1]{1xPending}", "'1Q' has none of the forms 1G, 500mCPU, 1000B mem"},
      {"jobs: a[q,train,1.5G x1]{1xPending}",
       "'1.5' GPUs: give a whole number or a fraction of one GPU"},
      {"jobs: a[q,train,1G x2]{1xPending}", "job 'a' has 2 tasks and the states of 1"},
      {"jobs: a[q,train,1G x1]{1xSleeping}", "'Sleeping' is not a task state"},
      {"jobs: a[other,train,1G x1]{1xPending}", "job 'a' is in 'other', which is not a queue"},
      {"jobs: a[q,train,1G x1]{1xRunning@n9}", "job 'a' runs on 'n9', which is not a node"},
      {"nodes: n2:3X",
       "node 'n2' has '3X', which has none of the forms 4G, CPUMillis=4000, CPUMemory=1000000"},
      {"nodes: n2:65G", "'65' is not between 0 and 64"},
      {"queues: p(des=x)", "'x' is not a number"},
      {"queues: p(size=1)",
       "queue 'p' has 'size', which is not one of des, w, max, prio, parent, desCPU, maxCPU"},
      {"queues: p(des=1", "queue 'p' has no closing bracket"},
      {"queues: p(parent=o)", "queue 'p' has the parent 'o', which is not a queue"},
      {"expect: a=Running", "the scenario expects a result of 'a', which is not a job"},
      {"hopes: none", "'hopes' is not one of nodes, queues, depts, jobs, expect"},
  };
  for (const auto& [line, fault] : cases) {
    std::string text = "## s\n- **bad**\n" + kCluster;
    text.append("  ").append(line).append("\n- **good**\n").append(kCluster);
    const auto scenarios = parse_scenarios(text);
    ASSERT_TRUE(scenarios) << line;
    ASSERT_EQ(scenarios->size(), 2u) << line;
    EXPECT_EQ(scenarios->front().fault, fault) << line;
    EXPECT_EQ(scenarios->back().fault, "") << line;
  }
}

}  // namespace
}  // namespace muster::simulate
