#include "simulate/trace_replay.h"

#include <gtest/gtest.h>

namespace muster::simulate {
namespace {

using std::chrono::seconds;

TraceJob job_of(int line, int submit_s, int duration_s, int gpus, std::string project = "a") {
  return {.line = line,
          .submit = seconds(submit_s),
          .duration = seconds(duration_s),
          .gpus = gpus,
          .project = std::move(project)};
}

TraceReport report_of(const std::vector<TraceJob>& jobs, const TraceSetup& setup) {
  const auto report = replay(jobs, setup);
  EXPECT_TRUE(report) << report.error().to_string();
  return *report;
}

TEST(Replay, CountsTheTimeAJobWaitsForTheOneBeforeIt) {
  const TraceReport report =
      report_of({job_of(2, 0, 100, 2), job_of(3, 10, 50, 2)}, {.nodes = 1, .gpus_per_node = 2});

  EXPECT_EQ(report.all.jobs, 2);
  EXPECT_EQ(report.makespan, seconds(150));
  EXPECT_EQ(report.all.waiting,
            (Distribution{
                .mean = seconds(45), .p50 = seconds(0), .p90 = seconds(90), .p99 = seconds(90)}));
  EXPECT_EQ(report.all.completion.mean, seconds(120));
  EXPECT_DOUBLE_EQ(report.utilisation, 1.0);
  EXPECT_EQ(report.timeline, (std::vector<TracePoint>{{seconds(0), 0, 2000},
                                                      {seconds(10), 1, 2000},
                                                      {seconds(100), 0, 2000},
                                                      {seconds(150), 0, 0}}));
}

TEST(Replay, SubmitsJobsInTheOrderOfTheirTimesWhateverTheOrderInTheFile) {
  const TraceReport report =
      report_of({job_of(2, 10, 50, 2), job_of(3, 0, 100, 2)}, {.nodes = 1, .gpus_per_node = 2});

  EXPECT_EQ(report.makespan, seconds(150));
}

TEST(Replay, SpreadsAJobWithoutTasksOverAsFewNodesAsHoldIt) {
  const std::vector<TraceJob> wide = {job_of(2, 0, 10, 12)};

  EXPECT_EQ(report_of(wide, {.nodes = 2, .gpus_per_node = 8}).all.jobs, 1);
  const TraceReport narrow = report_of(wide, {.nodes = 1, .gpus_per_node = 8});
  EXPECT_EQ(narrow.all.jobs, 0);
  ASSERT_EQ(narrow.refused.size(), 1u);
  EXPECT_EQ(narrow.refused[0].line, 2);
}

TEST(Replay, RefusesJobsThatFitNoNodeAndContinues) {
  TraceJob wide = job_of(2, 0, 10, 8);
  wide.tasks = 1;
  const TraceReport report =
      report_of({wide, job_of(3, 0, 10, 4)}, {.nodes = 3, .gpus_per_node = 4});

  ASSERT_EQ(report.refused.size(), 1u);
  EXPECT_EQ(report.refused[0].line, 2);
  EXPECT_NE(report.refused[0].reason, "");
  EXPECT_EQ(report.all.jobs, 1);
}

TEST(Replay, StartsAnEvictedJobOverUnlessItKeepsCheckpoints) {
  // b has all of the node; from second 100 on, a reclaims the half that it deserves.
  const std::vector<TraceJob> jobs = {job_of(2, 0, 300, 2, "b"), job_of(3, 100, 50, 1, "a")};
  TraceSetup setup{.nodes = 1, .gpus_per_node = 2};

  const TraceReport over = report_of(jobs, setup);
  setup.checkpoint = true;
  const TraceReport on = report_of(jobs, setup);

  EXPECT_EQ(over.all.preemptions, 1);
  EXPECT_EQ(over.makespan, seconds(450));
  EXPECT_DOUBLE_EQ(over.all.lost_gpu_seconds, 200);
  EXPECT_EQ(on.makespan, seconds(350));
  EXPECT_DOUBLE_EQ(on.all.lost_gpu_seconds, 0);
  ASSERT_EQ(over.projects.size(), 2u);
  EXPECT_EQ(over.projects[0].name, "b");
  EXPECT_EQ(over.projects[0].quota_milli, 1000);
  EXPECT_EQ(over.projects[0].summary.preemptions, 1);
  EXPECT_EQ(over.projects[0].summary.waiting.mean, seconds(50));
  EXPECT_EQ(over.projects[1].summary.waiting.mean, seconds(0));
}

TEST(Replay, EvictsNoJobInStrictOrderOfSubmission) {
  const TraceReport report =
      report_of({job_of(2, 0, 300, 2, "b"), job_of(3, 100, 50, 1, "a")},
                {.nodes = 1, .gpus_per_node = 2, .policy = schedule::Policy::kFifo});

  EXPECT_EQ(report.all.preemptions, 0);
  EXPECT_EQ(report.makespan, seconds(350));
}

TEST(Replay, StartsAShortJobBeforeAWideJobOnlyIfItDoesNotDelayTheWideJob) {
  std::vector<TraceJob> jobs = {job_of(2, 0, 100, 1), job_of(3, 1, 100, 2), job_of(4, 2, 50, 1)};
  for (TraceJob& job : jobs) job.time_limit = job.duration;
  TraceSetup setup{.nodes = 1, .gpus_per_node = 2, .policy = schedule::Policy::kFifo};

  const TraceReport strict = report_of(jobs, setup);
  setup.policy = schedule::Policy::kBackfill;
  const TraceReport passing = report_of(jobs, setup);

  EXPECT_EQ(strict.makespan, seconds(250));
  EXPECT_EQ(passing.makespan, seconds(200));
}

TEST(Replay, EndsAJobAtItsTimeLimit) {
  TraceJob job = job_of(2, 0, 100, 1);
  job.time_limit = seconds(40);
  const TraceReport report = report_of({job}, {.nodes = 1, .gpus_per_node = 1});

  EXPECT_EQ(report.makespan, seconds(40));
  EXPECT_EQ(report.all.limited, 1);
}

TEST(Replay, ReportsJobsThatStillWaitAtTheEnd) {
  // A gang that is never evicted must stay within the quota of its project, which is zero here.
  TraceJob job = job_of(2, 0, 100, 1);
  job.priority = 100;
  const TraceReport report =
      report_of({job, job_of(3, 0, 10, 1, "b")},
                {.nodes = 1, .gpus_per_node = 1, .projects = {{"a", 0}, {"b", 1000}}});

  EXPECT_EQ(report.all.jobs, 1);
  ASSERT_EQ(report.stuck.size(), 1u);
  EXPECT_EQ(report.stuck[0].line, 2);
  EXPECT_NE(report.stuck[0].reason, "");
}

TEST(Replay, EndsEveryJobAlthoughAllResourcesAreReservedForSomeOfThem) {
  // Both wide jobs are evicted, and their patience ends: the free resources are reserved for them,
  // and no other job may get these.
  std::vector<TraceJob> jobs = {
      job_of(2, 0, 15'400, 8, "wide"), job_of(3, 9'800, 28'800, 8, "wide"),
      job_of(4, 13'200, 1'300, 8),     job_of(5, 13'400, 700, 4),
      job_of(6, 13'900, 800, 8),       job_of(7, 14'100, 100, 1)};
  jobs[0].tasks = jobs[1].tasks = 2;
  for (TraceJob& job : jobs) job.time_limit = 4 * job.duration;

  const TraceReport report = report_of(
      jobs, {.nodes = 4, .gpus_per_node = 8, .projects = {{"wide", 10'000}, {"a", 20'000}}});

  EXPECT_EQ(report.all.jobs, 6);
  EXPECT_EQ(report.stuck.size(), 0u);
}

TEST(Replay, PlansAgainAtOnceIfAPlanAsksForIt) {
  // At second 10, the job of a starts in the plan in which b, which deserves both GPUs, finds no
  // room. Only the next plan may evict it.
  const TraceReport report =
      report_of({job_of(2, 0, 1000, 1, "c"), job_of(3, 10, 500, 1, "a"), job_of(4, 10, 50, 2, "b")},
                {.nodes = 1, .gpus_per_node = 2, .projects = {{"a", 0}, {"b", 2000}, {"c", 0}}});

  ASSERT_EQ(report.projects.size(), 3u);
  EXPECT_EQ(report.projects[2].name, "b");
  EXPECT_EQ(report.projects[2].summary.waiting.mean, seconds(0));
  EXPECT_EQ(report.all.preemptions, 2);
  EXPECT_EQ(report.all.jobs, 3);
}

TEST(Replay, ReportsAllFaultsOfTheSetup) {
  const auto report = replay({job_of(2, 0, 1, 1, "vision")},
                             {.nodes = 0,
                              .gpus_per_node = 65,
                              .projects = {{"vison", 1000}, {"vision", 0}, {"vision", 0}}});

  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().faults,
            (std::vector<base::Fault>{
                {"--nodes", "is not between 1 and 100000"},
                {"--gpus-per-node", "is not between 0 and 64"},
                {"--project", "'vison' has no job in the trace; did you mean 'vision'?"},
                {"--project", "'vision' is given twice"}}));
}

}  // namespace
}  // namespace muster::simulate
