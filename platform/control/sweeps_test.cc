// Sweeps with a fake engine. The test imitates the programs of the trials.
#include "control/sweeps.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/test_folder.h"
#include "base/units.h"
#include "control/test_deaths.h"
#include "control/test_parts.h"
#include "engine/metric_log.h"
#include "engine/test_metrics.h"

namespace muster::control {
namespace {

using job::Phase;
using sweep::SweepEnd;
using sweep::SweepSpec;
using sweep::TrialPhase;

/// Rungs at 1, 4 and 16 steps; a trial's accuracy is its parameter `x`.
SweepSpec sweep_of_x(int trials, sweep::Method method = sweep::Method::kAsha) {
  return {.job = {.name = "lr", .command = {"train", "{x}"}, .folder = "/"},
          .parameters = {{"x", {.low = 0, .high = 1}}},
          .method = method,
          .metric = "accuracy",
          .max_trials = trials,
          .max_concurrent = 3,
          .max_steps = 16,
          .max_rungs = 3};
}

class SweepControl : public Scheduling {
 protected:
  using Gang = engine::GangId;

  SweepControl() { engine_.metric_folder = folder_.path(); }

  Sweeps& sweeps() { return controller_->sweeps(); }
  void create(const SweepSpec& spec) {
    const auto made = sweeps().create(spec, {.user = "ada"});
    ASSERT_TRUE(made) << made.error().to_string();
    id_ = made->summary.id;
    settle();
  }
  sweep::Sweep the_sweep() { return *sweeps().with_id(id_); }
  sweep::Trial trial(int number) {
    const sweep::Sweep now = the_sweep();
    for (const sweep::Trial& each : now.trials) {
      if (each.number == number) return each;
    }
    ADD_FAILURE() << "no trial " << number;
    return {};
  }
  const job::Job* job_of(int number) {
    const auto found = controller_->jobs().named(sweep::trial_name("lr", number));
    return found.empty() ? nullptr : found.front();
  }
  Gang gang_of(int number) { return {job_of(number)->id, job_of(number)->attempt}; }

  void look() {
    sweeps().look();
    settle();
  }

  /// The program reports these values at once.
  void report(const Gang& gang, const engine::MetricValues& values) {
    clock_.advance(std::chrono::milliseconds(10));
    std::ofstream(engine_.metric_file(gang, "main"), std::ios::app)
        << engine::encode_sample({.time = clock_.now(), .rank = {}, .values = values});
  }
  void report(int number, const engine::MetricValues& values) {
    report(gang_of(number), values);
    look();
  }

  std::string variable(const Gang& gang, const std::string& name) {
    const auto& environment = engine_.plans.at({gang, "main"}).environment;
    const auto found = environment.find(name);
    return found == environment.end() ? "" : found->second;
  }

  /// Every running program runs until its rung and succeeds.
  void play_until_the_rung() {
    const auto running = engine_.running;
    for (const auto& [gang, task] : running) {
      if (engine_.running.count({gang, task}) == 0) continue;
      const double x = *base::number_of<double>(variable(gang, "X"));
      const double steps = *base::number_of<double>(variable(gang, "MUSTER_SWEEP_STEPS"));
      report(gang, {{"step", steps}, {"accuracy", x}});
      engine_.end_for_good(gang, task, {});
      settle();
      look();
    }
  }
  void play_to_the_end() {
    for (int turn = 0; turn < 200 && !the_sweep().summary.ended; ++turn) play_until_the_rung();
    look();
  }

  base::TestFolder folder_;
  std::string id_;
};

TEST_F(SweepControl, StartsTrialsAsJobsWithTheirValues) {
  create(sweep_of_x(8));

  EXPECT_EQ(the_sweep().summary.active, 3);
  const job::Job& first = *job_of(1);
  EXPECT_EQ(first.phase, Phase::kRunning);
  EXPECT_EQ(first.owner, "ada");
  EXPECT_EQ(first.origin, (job::JobOrigin{job::JobOrigin::Kind::kSweep, "lr", id_, 1}));
  const std::string x = trial(1).values.at("x");
  EXPECT_EQ(first.spec.command, (std::vector<std::string>{"train", x}));
  EXPECT_EQ(variable(gang_of(1), "X"), x);
  EXPECT_EQ(variable(gang_of(1), "MUSTER_SWEEP_STEPS"), "1");
  EXPECT_EQ(job_of(4), nullptr);
}

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

/// The jobs of trials are not kept by their sweep once their results are stored.
TEST_F(SweepControl, ARuleRemovesTheJobOfAnEndedTrialWhileTheSweepRuns) {
  create(sweep_of_x(8));
  report(1, {{"step", 0}, {"accuracy", 0.4}});
  end("lr-1", {.code = 1});
  look();

  controller_->set_retention({.keep_jobs = 0});
  settle();

  EXPECT_EQ(job_of(1), nullptr);
  EXPECT_NE(job_of(2), nullptr);
  controller_->set_retention({});  // the sweep itself is to stay
  live_again();
  ASSERT_TRUE(controller_->recover());
  settle();
  play_to_the_end();
  EXPECT_EQ(the_sweep().summary.phase, sweep::SweepPhase::kSucceeded);
  EXPECT_EQ(the_sweep().summary.started, 8);
  EXPECT_EQ(the_sweep().summary.failed, 1);
  EXPECT_EQ(trial(1).phase, TrialPhase::kFailed);
  EXPECT_EQ(trial(1).best, 0.4);
  EXPECT_EQ(job_of(1), nullptr) << "it is not submitted again";
}

TEST_F(SweepControl, ARuleRemovesTheJobOfATrialOnlyAfterItsResultWasRead) {
  controller_->set_retention({.keep_jobs = 0});
  create(sweep_of_x(8));
  report(1, {{"step", 0}, {"accuracy", 0.4}});
  clock_.advance(std::chrono::milliseconds(10));
  std::ofstream(engine_.metric_file(gang_of(1), "main"), std::ios::app) << engine::encode_sample(
      {.time = clock_.now(), .rank = {}, .values = {{"step", 0}, {"accuracy", 0.6}}});
  end("lr-1", {.code = 1});
  look();

  EXPECT_EQ(trial(1).phase, TrialPhase::kFailed) << "a removed job would have stopped it";
  EXPECT_EQ(trial(1).best, 0.6);
  controller_->set_retention({.keep_jobs = 0});  // applies the rules at once
  settle();
  EXPECT_EQ(job_of(1), nullptr);
}

TEST_F(SweepControl, JobsOfPausedTrialsThatARuleRemovesTogetherStopAllOfTheseTrials) {
  create(sweep_of_x(8));
  for (const int number : {1, 2}) {
    report(number, {{"step", 1}, {"accuracy", 0.5}});
    ASSERT_EQ(trial(number).phase, TrialPhase::kPaused);
    ASSERT_TRUE(controller_->stop(sweep::trial_name("lr", number), false));
    settle();
  }
  store_.dies_after = store_.commits + 1;
  ASSERT_TRUE(dies_in(store_, [this] {
    controller_->set_retention({.keep_jobs = 0});
    settle();
  }));

  live_again();
  ASSERT_TRUE(controller_->recover());
  settle();

  for (const int number : {1, 2}) {
    EXPECT_EQ(job_of(number), nullptr);
    EXPECT_EQ(trial(number).phase, TrialPhase::kStopped);
  }
}

TEST_F(SweepControl, ALookUnpacksNoEndedJob) {
  controller_->keep_whole(0);
  create(sweep_of_x(8));
  std::vector<std::string> ended;
  for (const int number : {1, 2, 3}) {
    ended.push_back(job_of(number)->id);
    report(number, {{"step", 0}, {"accuracy", 0.4}});
    end(sweep::trial_name("lr", number), {.code = 1});
    look();
  }
  ASSERT_TRUE(controller_->set_labels(ended.back(), {{"seen", "yes"}}));  // then all are packed
  settle();
  const size_t whole = controller_->jobs().entries().size();
  for (const std::string& id : ended) {
    ASSERT_NE(controller_->jobs().facts_with_id(id)->packed, nullptr);
  }

  sweeps().look();

  EXPECT_EQ(controller_->jobs().entries().size(), whole);
}

TEST_F(SweepControl, StopsAndDeletesManyTrialsInAFewCommits) {
  SweepSpec spec = sweep_of_x(300);
  spec.max_concurrent = 300;
  create(spec);
  look();
  ASSERT_EQ(controller_->jobs().size(), 300U);
  int before = store_.commits;
  ASSERT_TRUE(sweeps().stop(id_, {.user = "ada"}));
  settle();
  look();
  EXPECT_TRUE(controller_->idle());
  EXPECT_LE(store_.commits - before, 30);

  before = store_.commits;
  ASSERT_TRUE(sweeps().remove(id_, {.user = "ada"}));
  EXPECT_TRUE(sweeps().list().empty());
  EXPECT_EQ(controller_->jobs().size(), 300U - 64U) << "the loop serves others in between";
  settle();

  EXPECT_EQ(controller_->jobs().size(), 0U);
  EXPECT_TRUE(store_.load()->objects.empty());
  EXPECT_LE(store_.commits - before, 7);
}

TEST_F(SweepControl, ADeletionThatAKilledServerBeganIsFinishedByTheNext) {
  SweepSpec spec = sweep_of_x(150);
  spec.max_concurrent = 150;
  create(spec);
  look();
  ASSERT_TRUE(sweeps().stop(id_, {.user = "ada"}));
  settle();
  look();
  store_.dies_before = store_.commits + 3;  // the second commit removes the first jobs
  ASSERT_TRUE(dies_in(store_, [this] {
    EXPECT_TRUE(sweeps().remove(id_, {.user = "ada"}));
    settle();
  }));

  live_again();
  ASSERT_TRUE(controller_->recover());
  EXPECT_EQ(controller_->jobs().size(), 150U - 64U);
  EXPECT_TRUE(sweeps().list().empty());
  settle();

  EXPECT_EQ(controller_->jobs().size(), 0U);
  EXPECT_TRUE(store_.load()->objects.empty());
  EXPECT_TRUE(sweeps().create(sweep_of_x(2), {.user = "ada"})) << "its name is free";
}

TEST_F(SweepControl, AStopThatIsCommittedLaterTakesEffectAndIsInTheAuditLog) {
  create(sweep_of_x(8));
  store_.full = true;
  const auto stopped = sweeps().stop(id_, {.user = "ada"});
  ASSERT_FALSE(stopped);
  EXPECT_TRUE(stopped.error().what.starts_with("the change of sweep 'lr' takes effect, but"))
      << stopped.error().what;
  settle();

  store_.full = false;
  look();
  look();
  EXPECT_EQ(job_of(1)->phase, Phase::kStopped);
  EXPECT_EQ(store_.audit({.action = "sweep.stop"})->size(), 1U);
}

TEST_F(SweepControl, ADeletionThatIsNotCommittedLeavesTheSweep) {
  create(sweep_of_x(8));
  ASSERT_TRUE(sweeps().stop(id_, {.user = "ada"}));
  settle();
  look();
  store_.full = true;
  EXPECT_FALSE(sweeps().remove(id_, {.user = "ada"}));
  EXPECT_EQ(sweeps().list().size(), 1U);
  EXPECT_EQ(controller_->jobs().size(), 3U);

  store_.full = false;
  EXPECT_TRUE(sweeps().remove(id_, {.user = "ada"}));
  EXPECT_TRUE(sweeps().list().empty());
  EXPECT_EQ(controller_->jobs().size(), 0U);
}

TEST_F(SweepControl, ReportsItsEndOnceAndIsRemovedByTheRulesOfRetention) {
  SweepSpec spec = sweep_of_x(6);
  spec.job.keep_for = std::chrono::hours(1);
  create(spec);
  play_to_the_end();

  ASSERT_EQ(store_.ends.size(), 1U);
  EXPECT_EQ(store_.ends[0].kind, "sweep");
  EXPECT_EQ(store_.ends[0].name, "lr");
  EXPECT_EQ(store_.ends[0].phase, Phase::kSucceeded);
  EXPECT_EQ(store_.ends[0].counts.at("trials"), 6);
  EXPECT_EQ(store_.ends[0].metric, the_sweep().summary.best);

  clock_.advance(std::chrono::hours(2));
  live_again();
  ASSERT_TRUE(controller_->recover());
  for (int turn = 0; turn < 5; ++turn) look();
  EXPECT_TRUE(sweeps().list().empty());
  EXPECT_TRUE(store_.load()->objects.empty());
  EXPECT_EQ(store_.ends.size(), 1U);
}

TEST_F(SweepControl, PausesAndResumes) {
  create(sweep_of_x(8));
  ASSERT_TRUE(sweeps().set_paused(id_, true, {.user = "ada"}));
  report(1, {{"step", 1}, {"accuracy", 0.5}});
  EXPECT_EQ(job_of(4), nullptr);
  EXPECT_EQ(the_sweep().summary.phase, sweep::SweepPhase::kPaused);
  ASSERT_TRUE(sweeps().set_paused(id_, false, {.user = "ada"}));
  settle();
  EXPECT_NE(job_of(4), nullptr);
}

TEST_F(SweepControl, StopsAndDeletesWithAllTrials) {
  create(sweep_of_x(8));
  report(1, {{"step", 1}, {"accuracy", 0.5}});
  EXPECT_EQ(sweeps().remove(id_, {}).error().code, base::ErrorCode::kConflict);
  ASSERT_TRUE(sweeps().stop(id_, {.user = "ada"}));
  settle();
  look();
  EXPECT_TRUE(controller_->idle());
  EXPECT_EQ(the_sweep().summary.phase, sweep::SweepPhase::kStopped);
  for (const bool paused : {true, false}) {
    const auto changed = sweeps().set_paused(id_, paused, {.user = "ada"});
    ASSERT_FALSE(changed);
    EXPECT_EQ(changed.error().code, base::ErrorCode::kConflict);
    EXPECT_EQ(changed.error().what, "sweep 'lr' has ended");
  }
  EXPECT_TRUE(sweeps().stop(id_, {.user = "ada"})) << "is idempotent";
  const auto removed = sweeps().remove(id_, {.user = "ada"});
  ASSERT_TRUE(removed) << removed.error().to_string();
  EXPECT_TRUE(controller_->jobs().list().empty());
  EXPECT_TRUE(store_.load()->objects.empty());
}

TEST_F(SweepControl, TakesItsNameAndThoseOfItsTrials) {
  create(sweep_of_x(8));
  const auto code_for = [&](const std::string& name) {
    const auto job = controller_->submit(single(name, "default", 0), "");
    return job ? std::nullopt : std::optional(job.error().code);
  };
  EXPECT_EQ(code_for("lr"), base::ErrorCode::kConflict);
  EXPECT_EQ(code_for("lr-8"), base::ErrorCode::kConflict);
  const auto next =
      controller_->submit(single("lr", "default", 0), "", {}, {.name_template = "lr-{n}"});
  ASSERT_TRUE(next) << next.error().to_string();
  EXPECT_EQ(next->spec.name, "lr-9") << "eight names are those of trials";
  const auto suffixed =
      controller_->submit(single("lr", "default", 0), "", {}, {.name_suffix = true});
  ASSERT_TRUE(suffixed) << suffixed.error().to_string();
  EXPECT_EQ(suffixed->spec.name, "lr-10");
  EXPECT_EQ(code_for("lr-11"), std::nullopt);
  EXPECT_EQ(sweeps().create(sweep_of_x(2), {}).error().code, base::ErrorCode::kConflict);
  SweepSpec other = sweep_of_x(2);
  other.job.name = "x";
  ASSERT_TRUE(controller_->submit(single("x-2", "default", 0), ""));
  EXPECT_EQ(sweeps().create(other, {}).error().code, base::ErrorCode::kConflict);
}

TEST_F(SweepControl, RefusesAnInvalidSweepWithEveryFault) {
  SweepSpec spec = sweep_of_x(8);
  spec.metric.clear();
  spec.max_steps = 0;
  const auto made = sweeps().create(spec, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().faults.size(), 2U);
  EXPECT_TRUE(sweeps().list().empty());
}

/// The server is killed at every commit of a whole sweep, right before it and right after it.
class SweepDeath : public testing::Test {
 protected:
  struct World : SweepControl {
    void TestBody() override {}

    /// The whole sweep; continues where an earlier server was killed.
    void run() {
      if (id_.empty()) {
        const auto known = sweeps().named("lr");
        if (known.empty()) {
          create(sweep_of_x(8));
        } else {
          id_ = known.front().id;
        }
      }
      settle();
      look();
      play_to_the_end();
    }
    void come_back() {
      live_again();
      ASSERT_TRUE(controller_->recover());
      settle();
    }
    MortalStore& store() { return store_; }
    void check() {
      EXPECT_EQ(the_sweep().summary.phase, sweep::SweepPhase::kSucceeded);
      EXPECT_TRUE(controller_->idle());
      std::map<int, int> jobs;
      for (const job::Job* job : controller_->jobs().list()) ++jobs[job->origin->member];
      EXPECT_EQ(jobs.size(), 8U);
      for (const auto& [trial, times] : jobs) EXPECT_EQ(times, 1) << trial;
      expect_no_task_was_started_twice(engine_);
    }
  };
};

TEST_F(SweepDeath, NoTrialIsDoubledOrLostWhereverTheServerIsKilled) {
  World whole;
  whole.run();
  whole.check();
  const int commits = whole.store().commits;
  ASSERT_GT(commits, 20);
  for (const bool before : {true, false}) {
    for (int at = 1; at <= commits; ++at) {
      SCOPED_TRACE((before ? "killed before commit " : "killed after commit ") +
                   std::to_string(at));
      World world;
      (before ? world.store().dies_before : world.store().dies_after) = at;
      if (dies_in(world.store(), [&] { world.run(); })) {
        world.come_back();
        world.run();
      }
      world.check();
    }
  }
}

}  // namespace
}  // namespace muster::control
