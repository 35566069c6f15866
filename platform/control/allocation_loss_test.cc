// Jobs whose allocation a cluster refuses or revokes.
#include <gtest/gtest.h>

#include <algorithm>

#include "control/test_cluster.h"
#include "words/sentence.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using base::ErrorCode;
using engine::AllocationGranted;
using engine::AllocationPending;
using engine::AllocationRefused;
using engine::AllocationRevoked;
using engine::AllocationStateChange;
using job::JobSpec;
using job::Phase;
using job::SlurmEnded;

TEST_F(Allocations, AJobWhoseAllocationIsRefusedFailsWithoutStartingATask) {
  submit(with_retries(mpi("dist", "default", 2), 3));
  report(next("dist"), AllocationRefused{{.code = ErrorCode::kRefused,
                                          .what = "Slurm takes no job for partition 'gpus'",
                                          .advice = "sinfo shows the partitions",
                                          .faults = {{.field = "partition", .what = "unknown"}}}});

  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  ASSERT_TRUE(job("dist").failure);
  EXPECT_EQ(job("dist").failure->cause,
            "Slurm takes no job for partition 'gpus'; partition: unknown");
  EXPECT_EQ(job("dist").failure->advice, "sinfo shows the partitions");
  EXPECT_EQ(job("dist").exit_code, 1);
  EXPECT_EQ(job("dist").attempt, 0);
  EXPECT_TRUE(engine_.plans.empty());
}

TEST_F(Allocations, AnAllocationThatDoesNotMatchTheRequestFailsTheJob) {
  submit(mpi("dist", "default", 2));
  give("dist", 1);

  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  EXPECT_EQ(job("dist").failure->cause, "its allocation (Slurm job 17) has no place for worker-1");
  EXPECT_TRUE(engine_.requests.empty());
}

TEST_F(Allocations, AnEvictedJobAsksForItsNextAttemptBeforeItGivesUpItsLast) {
  submit(with_retries(mpi("dist", "default", 2), 1));
  give("dist");
  const std::string id = job("dist").id;
  take("dist", {.why = Why::kEvicted, .end = SlurmEnded{.text = "Slurm preempted it (PREEMPTED)"}});

  EXPECT_EQ(job("dist").phase, Phase::kQueued);
  EXPECT_EQ(job("dist").reason, "Slurm preempted it (PREEMPTED); waits to start again");
  EXPECT_EQ(job("dist").restarts, 1);
  EXPECT_EQ(job("dist").retries_used, 0);
  EXPECT_FALSE(job("dist").failure);
  const auto& calls = engine_.calls;
  const auto asked = std::find(calls.begin(), calls.end(), "ask " + id + "/2");
  const auto given_back = std::find(calls.begin(), calls.end(), "give back " + id + "/1");
  ASSERT_NE(given_back, calls.end());
  EXPECT_LT(asked, given_back);

  give("dist");
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 2);
}

TEST_F(Allocations, AnEvictionByKubernetesIsStoredWithTheEndOfItsPod) {
  const job::KubernetesEnded end{.pod = job::PodEnd{.cause = job::PodEnd::Cause::kQueueEvicted,
                                                    .pod = "muster-1",
                                                    .node = "n1",
                                                    .word = "WorkloadEvictedDueToPreempted"}};
  submit(single("one", "default", 1));
  give("one");
  engine_.report_allocation(gang("one"), AllocationRevoked{.why = Why::kEvicted, .end = end});
  settle();

  EXPECT_EQ(job("one").eviction, job::Eviction(end)) << "until its task has ended";
  come_back();
  const auto& events = job("one").events;
  EXPECT_TRUE(std::any_of(events.begin(), events.end(),
                          [&](const job::Event& event) { return event.what == job::Fact(end); }));
}

TEST_F(Allocations, ALostNodeIsARetryWithoutAPriceForAJobThatMayRunTwice) {
  submit(with_retries(mpi("dist", "default", 2), 1));
  give("dist");
  take("dist", {.why = Why::kNodeLost,
                .end = SlurmEnded{.text = "Slurm lost node n2 (NODE_FAIL)"},
                .node = "n2"});

  EXPECT_EQ(job("dist").phase, Phase::kQueued);
  EXPECT_EQ(job("dist").retries_used, 0);
  EXPECT_EQ(job("dist").restarts, 1);
  EXPECT_TRUE(has_asked("dist"));
}

TEST_F(Allocations, ALostNodeIsTheEndOfAJobThatMayNot) {
  submit(mpi("dist", "default", 2));
  give("dist");
  take("dist",
       {.why = Why::kNodeLost, .end = SlurmEnded{.text = "Slurm says NODE_FAIL"}, .node = "n2"});

  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  EXPECT_EQ(job("dist").failure->cause, "Slurm says NODE_FAIL");
  EXPECT_EQ(job("dist").failure->task, "worker-0");
  EXPECT_TRUE(engine_.requests.empty());
}

TEST_F(Allocations, AJobThatIsCancelledInTheClusterIsStopped) {
  submit(with_retries(mpi("runs", "default", 2), 3));
  submit(with_retries(single("waits", "default", 1), 3));
  give("runs");
  take("runs",
       {.why = Why::kCancelled, .end = SlurmEnded{.text = "was cancelled in Slurm by ada"}});
  report(next("waits"),
         AllocationRevoked{.why = Why::kCancelled,
                           .end = SlurmEnded{.text = "was cancelled in Slurm by bob"}});

  EXPECT_EQ(job("runs").phase, Phase::kStopped);
  EXPECT_EQ(job("runs").reason, "was cancelled in Slurm by ada");
  EXPECT_EQ(job("waits").phase, Phase::kStopped);
  EXPECT_EQ(job("waits").reason, "was cancelled in Slurm by bob");
  EXPECT_EQ(count_events("waits", "was cancelled in Slurm by bob"), 1U);
  EXPECT_FALSE(job("runs").failure || job("waits").failure);
  EXPECT_TRUE(engine_.requests.empty());
}

TEST_F(Allocations, AJobThatExceedsItsLimitsFailsWithoutARetry) {
  submit(with_retries(single("one", "default", 1), 3));
  give("one");
  take("one", {.why = Why::kFailed,
               .end = SlurmEnded{.text = "Slurm ended it: it ran into its time limit (TIMEOUT)"},
               .advice = "give it a longer --time-limit"});

  EXPECT_EQ(job("one").phase, Phase::kFailed);
  EXPECT_EQ(job("one").failure->cause, "Slurm ended it: it ran into its time limit (TIMEOUT)");
  EXPECT_EQ(job("one").failure->advice, "give it a longer --time-limit");
  EXPECT_TRUE(engine_.requests.empty());
}

TEST_F(Allocations, ARuleOfTheJobMayHaveItStartAgainAllTheSame) {
  JobSpec spec = with_retries(single("one", "default", 1), 1);
  spec.scheduling.retry_rules = {{.log_pattern = "checkpoint written"}};
  submit(spec);
  give("one");
  engine_.logs["main"] = "checkpoint written\n";
  take("one", {.why = Why::kFailed, .end = SlurmEnded{.text = "TIMEOUT"}});

  EXPECT_EQ(job("one").phase, Phase::kQueued);
  EXPECT_EQ(job("one").retries_used, 1);
  EXPECT_TRUE(has_asked("one"));
}

TEST_F(Allocations, ARevokedAllocationDoesNotChangeTheResultOfAnEndedLauncher) {
  submit(mpi("dist", "default", 2));
  give("dist");
  const engine::GangId of = gang("dist");
  engine_.stops_obey = false;
  end("dist");  // its launcher; the workers still run
  ASSERT_EQ(job("dist").phase, Phase::kRunning);

  engine_.report_allocation(
      of, AllocationRevoked{
              .why = Why::kNodeLost, .end = SlurmEnded{.text = "NODE_FAIL"}, .node = "n2"});
  lose_tasks(of);
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kSucceeded);
}

TEST_F(Allocations, ASuspendedJobWhoseAllocationIsRevokedStaysSuspended) {
  submit(single("one", "default", 1));
  give("one");
  engine_.stops_obey = false;
  ASSERT_TRUE(controller_->suspend("one"));
  take("one", {.why = Why::kCancelled, .end = SlurmEnded{.text = "was cancelled in Slurm by ada"}});

  EXPECT_EQ(job("one").phase, Phase::kQueued);
  EXPECT_TRUE(job("one").suspended);
  EXPECT_FALSE(has_asked("one"));
}

class TakenBeforeItStarted : public Allocations,
                             public testing::WithParamInterface<AllocationRevoked::Why> {};

TEST_P(TakenBeforeItStarted, NoTaskIsStarted) {
  submit(mpi("dist", "default", 2));
  const engine::GangId first = next("dist");
  engine_.report_allocation(first, granted("dist"));
  engine_.report_allocation(
      first, AllocationRevoked{
                 .why = GetParam(), .end = SlurmEnded{.text = "Slurm took it"}, .node = "n1"});
  settle();

  EXPECT_TRUE(engine_.plans.empty());
  switch (GetParam()) {
    case Why::kEvicted:
    case Why::kNodeLost:
      EXPECT_EQ(job("dist").phase, Phase::kQueued);
      break;
    case Why::kCancelled:
      EXPECT_EQ(job("dist").phase, Phase::kStopped);
      break;
    case Why::kFailed:
      EXPECT_EQ(job("dist").phase, Phase::kFailed);
  }
  EXPECT_EQ(has_asked("dist"), GetParam() == Why::kEvicted);  // a lost node causes a pause first
}

INSTANTIATE_TEST_SUITE_P(ForAnyReason, TakenBeforeItStarted,
                         testing::Values(AllocationRevoked::Why::kEvicted,
                                         AllocationRevoked::Why::kNodeLost,
                                         AllocationRevoked::Why::kCancelled,
                                         AllocationRevoked::Why::kFailed));

TEST_F(Allocations, AStartThatFailsBecauseTheAllocationWasRevokedIsNotAFailureOfTheJob) {
  submit(single("one", "default", 1));
  engine_.slow_starts = {"main"};
  give("one");
  engine_.report_allocation(
      gang("one"),
      AllocationRevoked{.why = Why::kEvicted, .end = SlurmEnded{.text = "Slurm preempted it"}});
  engine_.finish_start("main", false);
  settle();

  EXPECT_EQ(job("one").phase, Phase::kQueued);
  EXPECT_EQ(job("one").reason, "Slurm preempted it; waits to start again");
  EXPECT_TRUE(has_asked("one"));
}

/// Slurm has requeued the job, and still lists the node as down.
AllocationRevoked requeued_with_its_node() {
  return {
      .why = AllocationRevoked::Why::kNodeLost,
      .end =
          SlurmEnded{.cause = SlurmEnded::Cause::kRequeuedNode, .slurm_job = 17, .nodes = {"n1"}},
      .node = "n1"};
}

TEST_F(Allocations, AJobWithoutRetriesWaitsAgainIfItsNodeIsLostWhileItsTaskIsBeingStarted) {
  submit(single("one", "default", 1));
  engine_.slow_starts = {"main"};
  give("one");
  ASSERT_EQ(job("one").phase, Phase::kStarting);
  engine_.report_allocation(gang("one"), requeued_with_its_node());
  engine_.finish_start("main", false);
  settle();

  EXPECT_EQ(job("one").phase, Phase::kQueued);
  EXPECT_FALSE(job("one").failure);
  EXPECT_EQ(job("one").retries_used, 0);
}

TEST_F(Allocations, AnMpiJobWithoutRetriesWaitsAgainIfANodeIsLostBeforeItsLauncherIsStarted) {
  JobSpec spec = mpi("dist", "default", 2);
  engine_.slow_starts = {"launcher"};
  submit(spec);
  give("dist");
  ASSERT_EQ(job("dist").phase, Phase::kStarting);
  const engine::GangId of = gang("dist");
  engine_.report_allocation(of, requeued_with_its_node());
  lose_tasks(of);
  engine_.finish_start("launcher", false);
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kQueued);
  EXPECT_FALSE(job("dist").failure);
}

TEST_F(Allocations, ANodeThatNeverCalledIsTriedAgainAFewTimes) {
  submit(single("one", "default", 1));
  const AllocationRevoked lost{.why = Why::kNodeLost,
                               .end = SlurmEnded{.text = "node n1 did not call back"},
                               .advice = "see that it reaches this machine",
                               .node = "n1",
                               .printed = {"srun: error: no such file"}};
  for (int attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_TRUE(engine_.requests.contains({job("one").id, attempt}));
    report({job("one").id, attempt}, lost);
    EXPECT_EQ(job("one").phase, Phase::kQueued);
    EXPECT_EQ(job("one").reason, "node n1 did not call back; asks Slurm for an allocation");
    EXPECT_EQ(words::details(job("one").reason),
              (std::vector<std::string>{"  srun: error: no such file",
                                        "see that it reaches this machine"}));
    EXPECT_FALSE(has_asked("one"));  // requests an allocation only after a pause

    clock_.advance(std::chrono::seconds(10));
    ASSERT_TRUE(controller_->nodes().uncordon("n1"));  // any change starts a new plan
    settle();
  }
  report(next("one"), lost);

  EXPECT_EQ(job("one").phase, Phase::kFailed);
  EXPECT_EQ(job("one").failure->cause, "node n1 did not call back");
  EXPECT_EQ(job("one").failure->last_lines,
            std::vector<std::string>{"  srun: error: no such file"});
  EXPECT_TRUE(engine_.plans.empty());
}

// --- stopping a suspended job

/// An MPI job that runs, and whose tasks do not end when they are stopped.
class SuspendedMpi : public Allocations {
 protected:
  SuspendedMpi() {
    engine_.stops_obey = false;
    submit(mpi("dist", "default", 2));
    give("dist");
    engine_.calls.clear();
  }
  void suspend() { report(gang("dist"), AllocationStateChange{job::SlurmState{.slurm_job = 17}}); }
  void stop() {
    ASSERT_EQ(job("dist").phase, Phase::kRunning);
    ASSERT_TRUE(controller_->stop("dist", false));
    settle();
  }
  std::vector<std::string> stops_of(const std::vector<std::string>& tasks) {
    std::vector<std::string> calls;
    for (const std::string& task : tasks) {
      calls.push_back("stop " + name_of(gang("dist")) + " " + task + " gracefully");
    }
    return calls;
  }
};

TEST_F(SuspendedMpi, StopsItsWorkersTogetherWithItsLauncher) {
  suspend();

  stop();

  EXPECT_EQ(engine_.calls, stops_of({"launcher", "worker-0", "worker-1"}));
}

TEST_F(SuspendedMpi, StopsItsWorkersIfItIsSuspendedAfterItsLauncherWasStopped) {
  stop();
  EXPECT_EQ(engine_.calls, stops_of({"launcher"}));
  engine_.calls.clear();

  suspend();

  EXPECT_EQ(engine_.calls, stops_of({"launcher", "worker-0", "worker-1"}));
}

// --- late news

TEST_F(Allocations, LateNewsOfAnEarlierAttemptChangeNothing) {
  submit(with_retries(single("one", "default", 1), 1));
  give("one");
  const engine::GangId first = gang("one");
  end("one", {.code = 3});
  give("one");
  ASSERT_EQ(job("one").attempt, 2);
  const job::Job before = job("one");

  report(first, AllocationRevoked{.why = Why::kCancelled, .end = SlurmEnded{.text = "late"}});
  report(first, AllocationStateChange{job::SlurmState{}});
  report(first, AllocationPending{.reason = job::Remark{"late"}});

  EXPECT_EQ(job("one"), before);
}

TEST_F(Allocations, AnAllocationThatIsNoLongerNeededIsReleased) {
  submit(single("one", "default", 1));
  const engine::GangId first = next("one");
  const AllocationGranted given = granted("one");
  ASSERT_TRUE(controller_->stop("one", true));
  settle();
  engine_.calls.clear();

  report(first, given);
  report({"stranger", 1}, given);

  EXPECT_TRUE(was_given_back(first));
  EXPECT_TRUE(was_given_back({"stranger", 1}));
  EXPECT_EQ(job("one").phase, Phase::kStopped);
}

TEST_F(Allocations, AnAllocationThatIsReportedTwiceIsUsedOnce) {
  submit(single("one", "default", 1));
  const engine::GangId first = next("one");
  const AllocationGranted given = granted("one");
  report(first, given);
  report(first, given);

  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_EQ(count_events("one", "placed on"), 1U);
  EXPECT_FALSE(was_given_back(first));
}

}  // namespace
}  // namespace muster::control
