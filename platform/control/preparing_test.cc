// Jobs on an engine that runs images, from their placing until their tasks start.
#include <gtest/gtest.h>

#include "control/test_parts.h"
#include "engine/silent_node.h"

namespace muster::control {
namespace {

using base::Error;
using base::ErrorCode;
using engine::ImageWish;
using job::JobSpec;
using job::Phase;
using launch::ImageFacts;

const std::string kPassword = "s3cret pass";

class Preparing : public Scheduling {
 protected:
  Preparing() {
    engine_.images = true;
    engine_.reach_of_all = launch::Reach::kNames;
    make_with_accounts();
    add(project_of("red", 2));
    EXPECT_TRUE(accounts_->set_secret("red", "registry", kPassword, {}));
  }

  void make_with_accounts() {
    controller_ = nullptr;
    accounts_ = std::make_unique<Accounts>(Accounts::Parts{
        .loop = loop_, .store = store_, .clock = clock_, .random = random_, .box = box_});
    controller_ = std::make_unique<Controller>(Parts{.loop = loop_,
                                                     .store = store_,
                                                     .engine = engine_,
                                                     .clock = clock_,
                                                     .random = random_,
                                                     .accounts = accounts_.get()},
                                               SiteFacts{.user = "ada"});
  }

  /// Another server over the same store and machines.
  void come_back() {
    engine_.prepared = nullptr;
    make_with_accounts();
    ASSERT_TRUE(controller_->recover());
    settle();
  }

  static JobSpec in_image(JobSpec spec) {
    spec.image = "horovod:0.28";
    return spec;
  }
  static JobSpec two_tasks(const std::string& name = "dist") {
    JobSpec spec = in_image(mpi(name, "red", 1));
    spec.command = {"mpirun", "-np", "1", "train"};
    return spec;
  }

  static ImageFacts facts_of(const std::string& image) {
    return {.image = image,
            .id = "sha256:1",
            .folder = "/",
            .account = {},
            .sshd = "/usr/sbin/sshd",
            .has_ssh = true,
            .has_shell = true};
  }

  /// The engine has brought what it was asked for.
  void bring_all(const std::function<void(ImageFacts&)>& change = [](ImageFacts&) {}) {
    std::vector<ImageFacts> facts;
    for (const ImageWish& wish : engine_.wishes) {
      facts.push_back(facts_of(wish.image));
      change(facts.back());
    }
    engine_.prepared(std::move(facts));
    settle();
  }

  void bring_nothing(Error error) {
    engine_.prepared(std::move(error));
    settle();
  }

  size_t prepared_times() const {
    return static_cast<size_t>(
        std::count_if(engine_.calls.begin(), engine_.calls.end(),
                      [](const std::string& call) { return call.starts_with("prepare"); }));
  }

  std::string text_of(const job::Job& job) {
    std::string text = job.reason;
    for (const job::Event& event : job.events) text += "\n" + event.text;
    if (job.failure) text += "\n" + job.failure->cause + "\n" + job.failure->advice;
    return text;
  }

  access::SecretBox box_{[] {
    access::SecretBox::Key key{};
    key.fill(1);
    return key;
  }()};
  std::unique_ptr<Accounts> accounts_;
};

TEST_F(Preparing, NothingStartsBeforeItsImagesAreThere) {
  submit(two_tasks());
  EXPECT_EQ(job("dist").phase, Phase::kStarting);
  EXPECT_EQ(job("dist").reason, "looks for image horovod:0.28");
  EXPECT_TRUE(engine_.running.empty());

  clock_.advance(std::chrono::seconds(12));
  bring_all();

  EXPECT_EQ(job("dist").phase, Phase::kRunning) << text_of(job("dist"));
  EXPECT_TRUE(noted("dist", "looks for image horovod:0.28"));
  EXPECT_TRUE(noted("dist", "its images are there, after 12s"));
}

TEST_F(Preparing, EveryPlacedTaskIsWishedForByWhatItsRoleSays) {
  JobSpec spec = two_tasks();
  spec.user = "ada";
  spec.registry = {.server = "reg:5000", .username = "ada", .secret = "registry"};
  spec.container.pull = job::PullPolicy::kAlways;
  spec.leader.image = "launcher:1";
  spec.leader.user = "root";
  submit(spec);

  ASSERT_EQ(engine_.wishes.size(), 2U);
  const ImageWish& launcher = engine_.wishes[0];
  EXPECT_EQ(launcher.task, "launcher");
  EXPECT_EQ(launcher.image, "launcher:1");
  EXPECT_EQ(launcher.user, "root");
  EXPECT_EQ(launcher.username, "");
  const ImageWish& worker = engine_.wishes[1];
  EXPECT_EQ(worker.task, "worker-0");
  EXPECT_EQ(worker.node, "n1");
  EXPECT_EQ(worker.image, "horovod:0.28");
  EXPECT_EQ(worker.user, "ada");
  EXPECT_EQ(worker.pull, job::PullPolicy::kAlways);
  EXPECT_EQ(worker.registry, "reg:5000");
  EXPECT_EQ(worker.password, kPassword);
}

TEST_F(Preparing, ThePasswordOfARegistryIsInNothingThatAJobTells) {
  JobSpec spec = two_tasks();
  spec.registry = {.username = "ada", .secret = "registry"};
  submit(spec);
  bring_nothing({.code = ErrorCode::kRefused, .what = "the registry refuses", .advice = "log in"});

  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  EXPECT_EQ(text_of(job("dist")).find("s3cret"), std::string::npos);
}

TEST_F(Preparing, ASecretThatWasRemovedMeanwhileFailsTheJobAndIsNamed) {
  submit(in_image(single("first", "red", 2)));
  bring_all();
  JobSpec spec = in_image(single("second", "red", 2));
  spec.registry = {.username = "ada", .secret = "registry"};
  submit(spec);
  ASSERT_TRUE(accounts_->remove_secret("red", "registry", {}));
  end("first");

  ASSERT_EQ(job("second").phase, Phase::kFailed);
  EXPECT_EQ(job("second").failure->cause, "there is no secret 'registry' in project 'red'");
}

TEST_F(Preparing, WhatTheEngineDoesIsShownNowAndThenAndNotStored) {
  submit(two_tasks());
  const int commits = store_.commits;
  int heard = 0;
  const auto watch = controller_->watch("dist", [&] {
    ++heard;
    loop_.stop();
  });
  for (int done = 0; done < 500; ++done) {
    engine_.progress("n1 fetches horovod:0.28 (" + std::to_string(done) + " of 500 MB)");
  }
  EXPECT_EQ(job("dist").reason, "n1 fetches horovod:0.28 (0 of 500 MB)");

  while (job("dist").reason != "n1 fetches horovod:0.28 (499 of 500 MB)") loop_.run();

  EXPECT_EQ(heard, 2);
  EXPECT_EQ(store_.commits, commits);
  EXPECT_EQ(store_.load()->jobs[0].reason, "looks for image horovod:0.28");
}

TEST_F(Preparing, WhatTheEngineSaysFailsTheJob) {
  for (const ErrorCode code : {ErrorCode::kNotFound, ErrorCode::kRefused, ErrorCode::kExhausted}) {
    submit(two_tasks());
    bring_nothing({.code = code, .what = "no image 'horovod:0.28'", .advice = "check its name"});

    ASSERT_EQ(job("dist").phase, Phase::kFailed);
    EXPECT_EQ(job("dist").failure->cause, "no image 'horovod:0.28'");
    EXPECT_EQ(job("dist").failure->advice, "check its name");
    EXPECT_EQ(prepared_times(), 1U);
    ASSERT_TRUE(controller_->remove("dist"));
    engine_.calls.clear();
  }
}

TEST_F(Preparing, AHostThatDoesNotAnswerIsTriedAgainAndNotForEver) {
  JobSpec spec = in_image(single("one", "red", 1));
  submit(spec);
  for (int tries = 1; job("one").phase != Phase::kFailed; ++tries) {
    ASSERT_LT(tries, 20);
    ASSERT_EQ(job("one").attempt, tries);
    bring_nothing({.code = ErrorCode::kUnavailable, .what = "n1 does not answer"});
    if (job("one").phase == Phase::kFailed) break;
    EXPECT_EQ(job("one").phase, Phase::kQueued) << "it waits a moment";
    EXPECT_TRUE(noted("one", "n1 does not answer; it is tried again"));
    clock_.advance(std::chrono::minutes(1));
    ASSERT_TRUE(controller_->uncordon("n1"));  // which wakes the scheduler
    settle();
  }
  EXPECT_EQ(job("one").failure->cause, "n1 does not answer");
  EXPECT_EQ(job("one").attempt, 4);
}

TEST_F(Preparing, AHostThatAnswersAgainIsForgivenItsSilence) {
  submit(in_image(single("one", "red", 1)));
  bring_nothing({.code = ErrorCode::kUnavailable, .what = "n1 does not answer"});
  clock_.advance(std::chrono::minutes(1));
  ASSERT_TRUE(controller_->uncordon("n1"));
  settle();

  bring_all();

  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_EQ(job("one").attempt, 2);
}

TEST_F(Preparing, AJobIsPreparedElsewhereWhenItsNodeHasFallenSilent) {
  submit(in_image(single("one", "red", 1)));
  auto nodes = engine_.offered;
  engine::call_silent(nodes[0], clock_.now());
  nodes.push_back({.name = "n2", .task_slots = 100, .gpus = 2, .gpu_model = "V100"});
  engine_.set_nodes(nodes);
  settle();
  bring_all();

  ASSERT_EQ(engine_.wishes.size(), 1U);
  EXPECT_EQ(engine_.wishes[0].node, "n2");
  EXPECT_TRUE(engine_.running.empty());
  bring_all();
  EXPECT_EQ(job("one").phase, Phase::kRunning);
}

TEST_F(Preparing, AJobIsPreparedElsewhereWhenItsNodeHasGone) {
  submit(in_image(single("one", "red", 1)));
  engine_.set_nodes({{.name = "n2", .task_slots = 100, .gpus = 2, .gpu_model = "V100"}});
  settle();
  EXPECT_EQ(engine_.wishes[0].node, "n2");
  bring_all();

  EXPECT_EQ(job("one").phase, Phase::kRunning);
}

TEST_F(Preparing, AStopDropsItAtOnceAndLeavesNothing) {
  for (const bool now : {false, true}) {
    submit(two_tasks());
    ASSERT_TRUE(controller_->stop("dist", now));
    settle();

    EXPECT_EQ(job("dist").phase, Phase::kStopped);
    EXPECT_TRUE(engine_.preparing.expired());
    EXPECT_TRUE(engine_.running.empty());
    ASSERT_TRUE(controller_->remove("dist"));
  }
}

TEST_F(Preparing, ASuspendedJobDropsItAndBeginsAnewWhenItIsResumed) {
  submit(two_tasks());
  ASSERT_TRUE(controller_->suspend("dist"));
  settle();
  EXPECT_EQ(job("dist").phase, Phase::kQueued);
  EXPECT_TRUE(engine_.preparing.expired());

  ASSERT_TRUE(controller_->resume("dist"));
  settle();
  bring_all();

  EXPECT_EQ(job("dist").phase, Phase::kRunning);
}

TEST_F(Preparing, ADrainedNodeIsLeftByWhatIsBeingPrepared) {
  submit(in_image(single("one", "red", 1)));
  ASSERT_TRUE(controller_->drain("n1"));
  settle();

  EXPECT_EQ(job("one").phase, Phase::kQueued);
  EXPECT_TRUE(engine_.preparing.expired());
}

TEST_F(Preparing, ImagesThatComeInTheVeryMomentOfAnEvictionStartNothing) {
  submit(in_image(single("one", "red", 1)));
  store_.full = true;  // so it is evicted, and that is not yet done
  EXPECT_FALSE(controller_->suspend("one"));
  bring_all();
  store_.full = false;
  ASSERT_TRUE(controller_->cordon("n1"));
  settle();

  EXPECT_EQ(job("one").phase, Phase::kQueued);
  EXPECT_TRUE(engine_.running.empty());
}

TEST_F(Preparing, ANewServerBeginsAnewWhereverTheOldOneDied) {
  for (const bool before : {true, false}) {
    // Its submission, its placing, the beginning and the end of its preparing, its running.
    for (int commit = 1; commit <= 6; ++commit) {
      SCOPED_TRACE((before ? "before commit " : "after commit ") + std::to_string(commit));
      (before ? store_.dies_before : store_.dies_after) = store_.commits + commit;
      try {
        static_cast<void>(controller_->submit(two_tasks(), "key"));
        settle();
        if (engine_.prepared) bring_all();
      } catch (const Crash&) {
      }
      store_.dies_before = store_.dies_after = 0;
      controller_ = nullptr;
      loop_owner_.emplace();
      come_back();
      ASSERT_TRUE(controller_->submit(two_tasks(), "key"));
      settle();
      if (job("dist").phase != Phase::kRunning) bring_all();
      EXPECT_EQ(job("dist").phase, Phase::kRunning) << text_of(job("dist"));
      for (const auto& [gang, task] : engine_.running) EXPECT_EQ(gang.attempt, job("dist").attempt);
      ASSERT_TRUE(controller_->stop("dist", true));
      settle();
      ASSERT_TRUE(controller_->remove("dist"));
      engine_.prepared = nullptr;
    }
  }
}

TEST_F(Preparing, AServerThatGoesDropsWhatIsUnderWay) {
  submit(two_tasks());
  controller_ = nullptr;

  EXPECT_TRUE(engine_.preparing.expired());
}

TEST_F(Preparing, TheTimeAStartMayTakeBeginsWithTheWorkers) {
  JobSpec spec = two_tasks();
  spec.start_timeout = std::chrono::milliseconds(1);
  submit(spec);
  // A later timer than the one that would have gone off if it had been set.
  const auto later = loop_.after(std::chrono::milliseconds(20), [this] { loop_.stop(); });
  loop_.run();

  EXPECT_EQ(job("dist").phase, Phase::kStarting);
}

TEST_F(Preparing, AJobWithoutAnImageIsRefused) {
  const auto refused = controller_->submit(single("one", "red", 1), "");

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            "nothing says which image main of job 'one' runs in, and this server's tasks are "
            "containers");
}

TEST_F(Preparing, ALineOfShellIsRefusedWhereTheImageHasNone) {
  JobSpec spec = in_image(single("one", "red", 1));
  spec.command = {"sh", "-c", "echo hi"};
  submit(spec);
  bring_all([](ImageFacts& facts) { facts.has_shell = false; });

  ASSERT_EQ(job("one").phase, Phase::kFailed);
  EXPECT_EQ(job("one").failure->cause,
            "main is to run a line of shell, and image 'horovod:0.28' has no shell (/bin/sh)");
  EXPECT_TRUE(engine_.running.empty());
}

TEST_F(Preparing, HowRanksAreStartedAndByWhichMpiIsKeptOverRestarts) {
  submit(two_tasks());
  engine_.mpis["launcher"] = "Open MPI 4.1.4";
  bring_all();

  ASSERT_TRUE(job("dist").launch);
  EXPECT_EQ(job("dist").launch->by, job::LaunchBy::kSsh);
  EXPECT_FALSE(job("dist").launch->why.empty());
  EXPECT_EQ(job("dist").launch->mpi, "Open MPI 4.1.4");
  const job::LaunchFacts before = *job("dist").launch;
  engine_.mpis.clear();
  come_back();
  EXPECT_EQ(job("dist").launch, before);
}

TEST_F(Preparing, AnImageWithoutSshdIsLaunchedByTheAgentUnlessSshWasAskedFor) {
  submit(two_tasks());
  bring_all([](ImageFacts& facts) { facts.sshd.clear(); });
  EXPECT_EQ(job("dist").launch->by, job::LaunchBy::kAgent);

  JobSpec spec = two_tasks("other");
  spec.launch = job::LaunchBy::kSsh;
  submit(spec);
  bring_all([](ImageFacts& facts) { facts.sshd.clear(); });
  EXPECT_EQ(job("other").phase, Phase::kFailed);
}

// --- ranks

TEST_F(Preparing, RanksThatAllRunOnTheLauncherEndTheJobAtOnce) {
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

TEST_F(Preparing, WhatAScriptMayMeanIsOnlyToldOnce) {
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
                            return event.text ==
                                   "all 2 ranks run on the launcher and none on a "
                                   "worker";
                          }),
            1);
}

// --- nodes that do not answer

TEST_F(Preparing, AJobGoesOnWhileItsNodeDoesNotAnswerAndSaysSo) {
  submit(in_image(single("one", "red", 2)));
  bring_all();
  const auto machines = engine_.offered;
  auto silent = machines;
  engine::call_silent(silent[0], clock_.now());
  engine_.set_nodes(silent);
  settle();

  EXPECT_EQ(job("one").phase, Phase::kRunning);
  EXPECT_EQ(job("one").reason, "runs; node n1 does not answer since 2023-11-14T22:13:20Z");
  EXPECT_TRUE(noted("one", "node n1 does not answer"));
  EXPECT_EQ(controller_->node("n1")->state, "gone");
  submit(in_image(single("two", "red", 0)));
  EXPECT_EQ(job("two").phase, Phase::kQueued) << "nothing new is placed there";

  engine_.set_nodes(machines);
  settle();
  EXPECT_EQ(job("one").reason, "runs");
  EXPECT_TRUE(noted("one", "node n1 answers again"));
  EXPECT_EQ(controller_->node("n1")->state, "ready");
  EXPECT_EQ(job("two").phase, Phase::kStarting);
}

TEST_F(Preparing, AJobWhoseNodeHasGoneIsLostAndNamesIt) {
  submit(in_image(single("one", "red", 2)));
  bring_all();
  engine_.set_nodes({});
  settle();

  EXPECT_EQ(job("one").phase, Phase::kFailed);
  EXPECT_EQ(job("one").failure->cause, "main was lost: node n1 has gone");
}

TEST_F(Preparing, ALauncherIsNotStartedOnANodeThatHasFallenSilent) {
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
  EXPECT_TRUE(noted("dist", "node " + of_launcher + " does not answer; it is tried again"));
  EXPECT_TRUE(engine_.running.empty());
}

}  // namespace
}  // namespace muster::control
