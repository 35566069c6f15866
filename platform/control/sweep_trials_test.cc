// The trials of a sweep: rungs, metrics, failures, and what users do to their jobs.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "control/test_sweeps.h"

namespace muster::control {
namespace {

using job::Phase;
using sweep::SweepEnd;
using sweep::SweepSpec;
using sweep::TrialPhase;

TEST_F(SweepControl, SuspendsATrialOutsideTheTopAndStartsTheNext) {
  create(sweep_of_x(8));
  report(1, {{"step", 1}, {"accuracy", 0.5}});

  EXPECT_EQ(trial(1).phase, TrialPhase::kPaused);
  EXPECT_TRUE(job_of(1)->suspended);
  EXPECT_EQ(job_of(1)->phase, Phase::kQueued);
  ASSERT_NE(job_of(4), nullptr);
  EXPECT_EQ(job_of(4)->phase, Phase::kRunning);
}

TEST_F(SweepControl, ResumesAPromotedTrialWithTheBudgetOfItsNextRung) {
  create(sweep_of_x(8));
  report(1, {{"step", 1}, {"accuracy", 0.9}});
  for (const int number : {2, 3, 4}) report(number, {{"step", 1}, {"accuracy", 0.1}});

  EXPECT_EQ(trial(1).rung, 1);
  EXPECT_EQ(job_of(1)->phase, Phase::kRunning);
  EXPECT_EQ(job_of(1)->attempt, 2);
  EXPECT_EQ(variable(gang_of(1), "MUSTER_SWEEP_RUNG"), "1");
  EXPECT_EQ(variable(gang_of(1), "MUSTER_SWEEP_STEPS"), "4");
}

TEST_F(SweepControl, RunsProgramsThatEndAtTheirBudgetToTheEndOfTheSweep) {
  create(sweep_of_x(16));
  play_to_the_end();

  const sweep::Sweep sweep = the_sweep();
  EXPECT_EQ(sweep.summary.phase, sweep::SweepPhase::kSucceeded);
  EXPECT_EQ(sweep.summary.started, 16);
  EXPECT_EQ(sweep.trials.front().phase, TrialPhase::kCompleted);
  EXPECT_EQ(sweep.trials.front().rung, 2);
  // The best trial of all ran to its end.
  for (const sweep::Trial& trial : sweep.trials) EXPECT_LE(*trial.best, *sweep.summary.best);
  EXPECT_EQ(job_of(sweep.trials.front().number)->phase, Phase::kSucceeded);
  EXPECT_TRUE(controller_->idle());
}

TEST_F(SweepControl, ContinuesATrialThatEndedAtTheBudgetOfARungThatItHadPassed) {
  create(sweep_of_x(8));
  for (const int number : {1, 2, 3}) report(number, {{"step", 1}, {"accuracy", 0.1}});
  // Trial 4 is the best of four and continues, but its program ends at its first budget.
  report(4, {{"step", 1}, {"accuracy", 0.9}});
  EXPECT_EQ(trial(4).rung, 1);
  EXPECT_EQ(job_of(4)->attempt, 1);
  end("lr-4");
  look();

  EXPECT_EQ(trial(4).phase, TrialPhase::kActive);
  EXPECT_EQ(job_of(4)->phase, Phase::kRunning);
  EXPECT_EQ(job_of(4)->attempt, 2);
  EXPECT_EQ(variable(gang_of(4), "MUSTER_SWEEP_STEPS"), "4");
}

TEST_F(SweepControl, NotesTheRungsThatAProgramReachesRightBeforeItEnds) {
  create(sweep_of_x(8));
  for (const int number : {1, 2, 3}) report(number, {{"step", 1}, {"accuracy", 0.1}});
  report(4, {{"step", 1}, {"accuracy", 0.9}});
  ASSERT_EQ(trial(4).rung, 1);
  report(gang_of(4), {{"step", 4}, {"accuracy", 0.9}});
  report(gang_of(4), {{"step", 16}, {"accuracy", 0.95}});
  end("lr-4");
  look();

  EXPECT_EQ(trial(4).rungs, (std::vector<sweep::RungValue>{{0.9}, {0.9}, {0.95}}));
  EXPECT_EQ(trial(4).phase, TrialPhase::kPaused) << "it is alone at its second rung";
  EXPECT_EQ(job_of(4)->attempt, 1);
}

TEST_F(SweepControl, CompletesATrialThatRanOnFromRungToRungToTheLastStep) {
  SweepSpec spec = sweep_of_x(8);
  spec.divisor = 2;  // rungs at 4, 8 and 16 steps
  create(spec);
  report(1, {{"step", 4}, {"accuracy", 0.1}});
  report(2, {{"step", 4}, {"accuracy", 0.8}});
  report(2, {{"step", 8}, {"accuracy", 0.8}});
  report(3, {{"step", 4}, {"accuracy", 0.9}});
  report(3, {{"step", 8}, {"accuracy", 0.9}});
  ASSERT_EQ(trial(3).rung, 2);
  report(gang_of(3), {{"step", 16}, {"accuracy", 0.95}});
  end("lr-3");
  look();

  EXPECT_EQ(trial(3).phase, TrialPhase::kCompleted);
  EXPECT_EQ(job_of(3)->attempt, 1) << "it does not run a second time";
  EXPECT_TRUE(job::is_final(job_of(3)->phase));
}

TEST_F(SweepControl, DoesNotRepeatWhatAPausedTrialDidBeforeItsProgramEnded) {
  create(sweep_of_x(8));
  engine_.stops_obey = false;
  report(1, {{"step", 1}, {"accuracy", 0.9}});
  ASSERT_EQ(trial(1).phase, TrialPhase::kPaused);
  report(gang_of(1), {{"step", 4}, {"accuracy", 0.9}});
  report(gang_of(1), {{"step", 16}, {"accuracy", 0.9}});
  end("lr-1");
  engine_.stops_obey = true;
  for (const int number : {2, 3, 4}) report(number, {{"step", 1}, {"accuracy", 0.1}});

  EXPECT_EQ(trial(1).rung, 1);
  EXPECT_EQ(trial(1).rungs.size(), 3U);
  EXPECT_EQ(job_of(1)->attempt, 1);
}

TEST_F(SweepControl, PromotesATrialOnlyAfterItsTasksHaveEnded) {
  create(sweep_of_x(8));
  engine_.stops_obey = false;
  report(1, {{"step", 1}, {"accuracy", 0.9}});
  engine_.stops_obey = true;
  for (const int number : {2, 3, 4}) report(number, {{"step", 1}, {"accuracy", 0.1}});
  EXPECT_EQ(trial(1).rung, 1);
  EXPECT_EQ(job_of(1)->attempt, 1);
  // The program ends by itself, at the budget of its first rung.
  end("lr-1");
  look();
  EXPECT_EQ(trial(1).rungs.size(), 1U);
  EXPECT_EQ(job_of(1)->attempt, 2);
  EXPECT_EQ(job_of(1)->phase, Phase::kRunning);
  EXPECT_EQ(variable(gang_of(1), "MUSTER_SWEEP_STEPS"), "4");
}

TEST_F(SweepControl, JudgesATrialByItsReportsAndNotByMeansOfThem) {
  create(sweep_of_x(1, sweep::Method::kRandom));
  for (int step = 1; step <= 2500; ++step) {
    report(gang_of(1), {{"step", step}, {"accuracy", step == 2400 ? 0.9 : 0.1}});
  }

  look();

  EXPECT_EQ(trial(1).best, 0.9);
}

TEST_F(SweepControl, StopsASweepWhoseMetricIsNeverReported) {
  SweepSpec spec = sweep_of_x(16);
  create(spec);
  for (int turn = 0; turn < 20 && !the_sweep().summary.ended; ++turn) {
    const auto running = engine_.running;
    for (const auto& [gang, task] : running) {
      report(gang, {{"step", 1}, {"accurracy", 0.5}});
      engine_.end_for_good(gang, task, {});
      settle();
      look();
    }
  }
  EXPECT_EQ(the_sweep().summary.end, SweepEnd::kNoMetric);
  EXPECT_LE(the_sweep().summary.started, 6);
  EXPECT_EQ(trial(1).phase, TrialPhase::kFailed);
  EXPECT_EQ(trial(1).fault, "reported no value of 'accuracy'");
  EXPECT_TRUE(controller_->idle());
}

TEST_F(SweepControl, GivesATrialThatReportsNanNoValueAtItsRung) {
  create(sweep_of_x(8));
  // NaN is not reported: the program only counts its steps.
  report(1, {{"step", 1}});
  EXPECT_EQ(trial(1).phase, TrialPhase::kActive) << "the value may come late";
  report(1, {{"step", 4}});
  EXPECT_EQ(trial(1).phase, TrialPhase::kPaused);
  EXPECT_EQ(trial(1).rungs.front().value, std::nullopt);
}

TEST_F(SweepControl, TakesAValueThatComesLate) {
  create(sweep_of_x(8));
  report(1, {{"step", 1}});
  report(1, {{"step", 2}, {"accuracy", 0.4}});
  EXPECT_EQ(trial(1).rungs, (std::vector<sweep::RungValue>{{0.4}}));
}

TEST_F(SweepControl, CountsAFailedTrialAndContinues) {
  create(sweep_of_x(8));
  report(1, {{"step", 0}, {"accuracy", 0.4}});
  end("lr-1", {.code = 1});
  look();
  EXPECT_EQ(trial(1).phase, TrialPhase::kFailed);
  EXPECT_EQ(trial(1).best, 0.4);
  EXPECT_NE(job_of(4), nullptr);
}

TEST_F(SweepControl, KeepsATrialWhoseNodeIsLost) {
  SweepSpec spec = sweep_of_x(8);
  spec.job.scheduling.retries = 1;
  create(spec);
  report(1, {{"step", 0}, {"accuracy", 0.9}});
  engine_.lose_node("n1");
  settle();
  look();
  EXPECT_EQ(job_of(1)->phase, Phase::kQueued);
  EXPECT_EQ(trial(1).phase, TrialPhase::kActive);
  EXPECT_EQ(trial(1).best, 0.9) << "what the lost attempt reported counts";
}

TEST_F(SweepControl, ATrialThatIsNotAcceptedForNowIsSubmittedLater) {
  const engine::Node large = engine_.offered.front();
  const engine::Node small{.name = "n2", .task_slots = 100, .gpus = 1, .gpu_model = "V100"};
  engine_.set_nodes({large, small});
  settle();
  SweepSpec spec = sweep_of_x(8);
  spec.job.resources.gpus = 2;
  spec.max_concurrent = 1;
  create(spec);
  ASSERT_TRUE(sweeps().set_paused(id_, true, {.user = "ada"}));
  report(1, {{"step", 1}, {"accuracy", 0.5}});
  ASSERT_EQ(trial(1).phase, TrialPhase::kPaused);

  engine_.set_nodes({small});
  settle();
  ASSERT_TRUE(sweeps().set_paused(id_, false, {.user = "ada"}));
  settle();
  for (int times = 0; times < 5; ++times) look();
  EXPECT_EQ(the_sweep().summary.started, 2);
  EXPECT_EQ(the_sweep().summary.failed, 0);
  EXPECT_EQ(trial(2).phase, TrialPhase::kActive);
  EXPECT_NE(trial(2).fault, "") << "a listing shows the reason";
  EXPECT_EQ(job_of(2), nullptr);

  engine_.set_nodes({large, small});
  settle();
  look();
  ASSERT_NE(job_of(2), nullptr);
  EXPECT_EQ(job_of(2)->phase, Phase::kRunning);
  EXPECT_EQ(trial(2).fault, "");
}

TEST_F(SweepControl, ATrialWaitsWhileTheStoreIsReadOnly) {
  const engine::Node large = engine_.offered.front();
  const engine::Node small{.name = "n2", .task_slots = 100, .gpus = 1, .gpu_model = "V100"};
  SweepSpec spec = sweep_of_x(8);
  spec.job.resources.gpus = 2;
  spec.max_concurrent = 1;
  create(spec);
  engine_.set_nodes({large, small});
  settle();
  ASSERT_TRUE(sweeps().set_paused(id_, true, {.user = "ada"}));
  report(1, {{"step", 1}, {"accuracy", 0.5}});
  engine_.set_nodes({small});
  settle();
  ASSERT_TRUE(sweeps().set_paused(id_, false, {.user = "ada"}));
  settle();
  ASSERT_NE(trial(2).fault, "") << "it waits for the large node";
  look();  // stores the reason

  store_.read_only = true;
  engine_.set_nodes({large, small});
  settle();
  for (int times = 0; times < 3; ++times) look();
  EXPECT_EQ(trial(2).phase, TrialPhase::kActive);
  EXPECT_EQ(trial(2).fault, "is read-only");
  EXPECT_EQ(the_sweep().summary.failed, 0);

  store_.read_only = false;
  look();
  look();
  ASSERT_NE(job_of(2), nullptr);
  EXPECT_EQ(job_of(2)->phase, Phase::kRunning);
}

TEST_F(SweepControl, ATrialWaitsForJobsOfAnotherProjectFromWhichItCannotBeIsolated) {
  SweepSpec spec = sweep_of_x(8);
  spec.max_concurrent = 1;
  create(spec);
  report(1, {{"step", 1}, {"accuracy", 0.5}});
  add(project_of("lab", 1));
  submit(single("other", "lab", 0));
  live_again({.user = "ada", .gaps = {.is_root = true}});
  ASSERT_TRUE(controller_->recover());
  settle();

  report(2, {{"step", 1}, {"accuracy", 0.4}});
  look();
  EXPECT_EQ(trial(3).phase, TrialPhase::kActive);
  EXPECT_NE(trial(3).fault.find("another project"), std::string::npos) << trial(3).fault;

  end("other");
  look();
  ASSERT_NE(job_of(3), nullptr);
  EXPECT_EQ(job_of(3)->phase, Phase::kRunning);
}

TEST_F(SweepControl, ATrialFailsThatTheRulesOfTheServerForbid) {
  SweepSpec spec = sweep_of_x(8);
  spec.job.kubernetes.service_account = "robot";
  spec.max_concurrent = 1;
  spec.max_failures = 1;
  create(spec);
  live_again({.user = "ada", .kubernetes = {.is_shared = true}});
  ASSERT_TRUE(controller_->recover());
  settle();

  report(1, {{"step", 1}, {"accuracy", 0.5}});
  for (int times = 0; times < 3; ++times) look();

  EXPECT_EQ(trial(2).phase, TrialPhase::kFailed);
  EXPECT_NE(trial(2).fault.find("does not allow"), std::string::npos) << trial(2).fault;
  EXPECT_EQ(the_sweep().summary.end, SweepEnd::kFailures);
  EXPECT_EQ(the_sweep().summary.failed, 2);
}

TEST_F(SweepControl, TrialsWaitForTheJobThatHadTheNameWhenTheSweepWasCreated) {
  submit(single("prep", "default", 0));
  SweepSpec spec = sweep_of_x(8);
  spec.job.after = {{.job = "prep"}};
  create(spec);
  EXPECT_EQ(job_of(1)->phase, Phase::kQueued);
  end("prep");
  ASSERT_EQ(job_of(3)->phase, Phase::kRunning);
  ASSERT_TRUE(controller_->remove("prep"));
  submit(single("prep", "default", 0));

  report(1, {{"step", 1}, {"accuracy", 0.5}});

  EXPECT_EQ(the_sweep().summary.failed, 0);
  ASSERT_NE(job_of(4), nullptr);
  EXPECT_EQ(job_of(4)->phase, Phase::kRunning);
}

TEST_F(SweepControl, StopsATrialThatReportsNothingForTooLong) {
  SweepSpec spec = sweep_of_x(8);
  spec.metric_timeout = std::chrono::minutes(10);
  create(spec);
  clock_.advance(std::chrono::minutes(9));
  report(2, {{"step", 0}, {"accuracy", 0.2}});
  clock_.advance(std::chrono::minutes(2));
  look();
  look();
  EXPECT_EQ(trial(1).phase, TrialPhase::kFailed);
  EXPECT_EQ(trial(1).fault, "reported no value of 'accuracy' for 10m");
  EXPECT_EQ(job_of(1)->phase, Phase::kStopped);
  EXPECT_EQ(trial(2).phase, TrialPhase::kActive);
}

TEST_F(SweepControl, NotesATrialThatAUserStoppedAndDeleted) {
  create(sweep_of_x(8));
  ASSERT_TRUE(controller_->stop("lr-1", false));
  settle();
  look();
  EXPECT_EQ(trial(1).phase, TrialPhase::kStopped);
  ASSERT_TRUE(controller_->remove("lr-1"));
  settle();
  look();
  EXPECT_EQ(job_of(1), nullptr) << "it is not submitted again";
}

TEST_F(SweepControl, ATrialThatAUserDeletedIsNotStartedAgainByAServerThatWasKilledAtOnce) {
  create(sweep_of_x(8));
  ASSERT_TRUE(controller_->stop("lr-1", false));
  settle();
  ASSERT_TRUE(controller_->remove("lr-1"));

  live_again();  // before the sweep has looked
  ASSERT_TRUE(controller_->recover());
  settle();
  look();

  EXPECT_EQ(job_of(1), nullptr);
  EXPECT_EQ(trial(1).phase, TrialPhase::kStopped);
}

TEST_F(SweepControl, APausedTrialWhoseJobIsDeletedIsStoppedForGood) {
  create(sweep_of_x(8));
  report(1, {{"step", 1}, {"accuracy", 0.5}});
  ASSERT_EQ(trial(1).phase, TrialPhase::kPaused);
  ASSERT_TRUE(controller_->stop("lr-1", false));
  settle();
  ASSERT_TRUE(controller_->remove("lr-1"));
  settle();
  EXPECT_EQ(trial(1).phase, TrialPhase::kStopped);

  live_again();
  ASSERT_TRUE(controller_->recover());
  settle();
  play_to_the_end();

  EXPECT_EQ(the_sweep().summary.phase, sweep::SweepPhase::kSucceeded);
  EXPECT_EQ(trial(1).phase, TrialPhase::kStopped);
  EXPECT_EQ(job_of(1), nullptr);
}

}  // namespace
}  // namespace muster::control
