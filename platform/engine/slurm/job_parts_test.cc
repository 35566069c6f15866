#include "engine/slurm/job_parts.h"

#include <gtest/gtest.h>

namespace muster::engine::slurm {
namespace {

ListedPart part(uint64_t id, uint64_t leader, int offset, JobState state,
                std::vector<std::string> nodes = {}) {
  return {.job = {.id = id, .state = state, .nodes = std::move(nodes)},
          .leader = leader,
          .offset = offset};
}

TEST(JobParts, AJobHasTheNodesOfAllItsPartsInTheirOrder) {
  const auto jobs = whole_jobs(
      {part(9, 9, 0, JobState::kRunning, {"n9"}), part(6, 5, 1, JobState::kRunning, {"n2", "n3"}),
       part(5, 5, 0, JobState::kRunning, {"n1"}), part(7, 5, 2, JobState::kRunning, {"n4"})});
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].id, 9U);
  EXPECT_EQ(jobs[1].id, 5U);
  EXPECT_EQ(jobs[1].nodes, (std::vector<std::string>{"n1", "n2", "n3", "n4"}));
}

TEST(JobParts, AJobEndsAsThePartThatSaysWhyAndNotWhileAPartGoesOn) {
  struct Case {
    JobState leader;
    JobState other;
    JobState whole;
  };
  for (const Case& one : {
           Case{JobState::kCompleted, JobState::kCompleted, JobState::kCompleted},
           Case{JobState::kCancelled, JobState::kNodeFailed, JobState::kNodeFailed},
           Case{JobState::kNodeFailed, JobState::kCancelled, JobState::kNodeFailed},
           Case{JobState::kFailed, JobState::kTimeout, JobState::kTimeout},
           Case{JobState::kCompleted, JobState::kRunning, JobState::kCompleting},
           Case{JobState::kRunning, JobState::kCompleted, JobState::kRunning},
       }) {
    const auto jobs = whole_jobs({part(5, 5, 0, one.leader), part(6, 5, 1, one.other)});
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_EQ(jobs[0].state, one.whole);
  }
}

TEST(JobParts, ItStartsWhenTheLastPartDoesAndWaitsForWhatAnyWaitsFor) {
  ListedPart leader = part(5, 5, 0, JobState::kPending);
  ListedPart other = part(6, 5, 1, JobState::kPending);
  leader.job.may_start = base::Time(std::chrono::seconds(10));
  other.job.may_start = base::Time(std::chrono::seconds(20));
  other.job.reason = "Resources";
  other.job.restarts = 2;
  const auto jobs = whole_jobs({leader, other});
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].may_start, other.job.may_start);
  EXPECT_EQ(jobs[0].reason, "Resources");
  EXPECT_EQ(jobs[0].restarts, 2);
}

TEST(JobParts, AnExitIsReadAsWaitSaysIt) {
  ListedJob job;
  set_exit(job, 7 << 8);
  EXPECT_EQ(job.exit_code, 7);
  EXPECT_EQ(job.exit_signal, 0);
  set_exit(job, 9);
  EXPECT_EQ(job.exit_code, 0);
  EXPECT_EQ(job.exit_signal, 9);
}

}  // namespace
}  // namespace muster::engine::slurm
