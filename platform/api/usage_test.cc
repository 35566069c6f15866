#include "api/usage.h"

#include <gtest/gtest.h>

#include "api/test_values.h"
#include "base/text.h"

namespace muster::api {
namespace {

using namespace std::chrono_literals;
using base::Time;
using Event = job::Event;

Time at(std::chrono::minutes minutes) {
  return Time(minutes);
}

/// A job of ada with 2 GPUs that was submitted at 0 and placed at 10 min.
job::Job used_job(std::vector<Event> later) {
  job::Job job;
  job.owner = "ada";
  job.spec.project = "vision";
  job.spec.resources.gpus = 2;
  job.submitted = at(0min);
  job.events = {Event{at(0min), job::Notice{job::Notice::What::kSubmitted}},
                Event{at(10min), job::Placed{.nodes = {"n1"}, .attempt = 1}},
                Event{at(11min), job::Notice{job::Notice::What::kRunning}}};
  job.events.insert(job.events.end(), later.begin(), later.end());
  return job;
}

Event ended_at(std::chrono::minutes minutes, job::Phase phase = job::Phase::kSucceeded) {
  return {at(minutes), job::PhaseReached{phase}};
}

TEST(TimeRun, IsFromThePlacementToTheEnd) {
  EXPECT_EQ(time_run(job::facts_of(used_job({ended_at(70min)})), at(0min), at(1000min)), 60min);
}

TEST(TimeRun, OfARunningJobEndsWithTheSpan) {
  EXPECT_EQ(time_run(job::facts_of(used_job({})), at(0min), at(40min)), 30min);
}

TEST(TimeRun, IsClippedToTheSpan) {
  const job::Job job = used_job({ended_at(70min)});
  EXPECT_EQ(time_run(job::facts_of(job), at(30min), at(50min)), 20min);
  EXPECT_EQ(time_run(job::facts_of(job), at(0min), at(10min)), 0min);
  EXPECT_EQ(time_run(job::facts_of(job), at(70min), at(100min)), 0min);
}

TEST(TimeRun, LeavesOutTheWaitsBetweenAttempts) {
  const auto again = [](std::chrono::minutes minutes, job::Fact over) {
    const job::Job job = used_job({Event{at(20min), std::move(over)},
                                   Event{at(minutes), job::Placed{.nodes = {"n1"}, .attempt = 2}},
                                   ended_at(minutes + 5min)});
    return time_run(job::facts_of(job), at(0min), at(1000min));
  };
  EXPECT_EQ(again(100min, job::StartsAgain{}), 15min);
  EXPECT_EQ(again(100min, job::AttemptAbandoned{}), 15min);
  EXPECT_EQ(again(100min, job::Evicted{.stage = job::Evicted::Stage::kWaitsAgain}), 15min);
  EXPECT_EQ(again(100min, job::Notice{job::Notice::What::kEvictedAndGone}), 15min);
  EXPECT_EQ(again(100min, job::Notice{job::Notice::What::kSuspendedAndGone}), 15min);
}

TEST(TimeRun, ContinuesWhileAnEvictedJobEndsItsTasks) {
  const job::Job job =
      used_job({Event{at(20min), job::Evicted{}},
                Event{at(25min), job::Notice{job::Notice::What::kEvictedAndGone}}});
  EXPECT_EQ(time_run(job::facts_of(job), at(0min), at(1000min)), 15min);
}

TEST(TimeRun, BeginsWithTheStartWhereTheHistoryHasLostThePlacement) {
  job::Job job = used_job({ended_at(70min)});
  job.events.erase(job.events.begin(), job.events.begin() + 3);
  job.started = at(30min);
  job.ended = at(70min);
  EXPECT_EQ(time_run(job::facts_of(job), at(0min), at(1000min)), 40min);
}

TEST(Usage, AddsUpUsersOfProjectsMostGpuHoursFirst) {
  UsageSum sum(at(0min), at(130min));
  job::Job failed = used_job({ended_at(40min, job::Phase::kFailed)});
  failed.phase = job::Phase::kFailed;
  sum.add(job::facts_of(failed));
  job::Job other = used_job({});
  other.owner = "ben";
  other.spec.workers = 0;
  sum.add(job::facts_of(other));
  job::Job waits = used_job({});
  waits.owner = "eve";
  waits.events.resize(1);
  sum.add(job::facts_of(waits));
  sum.add(job::facts_of(used_job({ended_at(40min)})));

  const ProjectUsage usage = sum.of("vision");

  ASSERT_EQ(usage.users.size(), 2U);
  EXPECT_EQ(
      usage.users[0],
      (UserUsage{.project = "vision", .user = "ben", .jobs = 1, .job_hours = 2, .gpu_hours = 4}));
  EXPECT_EQ(usage.users[1], (UserUsage{.project = "vision",
                                       .user = "ada",
                                       .jobs = 2,
                                       .failed = 1,
                                       .job_hours = 1,
                                       .gpu_hours = 2}));
  const auto read = usage_from_json(usage_to_json(usage));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, usage);
}

TEST(Usage, AsCsvHasNoFormulas) {
  const ProjectUsage usage{.project = "p",
                           .users = {{.project = "p", .user = "=HYPERLINK(\"x\")", .jobs = 1},
                                     {.project = "p", .user = "ada", .gpu_hours = 1.5}}};

  EXPECT_EQ(usage_to_csv(usage),
            "project,user,jobs,failed,job_hours,gpu_hours\n"
            "p,\"'=HYPERLINK(\"\"x\"\")\",1,0,0.000,0.000\n"
            "p,ada,0,0,0.000,1.500\n");
}

TEST(UsageQuery, IsReadAsItIsWritten) {
  for (const UsageQuery& query :
       {UsageQuery{}, UsageQuery{.since = at(10min), .until = at(20min), .as_csv = true},
        UsageQuery{.since = at(10min), .until = at(10min)}}) {
    const auto read = usage_query_from_parameters(usage_query_parameters(query));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, query);
  }
}

TEST(UsageQuery, ReportsEveryFault) {
  const auto read =
      usage_query_from_parameters({{"since", "yesterday"}, {"format", "xml"}, {"x", "1"}});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().faults.size(), 3U) << read.error().to_string();
  EXPECT_FALSE(usage_query_from_parameters(
      {{"since", "2026-01-02T00:00:00Z"}, {"until", "2026-01-01T00:00:00Z"}}));
}

}  // namespace
}  // namespace muster::api
