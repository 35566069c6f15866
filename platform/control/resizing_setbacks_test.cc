// A job fails, ends or loses a worker while other workers join it: the places that were reserved for
// them are released, and a job below its minimum does not continue.
#include "control/test_resizing.h"

namespace muster::control {
namespace {

using job::JobSpec;
using job::Phase;
using job::TaskPhase;

class Setbacks : public ResizingGang {
 protected:
  /// A job that runs on n1 with its minimum of workers.
  void begin_on_one_machine(JobSpec spec) {
    set_machines({machine("n1", 2)});
    submit(spec);
    if (engine_.images) bring_images();
    ASSERT_EQ(workers_of(spec.name).size(), 2U);
  }

  int free_gpus(const std::string& node) {
    int free = 0;
    const auto view = controller_->nodes().find(node);
    for (const auto& device : view->devices) free += device.free_milli == 1000;
    return free;
  }
};

TEST_F(Setbacks, ANewWorkerCanBeEvictedBeforeItHasStarted) {
  add(project_of("team-a", 3));
  add(project_of("team-b", 0));
  engine_.slow_starts = {"worker-2"};
  begin_on_one_machine(live("dist", "team-b", 2, 3));
  set_machines({machine("n1", 2), machine("n2", 1)});
  ASSERT_TRUE(called("dist", "start", "worker-2"));

  submit(single("owner", "team-a", 1));

  EXPECT_TRUE(called("dist", "stop", "worker-2 gracefully"));
  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_TRUE(task("dist", "worker-2").left);
}

TEST_F(Setbacks, AnAttemptEndsIfANewWorkerThatItNeedsCannotJoin) {
  engine_.images = true;
  set_machines({machine("n1", 1), machine("n2", 1)});
  JobSpec spec = live("dist", "default", 2, 3);
  spec.image = "image";
  submit(spec);
  bring_images();
  ASSERT_EQ(workers_of("dist").size(), 2U);
  const std::string launchers = job("dist").tasks.front().node;
  set_machines({machine("n1", 1), machine("n2", 1), machine("n3", 1)});
  ASSERT_TRUE(noted("dist", "worker-2 joins on n3"));
  ASSERT_TRUE(controller_->nodes().drain(launchers == "n1" ? "n2" : "n1"));
  settle();
  ASSERT_EQ(workers_of("dist").size(), 1U) << "for one more is on its way";

  engine_.prepared(base::Error{.code = base::ErrorCode::kNotFound, .what = "no such image"});
  settle();

  EXPECT_TRUE(noted("dist", "has fewer workers left than its minimum of 2"))
      << text_of(job("dist"));
  EXPECT_FALSE(noted("dist", "no such image; the job goes on"));
  EXPECT_EQ(job("dist").attempt, 2);
  EXPECT_EQ(job("dist").restarts, 1);
}

TEST_F(Setbacks, AnEvictedWorkerThatReturnsWaitsForItsOwnTurn) {
  add(project_of("team-a", 4));
  add(project_of("team-b", 0));
  engine_.images = true;
  engine_.slow_starts = {"worker-2"};
  JobSpec spec = live("dist", "team-b", 2, 4);
  spec.image = "image";
  begin_on_one_machine(spec);
  set_machines({machine("n1", 2), machine("n2", 1)});
  bring_images();
  ASSERT_TRUE(called("dist", "start", "worker-2")) << "which takes long";
  set_machines({machine("n1", 2), machine("n2", 1), machine("n3", 1)});
  bring_images();
  ASSERT_TRUE(noted("dist", "worker-3 joins on n3")) << "and stands in line behind it";
  JobSpec owner = single("owner", "team-a", 1);
  owner.image = "image";
  submit(owner);
  ASSERT_EQ(task("dist", "worker-3").node, "");
  ASSERT_TRUE(controller_->stop("owner", false));
  settle();
  ASSERT_EQ(task("dist", "worker-3").node, "n3") << "with its image still to come";

  engine_.finish_start("worker-2");
  settle();
  EXPECT_FALSE(called("dist", "start", "worker-3"));
  bring_images();

  EXPECT_EQ(workers_of("dist").size(), 4U);
  EXPECT_EQ(std::count_if(engine_.calls.begin(), engine_.calls.end(),
                          [](const std::string& call) {
                            return call.starts_with("start") && call.ends_with("worker-3");
                          }),
            1);
}

TEST_F(Setbacks, ANodeThatTheGangCannotReachIsNotUsedForIt) {
  engine_.images = true;
  engine_.names_within_nodes = true;
  JobSpec spec = live("dist", "default", 1, 3);
  spec.image = "image";
  begin_on_one_machine(spec);

  set_machines({machine("n1", 2), machine("n2", 1)});
  bring_images();

  EXPECT_TRUE(noted("dist", "the other tasks are on a network of a single machine"))
      << text_of(job("dist"));
  EXPECT_EQ(workers_of("dist").size(), 2U);
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(free_gpus("n2"), 1) << "it holds nothing there that it cannot use";
  set_machines({machine("n1", 3), machine("n2", 1)});
  bring_images();
  EXPECT_EQ(workers_of("dist").size(), 3U) << "it grows where it can";
}

TEST_F(Setbacks, NothingIsReservedOnADrainedNodeForAPausedJob) {
  pace_.rest = std::chrono::hours(1);
  controller_->set_resize_pace(pace_);
  submit(live("dist", "default", 1, 4));
  const std::string launchers = job("dist").tasks.front().node;
  const std::string other = launchers == "n1" ? "n2" : "n1";
  for (const job::Task& task : std::vector(job("dist").tasks)) {
    if (task.node == other) lose("dist", task.name, kKilled);
  }
  ASSERT_EQ(workers_of("dist").size(), 2U);
  ASSERT_EQ(free_gpus(other), 0) << "kept for whoever joins next";

  ASSERT_TRUE(controller_->nodes().drain(other));
  settle();

  EXPECT_EQ(free_gpus(other), 2);
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 1);
}

TEST_F(Setbacks, ResourcesThatBecomeFreeWhileAJobEndsGoToOtherJobs) {
  begin_on_one_machine(live("dist", "default", 1, 3));
  engine_.stops_obey = false;
  ASSERT_TRUE(controller_->stop("dist", false));
  settle();

  set_machines({machine("n1", 2), machine("n2", 1)});
  submit(single("next", "default", 1));

  EXPECT_EQ(job("next").phase, Phase::kRunning) << text_of(job("next"));
  EXPECT_EQ(job("dist").phase, Phase::kRunning) << "it takes its time to end";
}

TEST_F(Setbacks, ResourcesReservedForAPausedJobAreFreeOnceItEnds) {
  pace_.rest = std::chrono::hours(1);
  controller_->set_resize_pace(pace_);
  begin_on_one_machine(live("dist", "default", 1, 2));
  lose("dist", "worker-1", kKilled);
  ASSERT_EQ(free_gpus("n1"), 0) << "kept for whoever joins next";
  engine_.stops_obey = false;

  lose("dist", "launcher", {});

  EXPECT_EQ(free_gpus("n1"), 1);
  EXPECT_EQ(job("dist").phase, Phase::kRunning) << "its last worker takes its time to end";
}

TEST_F(Setbacks, NoJobIsEvictedForAJobThatIsEnding) {
  add(project_of("team-a", 2));
  add(project_of("team-b", 1));
  begin_on_one_machine(live("dist", "team-a", 1, 3));
  engine_.stops_obey = false;
  ASSERT_TRUE(controller_->stop("dist", false));
  submit(single("guest", "team-b", 1));
  set_machines({machine("n1", 2), machine("n2", 1)});
  ASSERT_EQ(job("guest").phase, Phase::kRunning);

  ASSERT_TRUE(controller_->projects().set(project_of("team-b", 0)));
  ASSERT_TRUE(controller_->projects().set(project_of("team-a", 3)));
  settle();

  EXPECT_EQ(job("guest").phase, Phase::kRunning) << text_of(job("guest"));
  EXPECT_EQ(job("guest").eviction, std::nullopt);
}

TEST_F(Setbacks, AnAttemptAcceptsALimitedNumberOfNewWorkers) {
  pace_.most_joiners = 3;
  controller_->set_resize_pace(pace_);
  submit(live("dist", "default", 1, 2));
  for (const char* worker : {"worker-1", "worker-2", "worker-3", "worker-4"}) {
    clock_.advance(std::chrono::minutes(5));
    ASSERT_EQ(workers_of("dist"), (Names{"worker-0", worker}));
    lose("dist", worker, kKilled);
  }

  EXPECT_EQ(workers_of("dist"), (Names{"worker-0"}));
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_TRUE(noted("dist", "no more workers can join: 3 have joined it since its start"))
      << text_of(job("dist"));
  EXPECT_EQ(free_gpus("n1") + free_gpus("n2"), 3);
}

}  // namespace
}  // namespace muster::control
