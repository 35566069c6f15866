#include "engine/slurm/allocation_news.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "engine/slurm/slurm_words.h"
#include "words/sentence.h"
#include "words/test_words.h"

namespace muster::engine::slurm {
namespace {

ListedJob pending(const std::string& reason) {
  return {.id = 17,
          .comment = {},
          .state = JobState::kPending,
          .state_text = "PENDING",
          .reason = reason,
          .nodes = {},
          .partition = "gpu",
          .account = "vision",
          .qos = "normal"};
}

TEST(WaitingWords, NameThePlaceAndTheReason) {
  const AllocationPending waits = wait_pending(pending("Resources"));
  EXPECT_TRUE(words::sentence(waits.reason).starts_with("waits in Slurm as job 17: "))
      << waits.reason;
  EXPECT_TRUE(words::sentence(waits.reason).ends_with("(Resources)")) << waits.reason;
  EXPECT_EQ(waits.constraint, "Resources");
  ASSERT_FALSE(waits.reason.details.empty());
  EXPECT_EQ(words::details(waits.reason)[0], "in Slurm: partition gpu, account vision, QOS normal");
}

TEST(WaitingWords, HaveNoReasonIfSlurmHasNone) {
  EXPECT_EQ(wait_pending(pending("")).reason, "waits in Slurm as job 17");
}

TEST(WaitingWords, TakeTheWordOfADetailedReasonAsConstraint) {
  EXPECT_EQ(wait_pending(pending("ReqNodeNotAvail, UnavailableNodes:n1")).constraint,
            "ReqNodeNotAvail");
  EXPECT_EQ(wait_pending(pending("Nodes required for job are DOWN, DRAINED")).constraint, "");
}

struct Estimate {
  std::chrono::hours from_now;
  bool is_reported;
};

TEST(WaitingWords, OmitAMeaninglessEstimate) {
  for (const Estimate& each :
       {Estimate{std::chrono::hours(1), true}, Estimate{std::chrono::hours(48), true},
        Estimate{std::chrono::hours(-1), false}, Estimate{std::chrono::hours(24 * 365), false}}) {
    ListedJob job = pending("Priority");
    job.may_start = base::SystemClock().now() + each.from_now;
    const AllocationPending waits = wait_pending(job);
    EXPECT_EQ(waits.may_start.has_value(), each.is_reported) << each.from_now.count();
    EXPECT_EQ(words::sentence(waits.reason).find("expects it to start at") != std::string::npos,
              each.is_reported);
  }
}

TEST(StartingWords, NameTheNodesThatAreMissing) {
  ListedJob job = pending("");
  job.state = JobState::kRunning;
  job.nodes = {"n1", "n2", "n3"};
  const std::string at = "login1 at port 7070";
  EXPECT_EQ(wait_starting(job, {"n2"}, at).reason,
            "its Slurm job 17 starts: n2 has not called back yet");
  EXPECT_EQ(words::details(wait_starting(job, {"n2"}, at).reason).back(),
            "awaited at login1 at port 7070");
  EXPECT_EQ(wait_starting(job, {"n2", "n3"}, at).reason,
            "its Slurm job 17 starts: n2, n3 have not called back yet");
  EXPECT_EQ(wait_starting(job, {}, at).reason, "its Slurm job 17 starts on n1, n2, n3");
}

TEST(StartingWords, NameTheNodesThatBoot) {
  ListedJob job = pending("");
  job.state = JobState::kConfiguring;
  job.nodes = {"n1", "n2"};
  EXPECT_EQ(wait_starting(job, {"n1", "n2"}, "login1 at port 7070").reason,
            "its Slurm job 17 starts: Slurm is booting or preparing n1, n2 (CONFIGURING)");
}

TEST(OverWords, NameTheUserWhoCancelledTheJob) {
  ListedJob job = pending("");
  job.state = JobState::kCancelled;
  job.state_text = "CANCELLED by 0";
  EXPECT_EQ(words::sentence(taken_job_over(job, true).end),
            "its Slurm job 17 was cancelled in Slurm by root");
  job.state_text = "CANCELLED by 4294967290";
  EXPECT_EQ(words::sentence(taken_job_over(job, true).end),
            "its Slurm job 17 was cancelled in Slurm by 4294967290");
  job.state_text = "CANCELLED";
  EXPECT_EQ(words::sentence(taken_job_over(job, true).end),
            "its Slurm job 17 was cancelled in Slurm");
}

// What Slurm reports where it enforces memory (ConstrainRAMSpace) and the job exceeded it.
TEST(OverWords, ReportAJobThatExceededItsMemory) {
  ListedJob job = pending("");
  job.state_text = "OUT_OF_MEMORY";
  job.state = job_state_of(job.state_text);

  for (const bool was_allocated : {true, false}) {
    const AllocationRevoked taken = taken_job_over(job, was_allocated);
    EXPECT_EQ(taken.why, AllocationRevoked::Why::kFailed);
    EXPECT_EQ(std::get<job::SlurmEnded>(taken.end).cause, job::SlurmEnded::Cause::kOutOfMemory);
    EXPECT_EQ(words::sentence(taken.end), "its Slurm job 17 ran out of memory (OUT_OF_MEMORY)");
    EXPECT_EQ(taken.advice, "request more memory (--memory)");
  }
}

TEST(OverWords, ReportAForgottenJob) {
  ListedJob job = pending("");
  job.state = JobState::kUnknown;
  job.state_text.clear();
  EXPECT_EQ(words::sentence(taken_job_over(job, true).end),
            "Slurm has no record of job 17 any more");
  EXPECT_EQ(taken_job_over(job, true).why, AllocationRevoked::Why::kNodeLost);
}

TEST(AwayWords, NameTheTimeOfTheLastAnswer) {
  EXPECT_EQ(state_controller_away(base::Time(std::chrono::hours(20) + std::chrono::minutes(31))),
            "Slurm's controller has not answered since 20:31:00 UTC; running tasks continue");
}

TEST(AwayWords, QuoteSlurmsProgramsForAWaitingJob) {
  const base::Time since(std::chrono::hours(20));
  const AllocationPending before{
      .reason =
          job::Remark{
              "waits in Slurm as job 17: the resources that it needs are in use (Resources)"},

      .constraint = "Resources"};
  const AllocationPending waits =
      wait_for_controller(before, 17, since, "squeue: error: no route to host\n");
  EXPECT_EQ(waits.reason,
            "waits in Slurm as job 17: Slurm's controller has not answered since 20:00:00 UTC");
  EXPECT_EQ(words::details(waits.reason),
            std::vector<std::string>{"squeue: error: no route to host"});
  EXPECT_EQ(wait_for_controller({}, 0, since, "").reason,
            "waits to be sent to Slurm: Slurm's controller has not answered since 20:00:00 UTC");
}

TEST(LateWords, NameTheNodesAndTheWait) {
  EXPECT_EQ(words::sentence(taken_nodes_late(17, {"n2"}, std::chrono::milliseconds(60'000)).end),
            "node n2 of its Slurm job 17 did not call back within 60 s");
  EXPECT_EQ(words::sentence(taken_nodes_late(17, {}, std::chrono::milliseconds(500)).end),
            "nodes of its Slurm job 17 did not call back within 1 s");
}

}  // namespace
}  // namespace muster::engine::slurm
