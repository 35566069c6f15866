// The plans of the scheduler as the controller carries them out: evictions, restarts, suspension,
// draining, and a server that dies between any two commits of a preemption.
#include <gtest/gtest.h>

#include <algorithm>

#include "control/test_deaths.h"
#include "control/test_parts.h"
#include "words/sentence.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using base::ErrorCode;
using job::JobSpec;
using job::Phase;

TEST_F(Scheduling, AGangOfTwoRunsWithItsLauncherAndEachWorkerHasADeviceOfItsOwn) {
  add(project_of("team-a", 2));
  submit(mpi("dist", "team-a", 2));

  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_TRUE(job("dist").tasks[0].devices.empty());
  EXPECT_EQ(job("dist").tasks[1].devices.size(), 1U);
  EXPECT_NE(job("dist").tasks[1].devices, job("dist").tasks[2].devices);
}

TEST_F(Scheduling, WithOneGpuFreeNothingOfAGangOfTwoStarts) {
  add(project_of("team-a", 2));
  submit(single("one", "team-a", 1));
  submit(mpi("dist", "team-a", 2));

  EXPECT_EQ(job("dist").phase, Phase::kQueued);
  EXPECT_EQ(engine_.running.size(), 1U);
  const auto why = controller_->explain("dist");
  ASSERT_TRUE(why);
  EXPECT_EQ(why->constraint, "room");
  EXPECT_EQ(why->position, 1);
  EXPECT_NE(words::sentence(why->reason).find("2 of 3"), std::string::npos) << why->reason;
}

TEST_F(Scheduling, EachJobOfAProjectAtItsLimitIsNamedInItsOwnReason) {
  job::Project small = project_of("team-a", 1);
  small.quota.limit.gpu_milli = 1000;
  add(small);
  for (const char* name : {"one", "two", "three"}) submit(single(name, "team-a", 1));

  EXPECT_EQ(job("one").phase, Phase::kRunning);
  for (const char* name : {"two", "three"}) {
    const std::string reason = words::sentence(job(name).reason);
    EXPECT_EQ(reason.rfind("'" + std::string(name) + "' requests 1 GPU, but project team-a", 0), 0U)
        << reason;
  }
}

TEST_F(Scheduling, AnOverQuotaJobIsEvictedAndStartsAgainLater) {
  add(project_of("team-a", 2));
  add(project_of("team-b", 0));
  submit(single("guest", "team-b", 2));
  ASSERT_EQ(job("guest").phase, Phase::kRunning);

  submit(single("owner", "team-a", 2));

  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_EQ(job("guest").phase, Phase::kQueued);
  EXPECT_EQ(job("guest").restarts, 1);
  EXPECT_TRUE(noted("guest", "owner"));
  EXPECT_TRUE(noted("guest", "team-a"));

  end("owner");
  EXPECT_EQ(job("guest").phase, Phase::kRunning);
  EXPECT_EQ(job("guest").attempt, 2);
}

TEST_F(Scheduling, AVictimThatEndsByItselfMeanwhileHasEnded) {
  add(project_of("team-a", 2));
  add(project_of("team-b", 0));
  submit(single("guest", "team-b", 2));
  engine_.stops_obey = false;
  submit(single("owner", "team-a", 2));
  ASSERT_TRUE(job("guest").eviction);

  end("guest", {.code = 0});

  EXPECT_EQ(job("guest").phase, Phase::kSucceeded);
  EXPECT_EQ(job("owner").phase, Phase::kRunning);
}

TEST_F(Scheduling, AVictimThatSavesItselfAndExitsWithZeroStartsAgain) {
  add(project_of("team-a", 2));
  add(project_of("team-b", 0));
  submit(single("guest", "team-b", 2));
  engine_.stops_obey = false;
  submit(single("owner", "team-a", 2));

  end("guest", {.code = 0, .stopped = true});

  EXPECT_EQ(job("guest").phase, Phase::kQueued);
}

TEST_F(Scheduling, ASuspendedJobReleasesItsResourcesAndRunsAgainWhenItIsResumed) {
  submit(single("one", "default", 2));
  submit(single("two", "default", 2));
  ASSERT_EQ(job("two").phase, Phase::kQueued);

  ASSERT_TRUE(controller_->suspend("one"));
  settle();
  EXPECT_EQ(job("one").phase, Phase::kQueued);
  EXPECT_EQ(job("one").reason, "is suspended; muster resume one continues it");
  EXPECT_EQ(job("two").phase, Phase::kRunning);

  end("two");
  EXPECT_EQ(job("one").phase, Phase::kQueued);
  ASSERT_TRUE(controller_->resume("one"));
  settle();
  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_EQ(job("one").restarts, 1);
}

TEST_F(Scheduling, NoJobIsEvictedForResourcesThatASuspendedOrStoppedJobReleases) {
  engine_.offered.push_back({.name = "n2", .task_slots = 100, .gpus = 2, .gpu_model = "V100"});
  make();
  submit(single("first", "default", 2));
  submit(single("second", "default", 2));
  engine_.stops_obey = false;
  JobSpec build = single("build", "default", 2);
  build.scheduling.priority = 100;

  ASSERT_TRUE(controller_->suspend("first"));
  submit(build);
  EXPECT_EQ(job("build").phase, Phase::kQueued);
  EXPECT_FALSE(job("second").eviction);
  end("first", {.signal = 15, .stopped = true});
  EXPECT_EQ(job("build").phase, Phase::kRunning);
  EXPECT_TRUE(job("first").suspended);

  ASSERT_TRUE(controller_->stop("build", false));
  build.name = "next";
  submit(build);
  EXPECT_EQ(job("next").phase, Phase::kQueued);
  EXPECT_FALSE(job("second").eviction);
  end("build", {.signal = 15, .stopped = true});
  EXPECT_EQ(job("next").phase, Phase::kRunning);
  EXPECT_EQ(job("second").phase, Phase::kRunning);
}

TEST_F(Scheduling, AJobThatWaitsCanBeSuspendedAndStaysSoOverARestart) {
  submit(single("one", "default", 2));
  submit(single("two", "default", 2));
  ASSERT_TRUE(controller_->suspend("two"));
  make();
  ASSERT_TRUE(controller_->recover());
  settle();
  end("one");
  EXPECT_EQ(job("two").phase, Phase::kQueued);

  ASSERT_TRUE(controller_->resume("two"));
  settle();
  EXPECT_EQ(job("two").phase, Phase::kRunning);
}

TEST_F(Scheduling, ADrainedNodeIsLeftAndTakesNothingUntilItIsUncordoned) {
  engine_.offered.push_back({.name = "n2", .task_slots = 100, .gpus = 2, .gpu_model = "V100"});
  make();
  submit(single("one", "default", 2));
  const std::string first = job("one").tasks[0].node;

  ASSERT_TRUE(controller_->nodes().drain(first));
  settle();

  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_NE(job("one").tasks[0].node, first);
  EXPECT_EQ(controller_->nodes().find(first)->state, "cordoned");
  submit(single("two", "default", 2));
  EXPECT_EQ(job("two").phase, Phase::kQueued);

  ASSERT_TRUE(controller_->nodes().uncordon(first));
  settle();
  EXPECT_EQ(job("two").phase, Phase::kRunning);
}

TEST_F(Scheduling, ACordonOutlivesTheServer) {
  ASSERT_TRUE(controller_->nodes().cordon("n1"));
  make();
  ASSERT_TRUE(controller_->recover());
  submit(single("one", "default", 1));
  EXPECT_EQ(job("one").phase, Phase::kQueued);
}

TEST_F(Scheduling, AFailedJobStartsAgainAsOftenAsItWasAllowedTo) {
  JobSpec spec = single("one", "default", 1);
  spec.scheduling.retries = 1;
  submit(spec);
  end("one", {.code = 3});
  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_EQ(job("one").restarts, 1);

  end("one", {.code = 3});
  EXPECT_EQ(job("one").phase, Phase::kFailed);
  EXPECT_EQ(job("one").exit_code, 3);
}

TEST_F(Scheduling, ANodeThatBroughtAJobDownIsAvoided) {
  engine_.offered.push_back({.name = "n2", .task_slots = 100, .gpus = 2, .gpu_model = "V100"});
  make();
  JobSpec spec = single("one", "default", 2);
  spec.scheduling.retry_rules = {
      {.log_pattern = "ECC", .action = job::RetryRule::Action::kAvoidNode}};
  submit(spec);
  const std::string bad = job("one").tasks[0].node;
  engine_.logs["main"] = "CUDA: uncorrectable ECC error\n";

  end("one", {.code = 1});

  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_NE(job("one").tasks[0].node, bad);
  EXPECT_EQ(job("one").retries_used, 0);
}

TEST_F(Scheduling, AJobOnANodeThatVanishesIsLostAndStartsElsewhere) {
  engine_.offered.push_back({.name = "n2", .task_slots = 100, .gpus = 2, .gpu_model = "V100"});
  make();
  JobSpec spec = single("one", "default", 2);
  spec.scheduling.retries = 1;
  submit(spec);
  const std::string gone = job("one").tasks[0].node;

  auto left = engine_.offered;
  std::erase_if(left, [&](const engine::Node& node) { return node.name == gone; });
  engine_.set_nodes(left);
  settle();

  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_NE(job("one").tasks[0].node, gone);
  EXPECT_EQ(job("one").retries_used, 0);
}

TEST_F(Scheduling, AJobThatRunsPastItsTimeLimitFails) {
  JobSpec spec = single("one", "default", 1);
  spec.scheduling.time_limit = std::chrono::milliseconds(1);
  const auto submitted = controller_->submit(spec, "");
  ASSERT_TRUE(submitted);
  while (!job::is_final(job("one").phase)) settle();

  EXPECT_EQ(job("one").phase, Phase::kFailed);
  EXPECT_EQ(job("one").failure->cause, "ran longer than its time limit of 1ms");
}

TEST_F(Scheduling, RefusesAJobThatCanNeverRunWithTheNumbers) {
  const auto refused = controller_->submit(single("wide", "default", 3), "");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_NE(refused.error().what.find("3 GPUs"), std::string::npos) << refused.error().what;
  EXPECT_TRUE(store_.load()->jobs.empty());
}

TEST_F(Scheduling, WithoutANodeInTheDefaultPoolTheReasonsAreThoseOfTheOtherPool) {
  engine_.offered[0].pool = "big";
  make();
  const auto refused = controller_->submit(single("wide", "default", 3), "");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("the only node lacks GPUs (2 GPUs)"), std::string::npos)
      << refused.error().what;

  submit(single("one", "default", 2));
  submit(single("two", "default", 1));
  ASSERT_EQ(job("one").phase, Phase::kRunning);
  const std::string reason = "needs 1 GPU; the only node lacks GPUs (0 GPUs free)";
  EXPECT_EQ(words::sentence(job("two").reason), reason);
  EXPECT_EQ(words::sentence(controller_->explain("two")->reason), reason);
}

TEST_F(Scheduling, AForecastOfAJobThatMayUseAPoolWithoutNodesKeepsTheQuota) {
  add(project_of("team-a", 2));
  JobSpec spec = single("one", "team-a", 1);
  spec.scheduling.node_pools = {"default", "missing"};
  const auto seen = controller_->forecast(spec);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->before.deserved.gpu_milli, 2000);
  EXPECT_EQ(seen->after.deserved.gpu_milli, 2000);

  submit(spec);
  EXPECT_EQ(controller_->projects().status("team-a")->deserved.gpu_milli, 2000);
}

TEST_F(Scheduling, AJobWhoseNodeIsInAnotherPoolAfterARestartKeepsItsGpu) {
  engine_.offered[0].pool = "a";
  make();
  JobSpec spec = single("one", "default", 1);
  spec.scheduling.node_pools = {"a"};
  submit(spec);
  ASSERT_EQ(job("one").phase, Phase::kRunning);

  engine_.offered[0].pool = "b";
  make();
  ASSERT_TRUE(controller_->recover());
  settle();

  submit(single("both", "default", 2));
  EXPECT_EQ(job("both").phase, Phase::kQueued);
  submit(single("other", "default", 1));
  ASSERT_EQ(job("other").phase, Phase::kRunning);
  EXPECT_NE(job("other").tasks[0].devices, job("one").tasks[0].devices);
}

TEST_F(Scheduling, ExplainsThePauseBeforeARetry) {
  JobSpec spec = single("one", "default", 1);
  spec.scheduling.retries = 2;
  submit(spec);
  end("one", {.code = 3});
  end("one", {.code = 3});
  ASSERT_EQ(job("one").phase, Phase::kQueued);

  const auto why = controller_->explain("one");

  ASSERT_TRUE(why);
  EXPECT_EQ(why->constraint, "delayed");
  EXPECT_TRUE(std::holds_alternative<job::TriedAgain>(why->reason.what)) << why->reason;
  EXPECT_TRUE(why->may_start);
}

TEST_F(Scheduling, RefusesAnUnknownProjectWithTheNearestName) {
  add(project_of("team-a", 1));
  const auto refused = controller_->submit(single("one", "team-s", 1), "");
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(refused.error().advice, "did you mean 'team-a'?");
}

TEST_F(Scheduling, AForecastStoresAndStartsNothing) {
  const auto seen = controller_->forecast(single("one", "default", 2));
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->starts_now);
  ASSERT_EQ(seen->placing.size(), 1U);
  EXPECT_EQ(seen->placing[0].node, "n1");
  EXPECT_EQ(seen->after.allocated.gpu_milli - seen->before.allocated.gpu_milli, 2000);
  settle();
  EXPECT_TRUE(controller_->jobs().list().empty());
  EXPECT_TRUE(engine_.running.empty());
}

TEST_F(Scheduling, AForecastNamesTheJobsThatWouldBeEvicted) {
  add(project_of("team-a", 2));
  add(project_of("team-b", 0));
  submit(single("guest", "team-b", 2));

  const auto seen = controller_->forecast(single("owner", "team-a", 2));

  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->evictions.size(), 1U);
  EXPECT_TRUE(words::evictions(*seen)[0].starts_with("'guest' would be evicted for 'owner' "))
      << words::evictions(*seen)[0];
  settle();
  EXPECT_EQ(job("guest").phase, Phase::kRunning);
}

TEST_F(Scheduling, AnElasticJobStartsWithTheFreeResourcesAndKeepsItsNames) {
  JobSpec spec = mpi("dist", "default", 4);
  spec.scheduling.min_workers = 1;
  submit(spec);

  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(engine_.running.size(), 3U);  // the launcher, worker-0, worker-1
  EXPECT_EQ(job("dist").tasks[2].node, "n1");
  EXPECT_EQ(job("dist").tasks[3].node, "");
}

TEST_F(Scheduling, AnElasticJobThatLosesATaskStartsAgainSmaller) {
  add(project_of("team-a", 1));
  add(project_of("team-b", 1));
  JobSpec spec = mpi("dist", "team-b", 2);
  spec.scheduling.min_workers = 1;
  submit(spec);
  ASSERT_EQ(engine_.running.size(), 3U);

  submit(single("owner", "team-a", 1));

  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 2);
  EXPECT_EQ(job("dist").tasks[1].node, "n1");
  EXPECT_EQ(job("dist").tasks[2].node, "");
}

// The other worker ends, because its place is needed and one free place is left.
TEST_F(Scheduling, AnElasticJobOfWhichOneTaskMovesStartsAgainWithThatTask) {
  add(project_of("team-a", 4));
  JobSpec spec = mpi("dist", "team-a", 2);
  spec.scheduling.min_workers = 1;
  submit(spec);
  auto machines = engine_.offered;
  machines.push_back({.name = "n2", .task_slots = 100, .gpus = 1, .gpu_model = "V100"});
  engine_.set_nodes(machines);
  settle();
  ASSERT_EQ(engine_.running.size(), 3U);

  JobSpec owner = single("owner", "team-a", 2);
  owner.scheduling.priority = 100;
  submit(owner);

  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 2);
  EXPECT_EQ(job("dist").restarts, 1);
  EXPECT_EQ(job("dist").tasks[1].node, "n2");
  EXPECT_EQ(job("dist").tasks[2].node, "");
  EXPECT_EQ(controller_->explain("dist")->constraint, "");
}

TEST_F(Scheduling, AProjectWithJobsIsNotDeleted) {
  add(project_of("team-a", 1));
  submit(single("one", "team-a", 1));
  EXPECT_EQ(controller_->projects().remove("team-a").error().code, ErrorCode::kConflict);
  end("one");
  EXPECT_TRUE(controller_->projects().remove("team-a"));
  EXPECT_FALSE(controller_->projects().status("team-a"));
}

TEST_F(Scheduling, AQuotaBelowItsUseMakesRunningJobsOverQuota) {
  add(project_of("team-a", 2));
  add(project_of("team-b", 0));
  submit(single("one", "team-a", 2));
  ASSERT_TRUE(controller_->projects().set(project_of("team-a", 0)));
  ASSERT_TRUE(controller_->projects().set(project_of("team-b", 2)));
  settle();
  EXPECT_EQ(job("one").phase, Phase::kRunning);

  submit(single("two", "team-b", 2));
  EXPECT_EQ(job("two").phase, Phase::kRunning);
  EXPECT_EQ(job("one").phase, Phase::kQueued);
}

TEST_F(Scheduling, ProjectsReportTheirUse) {
  add(project_of("team-a", 2));
  submit(single("one", "team-a", 1));
  submit(single("two", "team-a", 2));
  const auto status = controller_->projects().status("team-a");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->allocated.gpu_milli, 1000);
  EXPECT_EQ(status->requested.gpu_milli, 3000);
  EXPECT_EQ(status->running, 1);
  EXPECT_EQ(status->waiting, 1);
}

TEST_F(Scheduling, AClockThatJumpsBackHarmsNothing) {
  submit(single("one", "default", 2));
  submit(single("two", "default", 2));
  clock_.advance(-std::chrono::hours(1000));
  submit(single("three", "default", 1));
  end("one");
  EXPECT_EQ(job("two").phase, Phase::kRunning);
  EXPECT_EQ(job("three").phase, Phase::kQueued);
}

// --- a server that is killed between any two commits of a preemption

class KilledServer : public Scheduling {
 protected:
  /// All steps of the scenario. Each step can be repeated by a new server that finds it done.
  void story() {
    const auto ensure_project = [&](const job::Project& project) {
      if (!controller_->projects().status(project.name)) add(project);
    };
    ensure_project(project_of("team-a", 2));
    ensure_project(project_of("team-b", 0));
    submit_once(single("guest", "team-b", 2));
    if (!controller_->jobs().find("owner")) {
      settle();
      ASSERT_EQ(job("guest").phase, Phase::kRunning);
    }
    submit_once(single("owner", "team-a", 2));
    settle();
    if (!job::is_final(job("owner").phase)) {
      ASSERT_EQ(job("owner").phase, Phase::kRunning);
      ASSERT_EQ(job("guest").phase, Phase::kQueued);
      end("owner");
    }
    ASSERT_EQ(job("owner").phase, Phase::kSucceeded);
    settle();
    if (!job::is_final(job("guest").phase)) {
      ASSERT_EQ(job("guest").phase, Phase::kRunning);
      end("guest");
    }
    ASSERT_EQ(job("guest").phase, Phase::kSucceeded);
    EXPECT_TRUE(engine_.running.empty());
  }

  void submit_once(const JobSpec& spec) {
    const auto job = controller_->submit(spec, "key-" + spec.name);
    ASSERT_TRUE(job) << job.error().to_string();
    settle();
  }

  /// The scenario with a server that dies at the given commit, and a new server after it.
  void story_with_a_death() {
    if (!dies_in(store_, [this] { story(); })) return;
    live_again();
    ASSERT_TRUE(controller_->recover());
    story();
    expect_no_task_was_started_twice(engine_);
  }
};

TEST_F(KilledServer, TheStoryWithoutADeath) {
  ASSERT_TRUE(controller_->recover());
  story();
}

class KilledAt : public KilledServer, public testing::WithParamInterface<int> {};

TEST_P(KilledAt, BeforeThisCommitLosesNothing) {
  ASSERT_TRUE(controller_->recover());
  store_.dies_before = GetParam();
  story_with_a_death();
}

TEST_P(KilledAt, AfterThisCommitLosesNothing) {
  ASSERT_TRUE(controller_->recover());
  store_.dies_after = GetParam();
  story_with_a_death();
}

INSTANTIATE_TEST_SUITE_P(EveryCommit, KilledAt, testing::Range(1, 30));

}  // namespace
}  // namespace muster::control
