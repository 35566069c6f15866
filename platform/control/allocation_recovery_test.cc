// A server that is killed between its request for an allocation and the start of the tasks, and the
// server that recovers the job.
#include <gtest/gtest.h>

#include "control/test_cluster.h"
#include "control/test_deaths.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using engine::AllocationRevoked;
using job::Phase;

TEST_F(Allocations, ANewServerAsksForTheSameAgain) {
  submit(single("one", "default", 1));
  const engine::GangId first = next("one");
  ASSERT_TRUE(engine_.requests.contains(first));

  come_back();

  EXPECT_EQ(count_calls("ask " + name_of(first)), 2U);
  give("one");
  EXPECT_EQ(job("one").phase, Phase::kRunning);
}

TEST_F(Allocations, ANewServerAdoptsRunningJobsAndRequestsNothing) {
  submit(mpi("dist", "default", 2));
  give("dist");
  engine_.calls.clear();

  come_back();

  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_EQ(engine_.calls, std::vector<std::string>{});
  EXPECT_EQ(controller_->nodes().find("n2")->jobs, std::vector<std::string>{"dist"});
}

TEST_F(Allocations, ANewServerReleasesUnneededAllocations) {
  submit(single("ended", "default", 1));
  give("ended");
  end("ended");
  submit(single("rests", "default", 1));
  ASSERT_TRUE(controller_->suspend("rests"));
  settle();
  engine_.calls.clear();

  come_back();

  EXPECT_TRUE(was_given_back(gang("ended")));
  EXPECT_TRUE(was_given_back(next("ended")));
  EXPECT_TRUE(was_given_back(next("rests")));
  EXPECT_TRUE(engine_.requests.empty());
}

TEST_F(Allocations, AnAllocationThatWasRevokedWithoutAServerIsReportedByTheNext) {
  submit(single("one", "default", 1));
  give("one");
  live_again();
  ASSERT_TRUE(controller_->recover());
  take("one", {.why = Why::kEvicted, .end = job::SlurmEnded{.text = "Slurm preempted it"}});

  EXPECT_EQ(job("one").phase, Phase::kQueued);
  EXPECT_TRUE(has_asked("one"));
}

TEST_F(Allocations, APlacedJobThatHadNotStartedStartsInItsAllocation) {
  submit(mpi("dist", "default", 2));
  const engine::GangId first = next("dist");
  store_.dies_after = store_.commits + 1;
  EXPECT_TRUE(dies_in(store_, [&] { give("dist"); }));
  ASSERT_TRUE(engine_.plans.empty());

  come_back();

  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(gang("dist"), first);
  EXPECT_FALSE(was_given_back(first));
}

class DeathsOverAllocations : public Allocations,
                              public testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  /// A job from its submission over an eviction to its end, continued from any state.
  void live_on() {
    if (controller_->jobs().list().empty()) submit(with_input("dist"));
    for (int step = 0; step < 8 && !job::is_final(job("dist").phase); ++step) {
      settle();
      if (job("dist").phase == Phase::kQueued) {
        EXPECT_TRUE(has_asked("dist"));
        if (has_asked("dist")) give("dist");
      } else if (job("dist").attempt == 1) {
        take("dist", {.why = Why::kEvicted, .end = job::SlurmEnded{.text = "Slurm preempted it"}});
      } else {
        end("dist");
      }
    }
  }
  static job::JobSpec with_input(const std::string& name) { return mpi(name, "default", 2); }
};

TEST_P(DeathsOverAllocations, TheJobIsNeitherLostNorDoubled) {
  const auto [commit, before] = GetParam();
  (before ? store_.dies_before : store_.dies_after) = store_.commits + commit;
  if (dies_in(store_, [this] { live_on(); })) {
    live_again();
    ASSERT_TRUE(controller_->recover());
    live_on();
  }

  EXPECT_EQ(job("dist").phase, Phase::kSucceeded) << job("dist").reason;
  EXPECT_LE(job("dist").attempt, 3);
  EXPECT_TRUE(engine_.requests.empty());
  EXPECT_TRUE(engine_.running.empty());
  expect_no_task_was_started_twice(engine_);
}

INSTANTIATE_TEST_SUITE_P(AtEachCommit, DeathsOverAllocations,
                         testing::Combine(testing::Range(1, 12), testing::Bool()));

}  // namespace
}  // namespace muster::control
