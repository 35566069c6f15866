// Records of the store that cannot be read.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "control/held_sweep.h"
#include "control/sweeps.h"
#include "control/test_cluster.h"
#include "store/records.h"
#include "words/sentence.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using base::ErrorCode;
using job::Phase;

template <class T>
Result<void> without_value(const Result<T>& result) {
  return result ? Result<void>() : Result<void>(result.error());
}

class UnreadableJobs : public Scheduling {
 protected:
  void come_back() {
    live_again();
    const auto recovered = controller_->recover();
    ASSERT_TRUE(recovered) << recovered.error().to_string();
    settle();
  }

  void store_as_being_removed(const std::string& sweep) {
    const store::Contents stored = *store_.load();
    for (store::Object object : stored.objects) {
      if (object.kind != kSweepProgressKind || object.id != sweep) continue;
      auto progress = store::from_document<sweep::SweepProgress>(object.document);
      ASSERT_TRUE(progress);
      progress->removing = true;
      object.document = store::to_document(*progress);
      ASSERT_TRUE(store_.commit({.objects = {object}}));
    }
  }

  std::set<std::string> stored_sweeps() {
    std::set<std::string> ids;
    const store::Contents stored = *store_.load();
    for (const store::Object& object : stored.objects) {
      if (object.kind == kSweepKind) ids.insert(object.id);
    }
    return ids;
  }
};

TEST_F(UnreadableJobs, AreShownWithTheCommandAndTheOthersRunOn) {
  submit(single("first", "default", 0));
  submit(single("broken", "default", 0));
  submit(single("last", "default", 0));
  store_.unreadable = {"broken"};

  come_back();

  EXPECT_EQ(job("first").phase, Phase::kRunning);
  EXPECT_EQ(job("last").phase, Phase::kRunning);
  EXPECT_FALSE(job("first").unreadable);
  EXPECT_TRUE(job("broken").unreadable);
  EXPECT_EQ(job("broken").reason, "cannot be read: its checksum differs");
  EXPECT_NE(
      words::details(job("broken").reason).front().find("`muster store set-aside default/broken`"),
      std::string::npos);
  std::vector<std::string> names;
  controller_->jobs().each_job(false, std::nullopt, [&](const job::JobFacts& each) {
    names.emplace_back(each.name);
    return true;
  });
  EXPECT_EQ(names, (std::vector<std::string>{"first", "broken", "last"}));
}

TEST_F(UnreadableJobs, AreChangedByNothing) {
  submit(single("broken", "default", 0));
  end("broken");
  store_.unreadable = {"broken"};
  come_back();
  const int commits = store_.commits;

  const std::pair<const char*, Result<void>> refusals[] = {
      {"stop", without_value(controller_->stop("broken", true))},
      {"suspend", without_value(controller_->suspend("broken"))},
      {"resume", without_value(controller_->resume("broken"))},
      {"label", without_value(controller_->set_labels("broken", {{"a", "b"}}))},
      {"remove", controller_->remove("broken")},
      {"exec", without_value(controller_->exec("broken", "", {}, {}))},
      {"attach", without_value(controller_->attach("broken", "", {}))}};

  for (const auto& [what, refusal] : refusals) {
    ASSERT_FALSE(refusal) << what;
    EXPECT_EQ(refusal.error().code, ErrorCode::kConflict) << what;
    EXPECT_NE(refusal.error().to_string().find("muster store set-aside default/broken"),
              std::string::npos)
        << what << ": " << refusal.error().to_string();
  }
  ASSERT_TRUE(controller_->nodes().drain("n1"));
  engine_.set_nodes({{.name = "n2", .pool = "other", .task_slots = 100, .gpus = 2}});
  settle();
  EXPECT_TRUE(job("broken").unreadable);
  EXPECT_EQ(store_.commits, commits + 1) << "the drained node alone";
}

TEST_F(UnreadableJobs, KeepTheGpusOfTheirTasksUntilTheseHaveEnded) {
  submit(single("broken", "default", 2));
  submit(single("next", "default", 1));
  store_.unreadable = {"broken"};

  come_back();

  EXPECT_EQ(job("next").phase, Phase::kQueued);
  EXPECT_EQ(
      words::details(job("broken").reason).back(),
      "these of its tasks still run, and keep their GPUs: main; muster stop broken ends them");
  ASSERT_TRUE(controller_->stop("broken", true));
  settle();
  EXPECT_EQ(job("next").phase, Phase::kRunning);
  EXPECT_EQ(words::details(job("broken").reason).back(), "none of its tasks runs");
  EXPECT_EQ(controller_->stop("broken", true).error().code, ErrorCode::kConflict);
}

// As after the restore of a backup that is older than the job.
TEST_F(UnreadableJobs, AreThoseThatRunWithoutARecordToo) {
  submit(single("orphan", "default", 2));
  const std::string id = job("orphan").id;
  ASSERT_TRUE(store_.commit({.removed_jobs = {id}}));

  come_back();
  submit(single("next", "default", 1));
  settle();

  EXPECT_TRUE(job(id).unreadable);
  EXPECT_EQ(job(id).reason, "runs without a record in the database");
  EXPECT_EQ(job("next").phase, Phase::kQueued) << "its GPUs are in use";
  ASSERT_TRUE(controller_->stop(id, true));
  settle();
  EXPECT_EQ(job("next").phase, Phase::kRunning);
}

TEST_F(UnreadableJobs, AServerStartsOnlyIfItCanTakeOverTheRunningJobs) {
  submit(single("runs", "default", 0));
  submit(single("ended", "default", 0));
  submit(single("waits", "default", 2));
  submit(single("waits-too", "default", 2));
  end("ended");
  controller_ = nullptr;
  std::vector<std::string> asked;
  Controller refused(
      {.loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
      {.check_running = [&](const std::vector<const job::Job*>& running) {
        for (const job::Job* job : running) asked.push_back(job->spec.name);
        return Result<void>(base::Error{.what = "no trace"});
      }});

  const auto recovered = refused.recover();

  ASSERT_FALSE(recovered);
  EXPECT_EQ(recovered.error().what, "no trace");
  EXPECT_EQ(asked, (std::vector<std::string>{"runs", "waits"}));
}

TEST_F(UnreadableJobs, AServerStartsOnlyIfTheEngineCouldListWhatAnEarlierServerHasLeft) {
  submit(single("runs", "default", 0));
  controller_ = nullptr;
  engine_.found_error = base::Error{.what = "cannot list 'job/1'"};
  Controller refused(
      {.loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
      SiteFacts{});

  const auto recovered = refused.recover();

  ASSERT_FALSE(recovered);
  EXPECT_EQ(recovered.error().what, "cannot list 'job/1'");
}

// As after a start with another folder of jobs, in which the job counted as lost.
TEST_F(UnreadableJobs, TasksOfAJobThatHasEndedAreEndedAndKeepTheirGpusUntilThen) {
  submit(single("ended", "default", 2));
  submit(single("runs", "default", 0));
  const engine::GangId left = gang("ended");
  end("ended", {.code = 1});
  engine_.running.insert({left, "main"});
  engine_.stops_obey = false;
  engine_.calls.clear();

  come_back();

  const auto was_called = [&](const std::string& call) {
    return std::count(
               engine_.calls.begin(), engine_.calls.end(),
               call + " " + left.job_id + "/1" + (call == "stop" ? " main gracefully" : "")) == 1;
  };
  EXPECT_TRUE(was_called("stop"));
  EXPECT_EQ(job("ended").phase, Phase::kFailed);
  EXPECT_EQ(job("runs").phase, Phase::kRunning);
  EXPECT_TRUE(engine_.running.contains({gang("runs"), "main"}));
  submit(single("next", "default", 1));
  EXPECT_EQ(job("next").phase, Phase::kQueued) << "its GPUs are in use";
  EXPECT_EQ(controller_->remove("ended").error().code, ErrorCode::kConflict);
  ASSERT_TRUE(controller_->stop("ended", true));

  engine_.end(left, "main", {.signal = 15, .stopped = true});
  settle();

  EXPECT_TRUE(was_called("scrub"));
  EXPECT_EQ(job("next").phase, Phase::kRunning);
  EXPECT_TRUE(controller_->remove("ended"));
}

TEST_F(UnreadableJobs, RetentionRemovesNoJobWhoseTasksStillRun) {
  submit(single("ended", "default", 2));
  const engine::GangId left = gang("ended");
  end("ended", {.code = 1});
  engine_.running.insert({left, "main"});
  engine_.stops_obey = false;
  come_back();
  submit(single("next", "default", 1));

  controller_->set_retention({.keep_jobs = 0});
  settle();
  EXPECT_TRUE(controller_->jobs().find("ended"));

  engine_.end(left, "main", {.signal = 15, .stopped = true});
  settle();
  EXPECT_EQ(job("next").phase, Phase::kRunning);
  controller_->set_retention({.keep_jobs = 0});
  settle();
  EXPECT_FALSE(controller_->jobs().find("ended"));
}

TEST_F(UnreadableJobs, AnArrayIsNeitherRemovedNorRunAgainWhileTasksOfItsMembersStillRun) {
  job::JobSpec spec = single("array", "default", 2);
  spec.array.indexes = "0";
  const auto array = controller_->submit_array(spec, "", {.user = "ada"});
  ASSERT_TRUE(array);
  settle();
  const engine::GangId left = gang("array-0");
  end("array-0", {.code = 1});
  engine_.running.insert({left, "main"});
  engine_.stops_obey = false;
  come_back();

  controller_->set_retention({.keep_jobs = 0});
  settle();
  const auto removed = controller_->arrays().remove(array->id, {.user = "ada"});
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, ErrorCode::kConflict);
  controller_->set_retention({});
  ASSERT_TRUE(controller_->arrays().rerun_failed(array->id, {}, {.user = "ada"}));
  settle();
  EXPECT_EQ(job("array-0").id, left.job_id);

  engine_.end(left, "main", {.signal = 15, .stopped = true});
  settle();
  EXPECT_NE(job("array-0").id, left.job_id);
  EXPECT_EQ(job("array-0").phase, Phase::kRunning);
}

TEST_F(UnreadableJobs, OnlyTheMemberWhoseTasksStillRunWaitsWhenAnArrayRunsAgain) {
  job::JobSpec spec = single("array", "default", 1);
  spec.array.indexes = "0-1";
  const auto array = controller_->submit_array(spec, "", {.user = "ada"});
  ASSERT_TRUE(array);
  settle();
  const engine::GangId left = gang("array-0");
  const std::string other = job("array-1").id;
  end("array-0", {.code = 1});
  end("array-1", {.code = 1});
  engine_.running.insert({left, "main"});
  engine_.stops_obey = false;
  come_back();

  ASSERT_TRUE(controller_->arrays().rerun_failed(array->id, {}, {.user = "ada"}));
  settle();
  EXPECT_EQ(job("array-0").id, left.job_id);
  EXPECT_NE(job("array-1").id, other);
  EXPECT_EQ(job("array-1").phase, Phase::kRunning);

  engine_.end(left, "main", {.signal = 15, .stopped = true});
  settle();
  EXPECT_NE(job("array-0").id, left.job_id);
  EXPECT_EQ(job("array-0").phase, Phase::kRunning);
}

TEST_F(UnreadableJobs, RetentionRemovesAJobWhoseRerunStillHasTasks) {
  submit(single("first", "default", 1));
  end("first", {.code = 1});
  const job::JobOrigin origin{
      .kind = job::JobOrigin::Kind::kRerun, .name = "first", .id = job("first").id};
  ASSERT_TRUE(
      controller_->submit(single("again", "default", 1), "", {.user = "ada"}, {.origin = origin}));
  settle();
  const engine::GangId left = gang("again");
  end("again", {.code = 1});
  engine_.running.insert({left, "main"});
  engine_.stops_obey = false;
  come_back();

  controller_->set_retention({.keep_jobs = 0});
  settle();

  EXPECT_FALSE(controller_->jobs().find("first"));
  EXPECT_TRUE(controller_->jobs().find("again"));
}

/// A sweep with one trial.
sweep::SweepSpec sweep_of_one(const std::string& name) {
  return {.job = {.name = name, .command = {"train", "{x}"}, .folder = "/"},
          .parameters = {{"x", {.low = 0, .high = 1}}},
          .method = sweep::Method::kRandom,
          .metric = "accuracy",
          .max_trials = 1};
}

// As after a server that was killed while it deleted a sweep.
TEST_F(UnreadableJobs, ADeletedSweepWhoseTasksStillRunDoesNotDelayTheOthers) {
  std::vector<std::string> ids;
  for (const char* const name : {"a", "b"}) {
    const auto sweep = controller_->sweeps().create(sweep_of_one(name), {.user = "ada"});
    ASSERT_TRUE(sweep) << sweep.error().to_string();
    ids.push_back(sweep->summary.id);
    settle();
    ASSERT_TRUE(controller_->sweeps().stop(ids.back(), {.user = "ada"}));
    settle();
  }
  // The first by its id is the first to be removed.
  const std::string waits = *std::min_element(ids.begin(), ids.end());
  const std::string goes = *std::max_element(ids.begin(), ids.end());
  const engine::GangId left = gang(waits == ids.front() ? "a-1" : "b-1");
  store_as_being_removed(waits);
  engine_.running.insert({left, "main"});
  engine_.stops_obey = false;
  come_back();

  ASSERT_TRUE(controller_->sweeps().remove(goes, {.user = "ada"}));
  settle();
  EXPECT_EQ(stored_sweeps(), std::set<std::string>{waits});
  EXPECT_FALSE(controller_->jobs().find(waits == ids.front() ? "b-1" : "a-1"));
  EXPECT_TRUE(controller_->jobs().find(left.job_id));

  engine_.end(left, "main", {.signal = 15, .stopped = true});
  come_back();
  EXPECT_EQ(stored_sweeps(), std::set<std::string>{});
  EXPECT_FALSE(controller_->jobs().find(left.job_id));
}

TEST_F(UnreadableJobs, ASweepIsNotRemovedWhileTasksOfItsTrialsStillRun) {
  const auto sweep = controller_->sweeps().create(sweep_of_one("lr"), {.user = "ada"});
  ASSERT_TRUE(sweep) << sweep.error().to_string();
  settle();
  const std::string& id = sweep->summary.id;
  ASSERT_TRUE(controller_->sweeps().stop(id, {.user = "ada"}));
  settle();
  const engine::GangId left = gang("lr-1");
  engine_.running.insert({left, "main"});
  engine_.stops_obey = false;
  come_back();

  const auto removed = controller_->sweeps().remove(id, {.user = "ada"});
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, ErrorCode::kConflict);

  engine_.end(left, "main", {.signal = 15, .stopped = true});
  settle();
  EXPECT_TRUE(controller_->sweeps().remove(id, {.user = "ada"}));
}

TEST_F(UnreadableJobs, KeepTheirNamesAndTheServerHere) {
  submit(single("broken", "default", 0));
  store_.unreadable = {"broken"};
  come_back();

  EXPECT_EQ(controller_->submit(single("broken", "default", 0), "").error().code,
            ErrorCode::kConflict);
  EXPECT_FALSE(controller_->idle()) << "its tasks may run";
  EXPECT_TRUE(controller_->has_unreadable_jobs());
  EXPECT_TRUE(controller_->queue().empty());
}

// The quota of its jobs is unknown: they would start beyond it.
TEST_F(UnreadableJobs, AProjectThatCannotBeReadKeepsTheServerFromStarting) {
  store_.unreadable_project = "team-a";
  live_again();

  const auto recovered = controller_->recover();

  ASSERT_FALSE(recovered);
  EXPECT_NE(recovered.error().to_string().find("muster store set-aside project:team-a"),
            std::string::npos)
      << recovered.error().to_string();
}

using UnreadableInAllocations = Allocations;

// The tasks of an unreadable job may run in its allocation.
TEST_F(UnreadableInAllocations, KeepTheirAllocationUntilTheyAreSetAside) {
  submit(single("broken", "default", 1));
  give("broken");
  const engine::GangId of = gang("broken");
  store_.unreadable = {"broken"};
  engine_.reports_running = false;
  come_back();
  engine_.calls.clear();

  report(of, engine::AllocationGranted{.places = {}, .slurm_job = 17});

  EXPECT_FALSE(was_given_back(of));
  EXPECT_TRUE(engine_.running.contains({of, "main"}));
}

}  // namespace
}  // namespace muster::control
