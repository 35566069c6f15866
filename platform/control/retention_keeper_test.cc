// Retention rules remove ended jobs, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

#include "base/fake_random.h"
#include "control/controller.h"
#include "control/job_table.h"
#include "control/journal.h"
#include "control/retention.h"
#include "control/test_parts.h"
#include "engine/fake_engine.h"
#include "store/memory_store.h"

namespace muster::control {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class Keeping : public testing::Test {
 protected:
  Keeping() { make(); }

  void make(const RetentionRules& rules = {}) {
    controller_ = nullptr;
    controller_ = std::make_unique<Controller>(
        ControllerDependencies{
            .loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
        SiteFacts{.user = "ada"});
    controller_->set_retention(rules);
    EXPECT_TRUE(controller_->recover());
    settle();
  }

  void settle() {
    for (int round = 0; round < 20; ++round) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
  }

  /// Runs the job to its end, which is later than the ends of all jobs before.
  job::Job run(const std::string& name, std::optional<milliseconds> keep_for = {}) {
    job::Job job = start(name, keep_for);
    end(job);
    clock_.advance(std::chrono::seconds(1));
    return job;
  }

  job::Job start(const std::string& name, std::optional<milliseconds> keep_for = {}) {
    job::JobSpec spec{.name = name, .command = {"train"}, .folder = "/"};
    spec.keep_for = keep_for;
    const auto job = controller_->submit(spec, "");
    EXPECT_TRUE(job) << job.error().to_string();
    settle();
    return *job;
  }

  void end(const job::Job& job) {
    engine_.end({job.id, 1}, "main", {});
    settle();
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const job::Job* job : controller_->jobs().list()) names.push_back(job->spec.name);
    return names;
  }

  base::EventLoop loop_;
  MortalStore store_;
  engine::FakeEngine engine_{loop_};
  base::FakeClock clock_;
  base::FakeRandom random_;
  std::unique_ptr<Controller> controller_;
};

using Names = std::vector<std::string>;

TEST_F(Keeping, WithoutARuleEndedJobsStay) {
  run("one");
  clock_.advance(hours(100'000));

  make();

  EXPECT_EQ(names(), Names{"one"});
  EXPECT_EQ(controller_->jobs().list().front()->kept_until, std::nullopt);
}

TEST_F(Keeping, AJobIsRemovedWhenItsTimeIsOver) {
  const job::Job one = run("one");
  run("two");
  clock_.advance(hours(1) - std::chrono::seconds(2));

  controller_->set_retention({.keep_for = hours(1)});
  settle();

  EXPECT_EQ(names(), Names{"two"});
  EXPECT_EQ(std::count(engine_.calls.begin(), engine_.calls.end(), "remove " + one.id), 1);
  EXPECT_EQ(store_.load()->jobs.size(), 1U);
}

TEST_F(Keeping, AJobShowsTheTimeOfItsRemoval) {
  controller_->set_retention({.keep_for = hours(2)});
  run("one");
  run("two", hours(1));

  const auto until = [&](const std::string& name) {
    const job::Job& job = **controller_->jobs().find(name);
    return *job.kept_until - *job.ended;
  };
  EXPECT_EQ(until("one"), hours(2));
  EXPECT_EQ(until("two"), hours(1));

  controller_->set_retention({});
  EXPECT_EQ((*controller_->jobs().find("one"))->kept_until, std::nullopt);
  EXPECT_EQ(until("two"), hours(1));
}

TEST_F(Keeping, AJobWithARetentionOfZeroIsRemovedAtItsEnd) {
  run("one", milliseconds(0));

  EXPECT_EQ(names(), Names{});
  EXPECT_TRUE(store_.load()->jobs.empty());
}

TEST_F(Keeping, NoRuleRemovesAJobThatHasNotEnded) {
  start("runs");
  job::JobSpec held{.name = "waits", .command = {"train"}, .folder = "/"};
  held.held = true;
  ASSERT_TRUE(controller_->submit(held, ""));
  clock_.advance(hours(1000));

  controller_->set_retention({.keep_for = milliseconds(0), .keep_jobs = 0, .keep_bytes = 0});
  settle();

  EXPECT_EQ(names(), (Names{"runs", "waits"}));
}

TEST_F(Keeping, OfTooManyTheOldestGo) {
  controller_->set_retention({.keep_jobs = 2});
  for (const char* name : {"a", "b", "c"}) run(name);

  EXPECT_EQ(names(), (Names{"b", "c"}));
}

TEST_F(Keeping, TimeCountsInAProjectThatHasNotTooMany) {
  run("a");
  clock_.advance(hours(2));
  run("b");
  run("c");

  controller_->set_retention({.keep_for = hours(1), .keep_jobs = 3});
  settle();
  EXPECT_EQ(names(), (Names{"b", "c"}));

  controller_->set_retention({.keep_for = hours(1), .keep_jobs = 1});
  settle();
  EXPECT_EQ(names(), Names{"c"});
}

TEST_F(Keeping, OfTooLargeOnesTheOldestGo) {
  controller_->set_retention({.keep_bytes = 1000});
  for (const char* name : {"a", "b", "c"}) {
    const job::Job job = start(name);
    engine_.sizes[job.id] = 400;
    end(job);
    clock_.advance(std::chrono::seconds(1));
  }

  EXPECT_EQ(names(), (Names{"b", "c"}));
}

TEST_F(Keeping, ANewServerMeasuresTheDiskUseBeforeItRemovesJobs) {
  for (const char* name : {"a", "b", "c"}) {
    engine_.sizes[run(name).id] = 400;
  }

  make({.keep_bytes = 500});

  EXPECT_EQ(names(), Names{"c"});
}

TEST_F(Keeping, ARuleLeavesARecordThatNamesIt) {
  controller_->set_retention({.keep_jobs = 0});
  run("one");

  const auto records = store_.audit({});

  ASSERT_EQ(records->size(), 1U);
  const access::AuditRecord& record = records->front();
  EXPECT_EQ(record.action, "job.delete");
  EXPECT_EQ(record.target, "one");
  EXPECT_EQ(record.actor.user, "(server)");
  EXPECT_EQ(record.changes.back(), (access::FieldChange{"rule", "", "keep_jobs=0"}));
}

TEST_F(Keeping, AFollowedJobIsRemovedAfterTheFollowHasEnded) {
  const job::Job one = start("one", milliseconds(0));
  auto follower = controller_->jobs().watch("one", [] {});
  end(one);
  EXPECT_EQ(names(), Names{"one"});

  follower.reset();
  controller_->set_retention({});  // applies the rules at once
  settle();

  EXPECT_EQ(names(), Names{});
}

TEST_F(Keeping, AFollowedJobDoesNotKeepTheRuleOnBytesFromRemovingTheNext) {
  controller_->set_retention({.keep_bytes = 1000});
  std::shared_ptr<void> follower;
  for (const char* name : {"a", "b", "c"}) {
    const job::Job job = start(name);
    if (follower == nullptr) follower = controller_->jobs().watch(name, [] {});
    engine_.sizes[job.id] = 400;
    end(job);
    clock_.advance(std::chrono::seconds(1));
  }

  EXPECT_EQ(names(), (Names{"a", "c"}));
}

TEST_F(Keeping, ManyGoInSeveralCommitsAndNotOneByOne) {
  constexpr int kJobs = 100;
  for (int i = 0; i < kJobs; ++i) run("job-" + std::to_string(i));
  const int before = store_.commits;

  while (!names().empty()) {
    controller_->set_retention({.keep_for = milliseconds(0)});
    settle();
  }

  EXPECT_EQ(store_.commits - before, 2);
}

TEST_F(Keeping, WatchersAreNotifiedOfTheRemoval) {
  const job::Job one = run("one");
  int calls = 0;
  const auto watch = controller_->feed().watch([&] { ++calls; });

  controller_->set_retention({.keep_jobs = 0});
  settle();

  EXPECT_GE(calls, 1);
  EXPECT_EQ(controller_->jobs().with_id(one.id), nullptr);
}

class RefusingEngine : public engine::FakeEngine {
 public:
  using FakeEngine::FakeEngine;

  Result<void> remove(const std::string& job_id) override {
    if (refused.contains(job_id)) {
      if (on_refusal) on_refusal();
      return base::Error{.what = "cannot remove " + job_id};
    }
    return FakeEngine::remove(job_id);
  }

  std::set<std::string> refused;
  std::function<void()> on_refusal;
};

/// A keeper without a controller, over so many ended jobs of which each uses 10 bytes.
class KeepingMany : public testing::Test {
 protected:
  static constexpr int kJobs = 1000;

  KeepingMany() {
    for (int number = 0; number < kJobs; ++number) add_ended();
  }

  /// A job that ended after all others.
  JobEntry& add_ended() {
    clock_.advance(std::chrono::seconds(1));
    const std::string id = "job-" + std::to_string(added_++);
    engine_.sizes[id] = 10;
    return *jobs_.restore({.id = id,
                           .spec = {.name = id, .command = {"train"}, .folder = "/"},
                           .phase = job::Phase::kSucceeded,
                           .submitted = clock_.now(),
                           .ended = clock_.now()});
  }

  /// Until `is_done`, or for a while.
  void run(const std::function<bool()>& is_done) {
    for (int round = 0; round < 4 * kJobs && !is_done(); ++round) {
      const auto end = loop_.after(std::chrono::milliseconds(1), [this] { loop_.stop(); });
      loop_.run();
    }
    EXPECT_TRUE(is_done());
  }
  void settle() {
    for (int round = 0; round < 20; ++round) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
  }

  base::EventLoop loop_;
  MortalStore store_;
  Metrics metrics_;
  Journal journal_{loop_, store_, metrics_};
  base::FakeClock clock_;
  base::FakeRandom random_;
  JobTable jobs_{clock_, random_, journal_};
  RefusingEngine engine_{loop_};
  RetentionKeeper keeper_{loop_, clock_, engine_, jobs_};
  int added_ = 0;
};

TEST_F(KeepingMany, MeasuringVisitsEachJobAFewTimes) {
  keeper_.set_rules({.keep_bytes = 10 * kJobs});
  settle();
  run([this] { return keeper_.measured_bytes() == 10 * kJobs; });

  EXPECT_EQ(jobs_.size(), size_t{kJobs});
  EXPECT_LE(keeper_.visits(), 5U * kJobs);
}

TEST_F(KeepingMany, TooLargeOnesAreRemovedInAFewVisitsOfEachJob) {
  constexpr int kKept = 900;
  keeper_.set_rules({.keep_bytes = 10 * kKept});
  settle();
  run([this] { return jobs_.size() == kKept; });

  EXPECT_FALSE(jobs_.facts_with_id("job-" + std::to_string(kJobs - kKept - 1)));
  EXPECT_TRUE(jobs_.facts_with_id("job-" + std::to_string(kJobs - kKept)));
  EXPECT_EQ(keeper_.measured_bytes(), 10 * kKept);
  EXPECT_LE(keeper_.visits(), 20U * kJobs);
}

TEST_F(KeepingMany, AStoreThatIsAwayIsNotAskedAgainAtOnce) {
  store_.full = true;

  keeper_.set_rules({.keep_jobs = 0});
  const auto longer_than_a_pause =
      loop_.after(std::chrono::milliseconds(100), [this] { loop_.stop(); });
  loop_.run();

  EXPECT_EQ(engine_.calls.size(), 64U) << "the removals of one commit";
  EXPECT_EQ(jobs_.size(), size_t{kJobs});
}

TEST_F(KeepingMany, JobsThatTheEngineCannotRemoveDoNotKeepTheOthersFromBeingRemoved) {
  constexpr int kRefused = 100;
  for (int number = 0; number < kRefused; ++number) {  // the first of the batches
    engine_.refused.insert("job-" + std::to_string(number));
  }

  keeper_.set_rules({.keep_jobs = 0});
  run([this] { return jobs_.size() == kRefused; });

  EXPECT_TRUE(jobs_.facts_with_id("job-0"));
}

TEST_F(KeepingMany, AJobThatASlowEngineCannotRemoveIsTriedAgainTenMinutesAfterTheLook) {
  const RetentionRules rules{.keep_jobs = kJobs - 1};
  const base::Time again = clock_.now() + std::chrono::minutes(10);
  engine_.refused.insert("job-0");
  engine_.on_refusal = [this] { clock_.advance(std::chrono::seconds(1)); };
  keeper_.set_rules(rules);
  settle();
  ASSERT_EQ(jobs_.size(), size_t{kJobs});
  engine_.refused.clear();

  clock_.advance(again - std::chrono::seconds(1) - clock_.now());
  keeper_.set_rules(rules);  // looks at once
  settle();
  EXPECT_TRUE(jobs_.facts_with_id("job-0"));

  clock_.advance(std::chrono::seconds(1));
  keeper_.set_rules(rules);
  settle();
  EXPECT_FALSE(jobs_.facts_with_id("job-0"));
}

TEST_F(KeepingMany, TheEndOfAJobOfASmallProjectVisitsNoJob) {
  keeper_.set_rules({.keep_jobs = kJobs + 100});
  settle();
  const uint64_t before = keeper_.visits();
  for (int number = 0; number < 100; ++number) {
    keeper_.job_ended(add_ended().job);
    settle();
  }
  EXPECT_EQ(keeper_.visits(), before);

  keeper_.job_ended(add_ended().job);
  settle();

  EXPECT_EQ(jobs_.size(), size_t{kJobs + 100});
  EXPECT_FALSE(jobs_.facts_with_id("job-0"));
}

}  // namespace
}  // namespace muster::control
