// Events that coincide: a node is lost during a start, a gang is drained while it shrinks, the disk
// is full.
#include "control/test_parts.h"

namespace muster::control {
namespace {

using base::ErrorCode;
using job::JobSpec;
using job::Phase;

class Mishaps : public Scheduling {
 protected:
  static engine::Node node(const std::string& name, int gpus, const std::string& pool = "default") {
    return {.name = name, .pool = pool, .task_slots = 100, .gpus = gpus, .gpu_model = "V100"};
  }

  void lose_machine(const std::string& name) {
    auto left = engine_.offered;
    std::erase_if(left, [&](const engine::Node& one) { return one.name == name; });
    engine_.set_nodes(left);
  }

  static JobSpec elastic(const std::string& name, const std::string& project, int workers) {
    JobSpec spec = mpi(name, project, workers);
    spec.scheduling.min_workers = 1;
    return spec;
  }

  /// `dist` of team-b with two workers, one of which has to be evicted for `owner`.
  void make_a_gang_that_shrinks() {
    add(project_of("team-a", 1));
    add(project_of("team-b", 1));
    submit(elastic("dist", "team-b", 2));
    ASSERT_EQ(job("dist").phase, Phase::kRunning);
    engine_.stops_obey = false;
    submit(single("owner", "team-a", 1));
    ASSERT_TRUE(job("dist").eviction);
    engine_.stops_obey = true;
  }

  /// Ends the tasks that the controller stopped while the engine held their ends back.
  void let_stopped_tasks_end(const std::string& name) {
    const auto of = gang(name);
    const auto tasks =
        job(name).tasks;  // a copy: the job has new tasks once the last one has ended
    for (const job::Task& task : tasks) {
      if (engine_.running.count({of, task.name}) == 0) continue;
      engine_.end_for_good(of, task.name, {.signal = 15, .stopped = true});
    }
    settle();
  }

  /// Another server, to which the cluster reports its nodes after the jobs were recovered.
  void come_back_before_the_nodes() {
    const auto machines = std::exchange(engine_.offered, {});
    live_again();
    ASSERT_TRUE(controller_->recover());
    settle();
    engine_.set_nodes(machines);
    settle();
  }

  size_t tasks_of(const std::string& name) {
    const auto of = gang(name);
    return static_cast<size_t>(std::count_if(engine_.running.begin(), engine_.running.end(),
                                             [&](const auto& task) { return task.first == of; }));
  }
};

TEST_F(Mishaps, ANodeLostBeforeTheEngineHasReportedThatTheTasksStartedIsALoss) {
  ASSERT_TRUE(controller_->submit(single("one", "default", 2), ""));
  // After it has been placed and given to the engine, and before the engine has answered.
  loop_.post([this] {
    EXPECT_EQ(job("one").phase, Phase::kStarting);
    engine_.running.clear();
    lose_machine("n1");
  });
  settle();
  EXPECT_EQ(job("one").phase, Phase::kFailed);
}

TEST_F(Mishaps, AServerKilledBeforeAStopIsStoredHasStoppedNothing) {
  submit(single("one", "default", 1));
  store_.dies_before = store_.commits + 1;
  EXPECT_THROW((void)controller_->stop("one", false), Crash);
  EXPECT_TRUE(std::none_of(engine_.calls.begin(), engine_.calls.end(),
                           [](const auto& call) { return call.starts_with("stop"); }));
}

TEST_F(Mishaps, AStopThatIsStoredLateIsInTheAuditLog) {
  submit(single("one", "default", 1));
  store_.full = true;
  const auto stopped = controller_->stop("one", false, {.user = "ada"});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(stopped.error().what,
            "job 'one' is being stopped, but the server could not store this yet: the disk is full")
      << "it was not refused";
  EXPECT_EQ(stopped.error().advice, "the server keeps this change and stores it as soon as it can");
  settle();
  EXPECT_EQ(job("one").phase, Phase::kStopped) << "a full disk keeps no job running";
  store_.full = false;
  ASSERT_TRUE(controller_->set_labels("one", {{"any", "change"}}));
  const auto records = store_.audit({.action = "job.stop"});
  ASSERT_TRUE(records && records->size() == 1U);
  EXPECT_EQ(records->front().actor.user, "ada");
}

TEST_F(Mishaps, AJobThatEndedWhileNoServerRanEndedAtTheEndOfItsTasks) {
  submit(single("one", "default", 2));
  const base::Time started = *job("one").started;
  const engine::GangId one = gang("one");
  for (const auto& [reported, noted] :
       {std::pair{started + std::chrono::seconds(2), started + std::chrono::seconds(2)},
        {started - std::chrono::seconds(2), started},
        {started + std::chrono::hours(9), started + std::chrono::hours(8)}}) {
    live_again();
    store_.full = true;  // each time anew
    clock_.advance(std::chrono::hours(8) - (clock_.now() - started));
    ASSERT_TRUE(controller_->recover());

    engine_.end(one, "main", {}, reported);
    settle();

    EXPECT_EQ(job("one").phase, Phase::kSucceeded);
    EXPECT_EQ(job("one").ended, noted);
    const job::RunSpan run = job::run_spans(job("one")).back();
    EXPECT_EQ(run.end, std::max(run.begin, noted)) << "the time for which its use is counted";
    engine_.running.insert({one, "main"});
  }
}

TEST_F(Mishaps, AJobThatIsStoppedBeforeItHadTasksEndsNow) {
  submit(single("one", "default", 2));
  submit(single("two", "default", 2));
  clock_.advance(std::chrono::hours(1));
  ASSERT_TRUE(controller_->stop("two", false));
  EXPECT_EQ(job("two").ended, clock_.now());
}

TEST_F(Mishaps, JobsOfAProjectAreSeenIfTheClockIsSetBackAfterItsCreation) {
  clock_.advance(std::chrono::hours(2));
  add(project_of("lab", 2));
  clock_.advance(std::chrono::hours(-1));
  submit(single("first", "lab", 1));
  EXPECT_TRUE(controller_->projects().has_project_of(job::facts_of(job("first"))));

  live_again();
  ASSERT_TRUE(controller_->recover());
  submit(single("second", "lab", 1));
  EXPECT_TRUE(controller_->projects().has_project_of(job::facts_of(job("second"))));
}

TEST_F(Mishaps, ADrainedNodeIsLeftByAGangThatWasOnlyToShrink) {
  make_a_gang_that_shrinks();
  ASSERT_TRUE(controller_->nodes().drain("n1"));
  let_stopped_tasks_end("dist");
  EXPECT_EQ(job("dist").phase, Phase::kQueued);
  EXPECT_TRUE(engine_.tasks_on("n1").empty());
}

TEST_F(Mishaps, AGangThatShrinksKeepsNoPlaceOnANodeThatWasLostAndCameBack) {
  make_a_gang_that_shrinks();
  const auto machines = engine_.offered;
  engine_.running.clear();
  lose_machine("n1");
  engine_.set_nodes(machines);
  settle();
  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_NE(job("dist").phase, Phase::kStarting);
  const auto view = controller_->nodes().find("n1");
  ASSERT_TRUE(view);
  for (const job::Device& device : view->devices) EXPECT_GE(device.free_milli, 0);
}

TEST_F(Mishaps, AnElasticGangThatWasDrainedAsksForAllItsWorkersAgain) {
  submit(elastic("dist", "default", 4));
  ASSERT_EQ(tasks_of("dist"), 3U);
  engine_.set_nodes({node("n1", 2), node("n2", 4)});
  settle();
  ASSERT_TRUE(controller_->nodes().drain("n1"));
  settle();
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(tasks_of("dist"), 5U);
}

TEST_F(Mishaps, AnElasticGangThatIsResumedBeforeItHasEndedRequestsAllItsWorkersAgain) {
  submit(elastic("dist", "default", 4));
  engine_.stops_obey = false;
  ASSERT_TRUE(controller_->suspend("dist"));
  ASSERT_TRUE(controller_->resume("dist"));
  engine_.set_nodes({node("n1", 2), node("n2", 4)});
  engine_.stops_obey = true;
  let_stopped_tasks_end("dist");
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(tasks_of("dist"), 5U);
}

TEST_F(Mishaps, AJobThatFailedBeforeItWasEvictedHasFailed) {
  add(project_of("team-a", 2));
  add(project_of("team-b", 0));
  submit(mpi("dist", "team-b", 2));
  engine_.stops_obey = false;
  engine_.end_for_good(gang("dist"), "worker-1", {.code = 3});
  submit(single("owner", "team-a", 2));
  EXPECT_FALSE(job("dist").eviction) << "it is about to release its resources";
  ASSERT_TRUE(controller_->nodes().drain("n1"));
  ASSERT_TRUE(job("dist").eviction);
  ASSERT_TRUE(controller_->nodes().uncordon("n1"));
  let_stopped_tasks_end("dist");
  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  EXPECT_EQ(job("dist").failure->task, "worker-1");
  EXPECT_EQ(job("owner").phase, Phase::kRunning);
}

TEST_F(Mishaps, AVictimWhoseNodeIsLostStartsAgain) {
  engine_.set_nodes({node("n1", 2), node("n2", 2)});
  submit(single("one", "default", 2));
  const std::string first = job("one").tasks[0].node;
  engine_.stops_obey = false;
  ASSERT_TRUE(controller_->nodes().drain(first));
  engine_.running.clear();
  lose_machine(first);
  settle();
  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_NE(job("one").tasks[0].node, first);
}

// --- a server that is restarted on a cluster

TEST_F(Mishaps, AJobHoldsItsPlaceUnderAServerToWhichItsNodeIsReportedLater) {
  submit(single("one", "default", 2));
  submit(single("two", "default", 2));
  ASSERT_EQ(job("one").phase, Phase::kRunning);

  come_back_before_the_nodes();

  EXPECT_EQ(job("two").phase, Phase::kQueued);
  const auto view = controller_->nodes().find("n1");
  ASSERT_TRUE(view);
  for (const job::Device& device : view->devices) EXPECT_EQ(device.free_milli, 0);
  end("one");
  EXPECT_EQ(job("two").phase, Phase::kRunning);
}

TEST_F(Mishaps, AJobCountsInItsPoolUnderAServerToWhichItsNodeIsReportedLater) {
  job::Project lab = project_of("lab", 2);
  lab.quota.limit.gpu_milli = 2000;
  add(lab);
  engine_.set_nodes({node("n1", 4, "second")});
  settle();
  submit(single("one", "lab", 2));
  ASSERT_EQ(job("one").phase, Phase::kRunning);

  come_back_before_the_nodes();

  submit(single("two", "lab", 2));
  EXPECT_EQ(job("two").phase, Phase::kQueued) << "the project is at its limit";
  end("one");
  EXPECT_EQ(job("two").phase, Phase::kRunning);
}

TEST_F(Mishaps, AnEvictionOnASilentNodeDelaysNoOtherEvictionAfterARestart) {
  engine_.set_nodes({node("n1", 2), node("n2", 2)});
  add(project_of("team-a", 4));
  add(project_of("team-b", 0));
  submit(single("guest-1", "team-b", 2));
  submit(single("guest-2", "team-b", 2));
  engine_.stops_obey = false;
  submit(single("owner", "team-a", 2));
  const bool is_first = job("guest-1").eviction.has_value();
  const std::string victim = is_first ? "guest-1" : "guest-2";
  const std::string other = is_first ? "guest-2" : "guest-1";
  ASSERT_TRUE(job(victim).eviction);
  ASSERT_FALSE(job(other).eviction);
  for (engine::Node& machine : engine_.offered) {
    if (machine.name == job(victim).tasks[0].node) engine::call_silent(machine, clock_.now());
  }

  live_again();
  ASSERT_TRUE(controller_->recover());
  settle();

  ASSERT_TRUE(job(other).eviction);
  let_stopped_tasks_end(other);
  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_TRUE(job(victim).eviction) << "its task may still run";
}

/// "n1" with GPUs that have no numbers, and "n2" without GPUs.
std::vector<engine::Node> machines_with_anonymous(int gpus) {
  return {
      {.name = "n1", .task_slots = 100, .gpus = gpus, .anonymous_gpus = true, .gpu_model = "V100"},
      {.name = "n2", .task_slots = 100}};
}

TEST_F(Mishaps, AGangDoesNotStartWhereItsTasksTogetherHoldMoreGpusThanAreLeft) {
  engine_.set_nodes(machines_with_anonymous(4));
  settle();
  JobSpec wide = mpi("wide", "default", 2);
  wide.resources.gpus = 2;
  ASSERT_TRUE(controller_->submit(wide, ""));
  store_.full = true;
  settle();

  engine_.set_nodes(machines_with_anonymous(3));
  store_.full = false;
  ASSERT_TRUE(controller_->nodes().cordon("n2"));  // makes a commit
  settle();
  EXPECT_TRUE(engine_.running.empty());
  EXPECT_EQ(job("wide").phase, Phase::kQueued);

  engine_.set_nodes(machines_with_anonymous(4));
  settle();
  EXPECT_EQ(job("wide").phase, Phase::kRunning);
}

TEST_F(Mishaps, AGangDoesNotStartWhereAnotherGangHoldsGpusThatItWasPlacedOn) {
  engine_.set_nodes(machines_with_anonymous(4));
  settle();
  submit(single("one", "default", 2));
  ASSERT_TRUE(controller_->submit(single("two", "default", 2), ""));
  store_.full = true;
  settle();

  engine_.set_nodes(machines_with_anonymous(3));
  store_.full = false;
  ASSERT_TRUE(controller_->nodes().cordon("n2"));  // makes a commit
  settle();
  EXPECT_EQ(engine_.running.size(), 1U);
  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_EQ(job("two").phase, Phase::kQueued);

  end("one");
  EXPECT_EQ(job("two").phase, Phase::kRunning);
}

TEST_F(Mishaps, AGpuThatAnotherPodTookLeavesTheOtherGpusToJobs) {
  const auto machine = [](int gpus) {
    engine::Node one = node("n1", gpus);
    one.anonymous_gpus = true;
    return one;
  };
  engine_.set_nodes({machine(4)});
  settle();
  submit(single("one", "default", 2));
  submit(single("two", "default", 2));
  end("one");

  engine_.set_nodes({machine(3)});
  settle();
  submit(single("three", "default", 1));

  EXPECT_EQ(job("three").phase, Phase::kRunning);
  const auto view = controller_->nodes().find("n1");
  ASSERT_TRUE(view);
  ASSERT_EQ(view->devices.size(), 3U);
  for (const job::Device& device : view->devices) {
    EXPECT_EQ(device.free_milli, 0);
    EXPECT_EQ(device.jobs.size(), 1U) << device.index;
  }
}

TEST_F(Mishaps, NothingStartsThatTheFullDiskHasNotStored) {
  store_.full = true;
  ASSERT_FALSE(controller_->submit(single("one", "default", 2), ""));
  store_.full = false;
  ASSERT_TRUE(controller_->submit(single("one", "default", 2), ""));
  store_.full = true;
  settle();
  EXPECT_TRUE(engine_.running.empty());

  store_.full = false;
  ASSERT_TRUE(controller_->nodes().cordon("n1"));  // makes a commit
  settle();
  EXPECT_EQ(job("one").phase, Phase::kRunning);
}

TEST_F(Mishaps, AnEvictedJobContinuesUntilTheEvictionIsStored) {
  submit(single("one", "default", 2));
  store_.full = true;
  const auto suspended = controller_->suspend("one");
  ASSERT_FALSE(suspended);
  EXPECT_EQ(
      suspended.error().what,
      "job 'one' will be suspended, but the server could not store this yet: the disk is full");
  settle();
  EXPECT_EQ(engine_.running.size(), 1U);

  store_.full = false;
  ASSERT_TRUE(controller_->nodes().cordon("n1"));
  settle();
  EXPECT_TRUE(engine_.running.empty());
  EXPECT_TRUE(job("one").suspended);
}

TEST_F(Mishaps, AJobThatCannotBeRemovedIsStillWrittenDown) {
  submit(single("one", "default", 2));
  store_.full = true;
  end("one");
  EXPECT_FALSE(controller_->remove("one"));
  store_.full = false;
  ASSERT_TRUE(controller_->nodes().cordon("n1"));
  EXPECT_EQ(store_.load()->jobs[0].phase, Phase::kSucceeded);
}

TEST_F(Mishaps, AJobWithoutAPoolRunsInAPoolThatIsAddedLater) {
  submit(single("one", "default", 2));
  submit(single("two", "default", 2));
  ASSERT_EQ(job("two").phase, Phase::kQueued);
  engine_.set_nodes({node("n1", 2), node("n2", 2, "second")});
  settle();
  EXPECT_EQ(job("two").phase, Phase::kRunning);
  EXPECT_EQ(job("two").tasks[0].node, "n2");
}

TEST_F(Mishaps, APoolThatAppearsEndsNoPauseBeforeAnotherStart) {
  JobSpec spec = single("one", "default", 1);
  spec.scheduling.retries = 2;
  submit(spec);
  end("one", {.code = 3});
  end("one", {.code = 3});
  ASSERT_EQ(job("one").phase, Phase::kQueued);  // the second restart waits a second

  engine_.set_nodes({node("n1", 2), node("n2", 2, "second")});
  settle();
  EXPECT_EQ(job("one").phase, Phase::kQueued);

  clock_.advance(std::chrono::seconds(2));
  ASSERT_TRUE(controller_->nodes().cordon("n1"));  // plans anew
  settle();
  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_EQ(job("one").tasks[0].node, "n2");
}

TEST_F(Mishaps, APoolThatAppearsDuringAnEvictionLeavesTheResourcesPromised) {
  add(project_of("team-a", 2));
  add(project_of("team-b", 0));
  submit(single("guest", "team-b", 2));
  engine_.stops_obey = false;
  submit(single("owner", "team-a", 2));
  ASSERT_TRUE(job("guest").eviction);
  ASSERT_EQ(controller_->explain("owner")->constraint, "releasing");

  engine_.set_nodes({node("n1", 2), node("n2", 0, "second")});
  settle();

  EXPECT_EQ(controller_->explain("owner")->constraint, "releasing");
  let_stopped_tasks_end("guest");
  EXPECT_EQ(job("owner").phase, Phase::kRunning);
}

TEST_F(Mishaps, AProjectIsNotDeletedWhileAJobIsBeingSubmittedToIt) {
  add(project_of("team-a", 1));
  controller_->submit(single("one", "team-a", 1), "",
                      [](const Result<job::Job>& job) { EXPECT_TRUE(job); });
  EXPECT_EQ(controller_->projects().remove("team-a").error().code, ErrorCode::kConflict);
}

TEST_F(Mishaps, AProjectIsNotMovedBelowOneThatHasJobs) {
  add(project_of("team-a", 1));
  add(project_of("team-b", 1));
  submit(single("one", "team-a", 1));
  job::Project moved = project_of("team-b", 1);
  moved.parent = "team-a";
  EXPECT_EQ(controller_->projects().set(moved).error().code, ErrorCode::kConflict);
}

TEST_F(Mishaps, NoJobWaitsUntilAClockThatWasSetBackHasCaughtUp) {
  JobSpec spec = single("one", "default", 1);
  spec.scheduling.retries = 2;
  submit(spec);
  end("one", {.code = 3});
  ASSERT_EQ(job("one").phase, Phase::kRunning);
  end("one", {.code = 3});
  ASSERT_EQ(job("one").phase, Phase::kQueued);  // the second restart waits a second

  clock_.advance(-std::chrono::hours(1000));
  submit(single("two", "default", 1));
  clock_.advance(std::chrono::seconds(2));
  end("two");
  EXPECT_EQ(job("one").phase, Phase::kRunning);
}

}  // namespace
}  // namespace muster::control
