// Workers that are lost while their job continues, and the other roles of a gang.
#include "control/test_resizing.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using job::JobSpec;
using job::Phase;

TEST_F(ResizingGang, ALostWorkerIsReplacedAndTheJobContinues) {
  submit(live("dist", "default", 2, 3));
  clock_.advance(std::chrono::minutes(5));

  engine_.end_for_good(gang("dist"), "worker-1", kKilled);
  turn();

  EXPECT_TRUE(noted("dist",
                    "worker-1 was lost: it was killed by signal 9 (SIGKILL); the job continues "
                    "with 2 of 3 workers"))
      << text_of(job("dist"));
  EXPECT_EQ(sent_hosts("dist"), "dist-worker-0 slots=1\ndist-worker-2 slots=1\n") << "at once";
  settle();
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_EQ(workers_of("dist"), (Names{"worker-0", "worker-2", "worker-3"}));
  EXPECT_EQ(sent_hosts("dist"),
            "dist-worker-0 slots=1\ndist-worker-2 slots=1\ndist-worker-3 slots=1\n");
}

TEST_F(ResizingGang, ALossBelowTheMinimumFailsTheJobAndIsNamed) {
  set_machines({machine("n1", 2)});
  submit(live("dist", "default", 2, 3));
  ASSERT_EQ(workers_of("dist").size(), 2U);
  clock_.advance(std::chrono::minutes(5));

  lose("dist", "worker-1", kKilled);

  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  EXPECT_EQ(job("dist").failure->task, "worker-1");
}

TEST_F(ResizingGang, OnlyTheWorkersOfALostNodeAreLost) {
  submit(live("dist", "default", 1, 4));
  const std::string launchers = job("dist").tasks.front().node;
  const std::string other = launchers == "n1" ? "n2" : "n1";

  engine_.set_nodes({machine(launchers, 2)});
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_EQ(workers_of("dist").size(), 2U);
  EXPECT_TRUE(noted("dist", "was lost: node " + other + " has gone")) << text_of(job("dist"));
  set_machines({machine("n1", 2), machine("n2", 2)});
  EXPECT_EQ(workers_of("dist").size(), 4U);
}

TEST_F(ResizingGang, AJobThatSurvivedADrainStartsOnItsPromisedPlacesWhenItIsMovedLater) {
  add(project_of("team-a", 2));
  job::Project guests = project_of("team-b", 0);
  guests.preempt_min_runtime = std::chrono::hours(1);
  add(guests);
  set_machines({machine("n1", 2), machine("n2", 2), machine("n3", 2)});
  JobSpec dist = live("dist", "team-b", 2, 3);
  dist.scheduling.packing = job::Packing::kSpread;
  submit(dist);
  const std::string launchers = job("dist").tasks.front().node;
  const std::string drained = launchers == "n3" ? "n2" : "n3";
  ASSERT_TRUE(controller_->nodes().drain(drained));
  settle();
  ASSERT_EQ(job("dist").attempt, 1);
  ASSERT_EQ(workers_of("dist").size(), 3U);

  engine_.stops_obey = false;
  submit(single("owner", "team-a", 2));
  ASSERT_TRUE(job("dist").eviction) << text_of(job("dist"));
  JobSpec important = single("important", "team-b", 1);
  important.scheduling.priority = 75;
  submit(important);
  engine_.stops_obey = true;
  const job::Job before = job("dist");
  for (const job::Task& task : before.tasks) {
    if (engine_.running.contains({gang("dist"), task.name})) {
      engine_.end_for_good({before.id, before.attempt}, task.name, {.signal = 15, .stopped = true});
    }
  }
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kRunning) << text_of(job("dist"));
  EXPECT_EQ(job("dist").attempt, 2);
  EXPECT_EQ(workers_of("dist").size(), 2U);
  EXPECT_EQ(job("important").phase, Phase::kQueued);
}

TEST_F(ResizingGang, ThreeWorkersInARowThatFallOverFailTheJob) {
  submit(live("dist", "default", 1, 2));
  clock_.advance(std::chrono::minutes(5));
  lose("dist", "worker-1", {.code = 3});  // the worker had run for a long time
  ASSERT_EQ(workers_of("dist"), (Names{"worker-0", "worker-2"}));
  lose("dist", "worker-2", {.code = 3});
  lose("dist", "worker-3", {.code = 3});
  ASSERT_EQ(job("dist").phase, Phase::kRunning);

  lose("dist", "worker-4", {.code = 3});

  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  EXPECT_EQ(job("dist").failure->task, "worker-4");
  EXPECT_EQ(job("dist").failure->cause,
            "worker-4 exited with code 3; the third worker in a row that was lost within 1m "
            "of its start");
}

TEST_F(ResizingGang, AWorkerThatRanForSomeTimeResetsTheCountOfFailures) {
  submit(live("dist", "default", 1, 2));
  clock_.advance(std::chrono::minutes(5));
  for (const char* worker : {"worker-1", "worker-2", "worker-3"}) {
    lose("dist", worker, {.code = 3});
  }
  clock_.advance(std::chrono::minutes(5));
  lose("dist", "worker-4", {.code = 3});
  lose("dist", "worker-5", {.code = 3});
  lose("dist", "worker-6", {.code = 3});

  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(workers_of("dist"), (Names{"worker-0", "worker-7"}));
}

TEST_F(ResizingGang, AWorkerThatHasFinishedItsPartIsNotMissed) {
  JobSpec spec = live("ddp", "default", 1, 3);
  spec.kind = job::Kind::kTorch;
  submit(spec);

  lose("ddp", "worker-1", {.code = 0});

  EXPECT_EQ(workers_of("ddp"), (Names{"worker-0", "worker-2"}));
  EXPECT_FALSE(task("ddp", "worker-1").left);
  EXPECT_EQ(job("ddp").tasks.size(), 4U) << "nobody came instead";
  lose("ddp", "worker-0", {.code = 0});
  lose("ddp", "worker-2", {.code = 0});
  end("ddp");
  EXPECT_EQ(job("ddp").phase, Phase::kSucceeded);
}

TEST_F(ResizingGang, TheLeadersEndIsTheEndAlsoForThoseOnTheirWay) {
  submit(single("other", "default", 2));
  submit(live("dist", "default", 1, 4));
  engine_.end_for_good(gang("other"), "main", {});
  turn();  // the joining workers do not answer
  ASSERT_TRUE(called("dist", "start", "worker-2"));

  end("dist");

  EXPECT_EQ(job("dist").phase, Phase::kSucceeded);
  EXPECT_TRUE(engine_.running.empty());
  EXPECT_TRUE(job("dist").sealed_seed.empty());
}

TEST_F(ResizingGang, StopSuspendAndResumeAreThoseOfAnyJob) {
  submit(live("dist", "default", 1, 4));
  lose("dist", "worker-2", kKilled);
  ASSERT_TRUE(controller_->suspend("dist"));
  settle();
  EXPECT_EQ(job("dist").phase, Phase::kQueued);
  EXPECT_TRUE(engine_.running.empty());
  EXPECT_EQ(job("dist").tasks.size(), 5U) << "names begin anew";

  ASSERT_TRUE(controller_->resume("dist"));
  settle();
  EXPECT_EQ(workers_of("dist").size(), 4U);
  ASSERT_TRUE(controller_->stop("dist", false));
  settle();
  EXPECT_EQ(job("dist").phase, Phase::kStopped);
  EXPECT_TRUE(engine_.running.empty());
}

TEST_F(ResizingGang, AJobThatDoesNotResizeLiveShrinksByARestartAndDoesNotGrow) {
  add(project_of("team-a", 4));
  add(project_of("team-b", 0));
  JobSpec spec = live("dist", "team-b", 2, 4);
  spec.scheduling.resize = job::Resize::kRestart;
  submit(spec);

  submit(single("owner", "team-a", 1));
  EXPECT_EQ(job("dist").attempt, 2);
  EXPECT_EQ(workers_of("dist"), (Names{"worker-0", "worker-1", "worker-2"}));
  end("owner");

  EXPECT_EQ(job("dist").attempt, 2);
  EXPECT_EQ(workers_of("dist").size(), 3U);
}

// --- roles

TEST_F(ResizingGang, AnElasticClusterThatIsRenumberedKeepsItsParameterServersInPlace) {
  JobSpec spec = live("mnist", "default", 1, 6);
  spec.kind = job::Kind::kGrpc;
  spec.scheduling.resize = job::Resize::kRestart;
  spec.parameter_servers = 1;
  spec.parameter_server.resources.cpu_milli = 0;
  submit(spec);

  EXPECT_EQ(job("mnist").phase, Phase::kRunning);
  EXPECT_EQ(workers_of("mnist").size(), 4U);
  EXPECT_TRUE(engine_.running.count({gang("mnist"), "ps-0"}) > 0);
  EXPECT_TRUE(task("mnist", "ps-0").devices.empty());
  EXPECT_EQ(task("mnist", "worker-3").devices.size(), 1U);
}

TEST_F(ResizingGang, AnEvaluatorStartsWithTheWorkersAndEndsOnceTheChiefHas) {
  JobSpec spec = mpi("mnist", "default", 1);
  spec.kind = job::Kind::kGrpc;
  spec.evaluators = 1;
  submit(spec);
  ASSERT_EQ(job("mnist").phase, Phase::kRunning);
  EXPECT_LT(call("mnist", "start", "evaluator-0"), call("mnist", "start", "chief"));

  lose("mnist", "worker-0", {.code = 0});
  end("mnist");

  EXPECT_TRUE(called("mnist", "stop", "evaluator-0 gracefully"));
  EXPECT_EQ(job("mnist").phase, Phase::kSucceeded);
}

TEST_F(ResizingGang, AnEvaluatorsFailureIsALossAndItsSuccessIsNone) {
  for (const auto& [name, code] : {std::pair("good", 0), std::pair("bad", 1)}) {
    JobSpec spec = mpi(name, "default", 1);
    spec.kind = job::Kind::kGrpc;
    spec.evaluators = 1;
    submit(spec);
    lose(name, "evaluator-0", {.code = code});
  }

  EXPECT_EQ(job("good").phase, Phase::kRunning);
  EXPECT_EQ(job("bad").phase, Phase::kFailed);
  EXPECT_EQ(job("bad").failure->task, "evaluator-0");
}

}  // namespace
}  // namespace muster::control
