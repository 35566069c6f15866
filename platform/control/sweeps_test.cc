// Sweeps with a fake engine: creation, storage, retention, pause, stop and deletion. The test imitates the
// programs of the trials.
#include "control/sweeps.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "control/test_deaths.h"
#include "control/test_sweeps.h"

namespace muster::control {
namespace {

using job::Phase;
using sweep::SweepSpec;
using sweep::TrialPhase;

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

TEST_F(SweepControl, NamesTheJobOfATrialWhileItIsKept) {
  create(sweep_of_x(8));
  EXPECT_EQ(trial(2).job, job_of(2)->id);

  ASSERT_TRUE(controller_->stop("lr-1", false));
  settle();
  ASSERT_TRUE(controller_->remove("lr-1"));
  settle();
  look();

  EXPECT_EQ(trial(1).job, "");
  EXPECT_EQ(trial(2).job, job_of(2)->id);
  const auto stored = store_.load();
  ASSERT_TRUE(stored);
  for (const store::Object& object : stored->objects) {
    EXPECT_EQ(object.document.find(job_of(2)->id), std::string::npos) << "the id is not stored";
  }
}

/// The jobs of trials are not kept by their sweep once their results are stored.
TEST_F(SweepControl, FindsTheRecordOfASweepUntilTheSweepIsDeleted) {
  create(sweep_of_x(8));
  const sweep::SweepRecord* const record = sweeps().record_with_id(id_);
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->spec.job.name, "lr");
  EXPECT_EQ(sweeps().record_with_id("unknown"), nullptr);

  ASSERT_TRUE(sweeps().stop(id_, {.user = "ada"}));
  settle();
  ASSERT_TRUE(sweeps().remove(id_, {.user = "ada"}));
  EXPECT_EQ(sweeps().record_with_id(id_), nullptr);
}

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
