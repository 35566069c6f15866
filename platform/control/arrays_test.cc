// Arrays in the controller: their members, their limits, stops, and a server that is killed.
#include "control/arrays.h"

#include <gtest/gtest.h>

#include "control/test_parts.h"
#include "store/records.h"

namespace muster::control {
namespace {

using base::ErrorCode;
using job::MemberCounts;
using job::Phase;

class ArraysTest : public Scheduling {
 protected:
  job::JobSpec array(const std::string& name, const std::string& indexes, int gpus = 1) {
    job::JobSpec spec = single(name, "default", gpus);
    spec.array.indexes = indexes;
    return spec;
  }
  job::Array submit_array(const job::JobSpec& spec, const std::string& key = "") {
    const auto made = controller_->submit_array(spec, key, {.user = "ada"});
    EXPECT_TRUE(made) << made.error().to_string();
    settle();
    return made ? *made : job::Array();
  }
  job::Array seen(const std::string& name) {
    const auto found = controller_->arrays().named(name);
    EXPECT_EQ(found.size(), 1U) << name;
    if (found.empty()) return {};
    return controller_->arrays().with_id(found.front().record.id).value_or(job::Array());
  }
  MemberCounts counts(const std::string& name) { return seen(name).counts; }
  std::string id(const std::string& name) { return seen(name).id; }

  /// Another server after the first was killed.
  void come_back() {
    LastingEngine before(loop_);
    before.take_over(engine_);
    live_again();
    ASSERT_TRUE(controller_->recover());
    settle();
  }
  std::vector<std::string> running() {
    std::vector<std::string> names;
    for (const auto& [gang, task] : engine_.running) {
      names.push_back(controller_->jobs().with_id(gang.job_id)->spec.name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  /// Until then the loop turns, also for what is tried again after a pause.
  void wait_until(const std::function<bool()>& condition) {
    while (!condition()) {
      const auto pause = loop_.after(std::chrono::milliseconds(10), [this] { loop_.stop(); });
      loop_.run();
      settle();
    }
  }
  /// Ends the running members until none runs.
  int end_all(job::ExitStatus status = {}) {
    int ended = 0;
    while (!engine_.running.empty()) {
      end(controller_->jobs().with_id(engine_.running.begin()->first.job_id)->spec.name, status);
      ++ended;
    }
    return ended;
  }
};

TEST_F(ArraysTest, RunsEveryMemberOnce) {
  submit_array(array("train", "0-9"));

  EXPECT_EQ(counts("train"), (MemberCounts{.queued = 8, .running = 2}));
  EXPECT_EQ(running(), (std::vector<std::string>{"train-0", "train-1"}));
  EXPECT_EQ(job("train-1").spec.environment.at("MUSTER_ARRAY_INDEX"), "1");
  EXPECT_EQ(job("train-1").origin->name, "train");
  EXPECT_EQ(end_all(), 10);
  EXPECT_EQ(counts("train"), MemberCounts{.succeeded = 10});
  EXPECT_EQ(seen("train").phase, Phase::kSucceeded);
  EXPECT_EQ(seen("train").percent, 100);
  EXPECT_TRUE(seen("train").ended);
}

TEST_F(ArraysTest, MakesAWindowOfMembersOnly) {
  submit_array(array("train", "0-9999"));

  EXPECT_EQ(counts("train"), (MemberCounts{.queued = 9998, .running = 2}));
  EXPECT_LE(controller_->jobs().list().size(), 2U + Arrays::kWindow);
  end("train-0");
  EXPECT_LE(controller_->jobs().list().size(), 3U + Arrays::kWindow);
  EXPECT_EQ(counts("train"), (MemberCounts{.queued = 9997, .running = 2, .succeeded = 1}));
}

TEST_F(ArraysTest, RunsAtMostMaxRunningMembers) {
  engine_.offered.front().gpus = 8;
  make();
  job::JobSpec spec = array("train", "0-9");
  spec.array.max_running = 3;
  submit_array(spec);

  for (int ended = 0; ended < 10; ++ended) {
    EXPECT_EQ(engine_.running.size(), std::min(3, 10 - ended)) << ended;
    end(running().front());
  }
  EXPECT_EQ(counts("train"), MemberCounts{.succeeded = 10});
}

TEST_F(ArraysTest, StopsAfterTooManyFailures) {
  job::JobSpec spec = array("train", "0-99");
  spec.array.max_failures = 1;
  submit_array(spec);

  end("train-0", {.code = 3});
  EXPECT_FALSE(seen("train").stop_requested);
  end("train-1", {.code = 4});

  EXPECT_TRUE(seen("train").too_many_failures);
  EXPECT_EQ(counts("train").failed, 2);
  EXPECT_EQ(counts("train").queued, 0);
  end_all({.signal = 15, .stopped = true});
  EXPECT_EQ(counts("train"), (MemberCounts{.failed = 2, .stopped = 98}));
  EXPECT_EQ(seen("train").phase, Phase::kFailed);
  ASSERT_EQ(seen("train").failed.size(), 2U);
  EXPECT_EQ(seen("train").failed[1].index, 1);
  EXPECT_EQ(seen("train").failed[1].exit_code, 4);
  come_back();
  EXPECT_EQ(counts("train"), (MemberCounts{.failed = 2, .stopped = 98}));
}

TEST_F(ArraysTest, TakesTheNamesOfAllItsMembers) {
  submit_array(array("train", "0-999"));

  for (const char* name : {"train", "train-0", "train-999"}) {
    const auto taken = controller_->submit(single(name, "default", 1), "");
    ASSERT_FALSE(taken) << name;
    EXPECT_EQ(taken.error().code, ErrorCode::kConflict);
  }
  EXPECT_TRUE(controller_->submit(single("train-1000", "default", 1), ""));
  EXPECT_EQ(controller_->submit_array(array("train-7", "0-3"), "").error().code,
            ErrorCode::kConflict);
  EXPECT_EQ(controller_->submit_array(array("train", "5000"), "").error().code,
            ErrorCode::kConflict);
  submit(single("other-3", "default", 1));
  const auto clash = controller_->submit_array(array("other", "0-9"), "");
  ASSERT_FALSE(clash);
  EXPECT_EQ(clash.error().what,
            "job 'other-3' exists already, and a member of array 'other' would have its name");
}

TEST_F(ArraysTest, TheSameKeyIsTheSameArray) {
  const job::Array first = submit_array(array("train", "0-9"), "k");
  EXPECT_EQ(submit_array(array("train", "0-9"), "k").id, first.id);
  come_back();
  EXPECT_EQ(submit_array(array("train", "0-9"), "k").id, first.id);
  EXPECT_EQ(controller_->arrays().ids_of([](const ArrayFacts&) { return true; }).size(), 1U);
}

TEST_F(ArraysTest, TheSameKeyForAnotherArrayIsRefused) {
  job::JobSpec lines = array("train", "");
  lines.array.lines = {"a", "b"};
  const job::Array first = submit_array(lines, "k");
  EXPECT_EQ(submit_array(lines, "k").id, first.id);
  job::JobSpec other = lines;
  other.array.lines = {"a", "c"};

  const auto refused = controller_->submit_array(other, "k");

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  ASSERT_EQ(refused.error().faults.size(), 1U);
  EXPECT_EQ(refused.error().faults[0].field, "array.lines");
  other.array = {};
  EXPECT_EQ(controller_->submit(other, "k").error().code, ErrorCode::kConflict);
}

TEST_F(ArraysTest, IsStoppedWhileHalfOfItRuns) {
  constexpr int kMembers = 10'000;
  engine_.offered.clear();
  for (int i = 0; i < 100; ++i) {
    engine_.offered.push_back(
        {.name = "n" + std::to_string(i), .task_slots = 50, .gpus = 50, .gpu_model = "V100"});
  }
  make();
  submit_array(array("train", "0-" + std::to_string(kMembers - 1)));
  for (int i = 0; i < 300 && static_cast<int>(engine_.running.size()) < kMembers / 2; ++i) {
    settle();
  }
  EXPECT_EQ(counts("train").running, kMembers / 2);

  const auto stopped = controller_->arrays().stop(id("train"), false, {.user = "ada"});

  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->counts.queued, 0);
  EXPECT_EQ(stopped->counts.stopped, kMembers / 2);
  settle();
  for (const auto& [gang, task] : std::set(engine_.running)) {
    engine_.end_for_good(gang, task, {.signal = 15, .stopped = true});
  }
  settle();
  EXPECT_EQ(counts("train"), MemberCounts{.stopped = kMembers});
}

TEST_F(ArraysTest, EndsAMemberWithoutAJob) {
  submit_array(array("train", "0-999"));
  const auto members = controller_->arrays().jobless("train[900]");
  ASSERT_EQ(members.size(), 1U);
  EXPECT_EQ(members.front().job.phase, Phase::kQueued);
  EXPECT_EQ(members.front().job.spec.name, "train-900");

  ASSERT_TRUE(controller_->arrays().stop_jobless(members.front(), {.user = "ada"}));

  EXPECT_EQ(counts("train").stopped, 1);
  EXPECT_EQ(seen("train").failed.front().index, 900);
  come_back();
  EXPECT_EQ(counts("train").stopped, 1);
  EXPECT_EQ(controller_->arrays().jobless("train-900").front().job.phase, Phase::kStopped);
  end_all();
  EXPECT_EQ(counts("train"), (MemberCounts{.succeeded = 999, .stopped = 1}));
}

TEST_F(ArraysTest, SuspendsAndResumesAllMembers) {
  submit_array(array("train", "0-99"));

  ASSERT_TRUE(controller_->arrays().suspend(id("train"), {.user = "ada"}));
  settle();
  for (const auto& [gang, task] : std::set(engine_.running)) {
    engine_.end_for_good(gang, task, {.signal = 15, .stopped = true});
  }
  settle();
  EXPECT_TRUE(engine_.running.empty());
  EXPECT_EQ(counts("train"), MemberCounts{.queued = 100});

  ASSERT_TRUE(controller_->arrays().resume(id("train"), {.user = "ada"}));
  settle();
  EXPECT_EQ(end_all(), 100);
  EXPECT_EQ(counts("train"), MemberCounts{.succeeded = 100});
}

TEST_F(ArraysTest, AHeldArrayStartsWithResume) {
  job::JobSpec spec = array("train", "0-3");
  spec.held = true;
  submit_array(spec);
  EXPECT_TRUE(engine_.running.empty());

  ASSERT_TRUE(controller_->arrays().resume(id("train"), {}));
  settle();
  EXPECT_EQ(end_all(), 4);
}

TEST_F(ArraysTest, RunsFailedMembersAgain) {
  submit_array(array("train", "0-4"));
  end("train-0", {.code = 1});
  end("train-1");
  end("train-2", {.code = 1});
  end_all();
  EXPECT_EQ(counts("train"), (MemberCounts{.succeeded = 3, .failed = 2}));
  const std::string former = job("train-0").id;

  ASSERT_TRUE(controller_->arrays().rerun_failed(id("train"), {}, {.user = "ada"}));
  come_back();

  EXPECT_EQ(running(), (std::vector<std::string>{"train-0", "train-2"}));
  EXPECT_NE(job("train-0").id, former);
  EXPECT_EQ(controller_->jobs().with_id(former), nullptr);
  end_all();
  EXPECT_EQ(counts("train"), MemberCounts{.succeeded = 5});
  EXPECT_EQ(controller_->arrays().rerun_failed(id("train"), {}, {}).error().code,
            ErrorCode::kConflict);
}

TEST_F(ArraysTest, RunsMembersAgainAfterTooManyFailures) {
  job::JobSpec spec = array("train", "0-9");
  spec.array.max_failures = 0;
  submit_array(spec);
  end("train-0", {.code = 1});
  end_all({.signal = 15, .stopped = true});
  EXPECT_EQ(counts("train"), (MemberCounts{.failed = 1, .stopped = 9}));

  ASSERT_TRUE(controller_->arrays().rerun_failed(id("train"), {.max_failures = 5}, {}));
  settle();

  EXPECT_EQ(end_all(), 10);
  EXPECT_EQ(counts("train"), MemberCounts{.succeeded = 10});
  EXPECT_EQ(seen("train").spec.array.max_failures, 5);
}

TEST_F(ArraysTest, StaysEndedIfItIsStoppedBeforeAllItsFailedMembersRunAgain) {
  submit_array(array("train", "0-199"));
  end_all({.code = 1});
  ASSERT_TRUE(controller_->arrays().rerun_failed(id("train"), {}, {.user = "ada"}));
  settle();
  ASSERT_TRUE(controller_->arrays().stop(id("train"), false, {.user = "ada"}));
  settle();
  end_all({.signal = 15, .stopped = true});
  const auto expect_ended = [&] {
    EXPECT_TRUE(seen("train").ended);
    EXPECT_EQ(counts("train").ended(), 200);
    EXPECT_GT(counts("train").failed, 100) << "the results of members that did not run again";
  };
  expect_ended();

  ASSERT_TRUE(controller_->set_labels(job("train-150").id, {{"seen", "yes"}}));
  settle();
  expect_ended();
  ASSERT_TRUE(controller_->remove("train-150"));
  settle();
  expect_ended();
  come_back();
  expect_ended();
  ASSERT_TRUE(controller_->remove("train-151"));
  settle();
  expect_ended();
  ASSERT_TRUE(controller_->arrays().rerun_failed(id("train"), {}, {.user = "ada"}));
  settle();
  end_all();
  EXPECT_EQ(counts("train"), MemberCounts{.succeeded = 200});
}

TEST_F(ArraysTest, StaysEndedIfAnEarlierServerStoredThatStoppedMembersShallRunAgain) {
  submit_array(array("train", "0-199"));
  end_all({.code = 1});
  ASSERT_TRUE(controller_->arrays().rerun_failed(id("train"), {}, {.user = "ada"}));
  settle();
  const auto stored = store_.load();
  ASSERT_TRUE(stored);
  for (store::Object object : stored->objects) {
    if (object.kind != kArrayStateKind) continue;
    auto state = store::from_document<job::ArrayState>(object.document);
    ASSERT_TRUE(state);
    ASSERT_NE(state->results.find(kRunsAgain), std::string::npos);
    state->stop_requested = true;
    object.document = store::to_document(*state);
    ASSERT_TRUE(store_.commit({.objects = {object}}));
  }

  come_back();
  end_all({.signal = 15, .stopped = true});
  ASSERT_TRUE(controller_->remove("train-150"));
  settle();
  EXPECT_TRUE(seen("train").ended);
  come_back();
  EXPECT_TRUE(seen("train").ended);
}

TEST_F(ArraysTest, CountsTheResultOfAMemberBeyondRetention) {
  submit_array(array("train", "0-3"));
  end("train-0", {.code = 3});
  end_all();

  ASSERT_TRUE(controller_->remove("train-0"));
  ASSERT_TRUE(controller_->remove("train-1"));

  EXPECT_EQ(counts("train"), (MemberCounts{.succeeded = 3, .failed = 1}));
  come_back();
  EXPECT_EQ(counts("train"), (MemberCounts{.succeeded = 3, .failed = 1}));
  EXPECT_EQ(seen("train").failed.front().exit_code, 3);
  const auto gone = controller_->arrays().jobless("train[0]");
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_TRUE(gone.front().had_job);
  EXPECT_EQ(gone.front().job.exit_code, 3);
}

TEST_F(ArraysTest, TheNextMemberFollowsAfterAFullDiskWithoutAnotherEvent) {
  job::JobSpec spec = array("train", "0-1");
  spec.array.max_running = 1;
  submit_array(spec);
  store_.full = true;
  end("train-0");
  store_.full = false;

  wait_until([&] { return running() == std::vector<std::string>{"train-1"}; });
}

TEST_F(ArraysTest, AMemberWhoseFormerJobCouldNotBeRemovedRunsAgainLater) {
  submit_array(array("train", "0-1"));
  end_all({.code = 1});
  ASSERT_TRUE(controller_->arrays().rerun_failed(id("train"), {}, {}));
  store_.full = true;
  settle();
  EXPECT_EQ(counts("train"), MemberCounts{.queued = 2});
  store_.full = false;
  wait_until([&] { return counts("train").running == 2; });

  come_back();
  end_all();

  EXPECT_EQ(counts("train"), MemberCounts{.succeeded = 2});
}

TEST_F(ArraysTest, AChangeThatIsCommittedLaterIsInTheAuditLog) {
  submit_array(array("train", "0-9"));
  store_.full = true;
  const auto suspended = controller_->arrays().suspend(id("train"), {.user = "ada"});
  ASSERT_FALSE(suspended);
  EXPECT_TRUE(suspended.error().what.starts_with("the change of array 'train' takes effect, but"))
      << suspended.error().what;
  store_.full = false;
  wait_until([&] { return store_.audit({.action = "array.suspend"})->size() == 1U; });
  come_back();
  EXPECT_TRUE(seen("train").suspended);
}

TEST_F(ArraysTest, AnArrayWhoseRemovalFailedIsStillThere) {
  submit_array(array("train", "0-3"));
  end_all();
  store_.full = true;
  EXPECT_FALSE(controller_->arrays().remove(id("train"), {.user = "ada"}));
  EXPECT_EQ(counts("train"), MemberCounts{.succeeded = 4});
  store_.full = false;
  ASSERT_TRUE(controller_->arrays().remove(id("train"), {.user = "ada"}));
  settle();
  EXPECT_TRUE(controller_->arrays().named("train").empty());
  EXPECT_FALSE(controller_->jobs().find("train-0"));
}

TEST_F(ArraysTest, WaitsMemberByMemberForAnArrayWithTheSameIndexes) {
  engine_.offered.front().gpus = 8;
  make();
  submit_array(array("prep", "0-2"));
  job::JobSpec spec = array("train", "0-3");
  spec.after = {{.job = "prep", .by_member = true}};

  const auto refused = controller_->submit_array(spec, "", {.user = "ada"});

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  ASSERT_EQ(refused.error().faults.size(), 1U);
  EXPECT_EQ(refused.error().faults[0].what,
            "array 'prep' has no member 3, for which train[3] would wait");
  EXPECT_FALSE(controller_->forecast(spec));
  spec.array.indexes = "0-2";
  submit_array(spec);
  end("prep-1");
  end("prep-0", {.code = 1});
  EXPECT_EQ(running(), (std::vector<std::string>{"prep-2", "train-1"}));
  EXPECT_EQ(job("train-0").phase, Phase::kFailed);
}

TEST_F(ArraysTest, WaitsMemberByMemberAfterARestart) {
  submit_array(array("prep", "0-1"));
  job::JobSpec spec = array("train", "0-1");
  spec.after = {{.job = "prep", .by_member = true}};
  submit_array(spec);

  come_back();
  end("prep-1");

  EXPECT_EQ(running(), (std::vector<std::string>{"prep-0", "train-1"}));
}

TEST_F(ArraysTest, WaitsForAMemberThatHasNoJobYet) {
  submit_array(array("prep", "0-199"));
  ASSERT_FALSE(controller_->jobs().find("prep-150"));
  job::JobSpec spec = array("train", "0-1", 0);
  spec.after = {{.job = "prep-150"}};

  submit_array(spec);

  EXPECT_EQ(counts("train"), MemberCounts{.queued = 2});
}

TEST_F(ArraysTest, WaitsMemberByMemberOnlyForArraysAndOnlyAsAnArray) {
  make();
  submit(single("prep-0", "default", 0));
  job::JobSpec spec = array("train", "0-1");
  spec.after = {{.job = "prep", .by_member = true}};

  const auto refused = controller_->submit_array(spec, "", {.user = "ada"});

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  ASSERT_EQ(refused.error().faults.size(), 1U);
  EXPECT_EQ(refused.error().faults[0].field, "after[0].job");
  EXPECT_EQ(refused.error().faults[0].what, "project 'default' has no array 'prep'");

  job::JobSpec alone = single("alone", "default", 0);
  alone.after = {{.job = "prep-0", .by_member = true}};
  const auto invalid = controller_->submit(alone, "");
  ASSERT_FALSE(invalid);
  EXPECT_EQ(invalid.error().code, ErrorCode::kInvalid);
  ASSERT_EQ(invalid.error().faults.size(), 1U);
  EXPECT_EQ(invalid.error().faults[0].field, "after[0].by_member");
  alone.after[0].by_member = false;
  EXPECT_TRUE(controller_->submit(alone, ""));
}

TEST_F(ArraysTest, AMemberWhoseSiblingWasDeletedEndsWithThatReason) {
  submit_array(array("prep", "0-99", 0));
  job::JobSpec spec = array("train", "0-99", 0);
  spec.after = {{.job = "prep", .by_member = true}};
  spec.array.max_running = 1;
  submit_array(spec);
  while (counts("prep").ended() < 100) end("prep-" + std::to_string(counts("prep").ended()));

  ASSERT_TRUE(controller_->arrays().remove(id("prep"), {.user = "ada"}));
  for (int turn = 0; turn < 200 && counts("train").ended() < 100; ++turn) {
    settle();
    end_all();
  }

  ASSERT_EQ(counts("train").ended(), 100);
  EXPECT_GT(counts("train").failed, 0);
  const auto& cause = job("train-99").failure->cause;
  ASSERT_TRUE(std::holds_alternative<job::DependencyUnmet>(cause));
  EXPECT_EQ(std::get<job::DependencyUnmet>(cause).awaited.job.name, "prep-99");
}

TEST_F(ArraysTest, AProjectWithAnArrayThatHasNotEndedIsNotDeleted) {
  add(project_of("lab", 2));
  job::JobSpec spec = array("train", "0-3");
  spec.project = "lab";
  spec.held = true;
  submit_array(spec);
  const auto refused = controller_->projects().remove("lab");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("it has 1 array or sweep that has not ended"),
            std::string::npos)
      << refused.error().what;
}

TEST_F(ArraysTest, ReportsItsEndOnce) {
  submit_array(array("train", "0-3"));
  end("train-0", {.code = 3});
  end_all();
  come_back();

  ASSERT_EQ(store_.ends.size(), 1U);
  EXPECT_EQ(store_.ends[0].name, "train");
  EXPECT_EQ(store_.ends[0].phase, Phase::kFailed);
  EXPECT_EQ(store_.ends[0].counts,
            (std::map<std::string, int>{
                {"members", 4}, {"succeeded", 3}, {"failed", 1}, {"stopped", 0}}));
  ASSERT_TRUE(controller_->arrays().rerun_failed(id("train"), {}, {.user = "ada"}));
  settle();
  end_all();
  ASSERT_EQ(store_.ends.size(), 2U);
  EXPECT_EQ(store_.ends[1].phase, Phase::kSucceeded);
}

TEST(TreesOf, AreTheUploadedFilesOfTheVolumes) {
  const job::JobSpec spec{
      .name = "train",
      .project = "lab",
      .volumes = {{.kind = job::Volume::Kind::kTree, .source = "t1", .target = "/data"},
                  {.kind = job::Volume::Kind::kTree, .source = "", .target = "/empty"},
                  {.kind = job::Volume::Kind::kStorage, .source = "s1", .target = "/store"}}};
  EXPECT_EQ(trees_of(spec), (FileTrees{{"lab", "t1"}}));
}

TEST_F(ArraysTest, IsRemovedByTheRulesOfRetentionWithItsJobs) {
  job::JobSpec spec = array("train", "0-3");
  spec.keep_for = std::chrono::hours(1);
  submit_array(spec);
  clock_.advance(std::chrono::hours(2));
  settle();
  EXPECT_EQ(counts("train").all(), 4);
  end_all();
  EXPECT_EQ(counts("train").succeeded, 4);

  clock_.advance(std::chrono::hours(2));
  come_back();
  settle();

  EXPECT_TRUE(controller_->arrays().named("train").empty());
  EXPECT_TRUE(controller_->jobs().list().empty());
  EXPECT_TRUE(store_.load()->objects.empty());
}

TEST_F(ArraysTest, OfTooManyEndedArraysTheOldestIsRemoved) {
  controller_->set_retention({.keep_jobs = 2});
  for (const char* const name : {"one", "two", "three"}) {
    submit_array(array(name, "0-3"));
    end_all();
    clock_.advance(std::chrono::seconds(1));
    settle();
  }
  EXPECT_TRUE(controller_->arrays().named("one").empty());
  EXPECT_EQ(counts("two").succeeded, 4);
  EXPECT_EQ(counts("three").succeeded, 4);
  EXPECT_EQ(controller_->jobs().list().size(), 2U);
}

TEST_F(ArraysTest, IsRemovedWithAllItsJobs) {
  submit_array(array("train", "0-199", 0));
  EXPECT_EQ(controller_->arrays().remove(id("train"), {}).error().code, ErrorCode::kConflict);
  end_all();

  ASSERT_TRUE(controller_->arrays().remove(id("train"), {.user = "ada"}));
  EXPECT_TRUE(controller_->arrays().named("train").empty());
  come_back();  // in the middle of it

  EXPECT_TRUE(controller_->jobs().list().empty());
  EXPECT_TRUE(store_.load()->objects.empty());
  submit_array(array("train", "0-3"));
}

TEST_F(ArraysTest, AServerKilledAtAnyCommitNeitherLosesNorDoublesAMember) {
  for (int commit = 1; commit < 40; ++commit) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE(std::to_string(commit) + (after ? " after" : " before"));
      store_ = MortalStore();
      engine_.running.clear();
      engine_.plans.clear();
      engine_.ends.clear();
      live_again();
      (after ? store_.dies_after : store_.dies_before) = commit;
      int starts = 0;
      const auto live = [&] {
        job::JobSpec spec = array("train", "0-9");
        spec.array.max_running = 2;
        if (controller_->arrays().named("train").empty()) submit_array(spec, "k");
        starts += end_all();
      };
      try {
        live();
      } catch (const Crash&) {
        store_.dies_before = store_.dies_after = 0;
        live_again();
        ASSERT_TRUE(controller_->recover());
        settle();
        live();
      }
      EXPECT_EQ(counts("train"), MemberCounts{.succeeded = 10});
      EXPECT_EQ(controller_->jobs().list().size(), 10U);
      EXPECT_EQ(engine_.ends.size(), 10U);  // each member ran once
    }
  }
}

}  // namespace
}  // namespace muster::control
