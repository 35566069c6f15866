// Facts about jobs in containers that the server learns while they run: where their ranks are, and
// which of their nodes do not answer.
#include <gtest/gtest.h>

#include "control/test_in_images.h"
#include "engine/engine.h"
#include "words/sentence.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using job::JobSpec;
using job::Phase;
using launch::ImageFacts;

using Watched = InImages;

// --- ranks

TEST_F(Watched, RanksThatAllRunOnTheLauncherEndTheJobAtOnce) {
  JobSpec spec = two_tasks();
  spec.command = {"mpirun", "-np", "2", "train"};
  spec.slots_per_worker = 2;
  submit(spec);
  engine_.mpis["launcher"] = "MPICH 4.0.2";
  bring_all();
  engine_.census = {{0, 2, "launcher"}, {1, 2, "launcher"}};
  engine_.change_ranks(gang("dist"), "launcher");
  settle();

  ASSERT_EQ(job("dist").phase, Phase::kFailed);
  EXPECT_EQ(job("dist").failure->cause,
            "all 2 ranks run on the launcher and none on a worker: mpirun did not use the "
            "hostfile");
  EXPECT_EQ(job("dist").failure->task, "launcher");
  EXPECT_EQ(job("dist").failure->last_lines.front(), "launcher: ranks 0 to 1");
  EXPECT_TRUE(engine_.running.empty());
}

TEST_F(Watched, ASuspiciousWorldOfAScriptIsReportedOnce) {
  JobSpec spec = two_tasks();
  spec.command = {"./run.sh"};
  submit(spec);
  bring_all();
  engine_.census = {{0, 2, "launcher"}, {1, 2, "launcher"}};
  for (int i = 0; i < 3; ++i) {
    engine_.change_ranks(gang("dist"), "launcher");
    settle();
  }
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  const auto& events = job("dist").events;
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const job::Event& event) {
                            return words::sentence(event.what) ==
                                   "all 2 ranks run on the launcher and none on a "
                                   "worker";
                          }),
            1);
}

// --- nodes that do not answer

TEST_F(Watched, AJobContinuesWhileItsNodeDoesNotAnswerAndReportsThat) {
  submit(in_image(single("one", "red", 2)));
  bring_all();
  const auto machines = engine_.offered;
  auto silent = machines;
  engine::call_silent(silent[0], clock_.now());
  engine_.set_nodes(silent);
  settle();

  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_EQ(job("one").reason, "runs; node n1 has not answered since 2023-11-14T22:13:20Z");
  EXPECT_TRUE(noted("one", "node n1 does not answer"));
  EXPECT_EQ(controller_->nodes().find("n1")->state, "gone");
  submit(in_image(single("two", "red", 0)));
  EXPECT_EQ(job("two").phase, Phase::kQueued) << "nothing new is placed there";

  engine_.set_nodes(machines);
  settle();
  EXPECT_EQ(job("one").reason, "runs");
  EXPECT_TRUE(noted("one", "node n1 answers again"));
  EXPECT_EQ(controller_->nodes().find("n1")->state, "ready");
  EXPECT_EQ(job("two").phase, Phase::kStarting);
}

TEST_F(Watched, AClosedNodeGetsNoNewTasksAndItsTasksContinue) {
  submit(in_image(single("one", "red", 2)));
  bring_all();
  auto closed = engine_.offered;
  closed[0].labels[engine::kClosedBy] = "Slurm";
  engine_.set_nodes(closed);
  settle();

  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_EQ(job("one").reason, "runs");
  EXPECT_EQ(controller_->nodes().find("n1")->state, "draining");
  submit(in_image(single("two", "red", 0)));
  EXPECT_EQ(job("two").phase, Phase::kQueued) << "nothing new is placed there";
}

TEST_F(Watched, AJobWhoseNodeIsLostNamesTheNode) {
  submit(in_image(single("one", "red", 2)));
  bring_all();
  engine_.set_nodes({});
  settle();

  EXPECT_EQ(job("one").phase, Phase::kFailed);
  EXPECT_EQ(job("one").failure->cause, "main was lost: node n1 has gone");
}

TEST_F(Watched, ALauncherIsNotStartedOnANodeThatHasFallenSilent) {
  engine_.set_nodes({{.name = "n1", .task_slots = 1}, {.name = "n2", .task_slots = 1}});
  JobSpec spec = two_tasks();
  spec.resources.gpus = 0;
  ASSERT_TRUE(controller_->submit(spec, ""));
  loop_.post([this] { loop_.stop(); });
  while (!engine_.prepared) {
    loop_.run();
    loop_.post([this] { loop_.stop(); });
  }
  const std::string of_launcher = job("dist").tasks[0].node;
  ASSERT_NE(of_launcher, job("dist").tasks[1].node);
  std::vector<ImageFacts> facts(2, facts_of("horovod:0.28"));
  engine_.prepared(facts);  // its worker starts
  auto nodes = engine_.offered;
  for (engine::Node& node : nodes) {
    if (node.name == of_launcher) engine::call_silent(node, clock_.now());
  }
  engine_.set_nodes(nodes);
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kQueued);
  EXPECT_TRUE(noted("dist", "node " + of_launcher + " does not answer; the job is retried"));
  EXPECT_TRUE(engine_.running.empty());
}

}  // namespace
}  // namespace muster::control
