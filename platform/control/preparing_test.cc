// Jobs on an engine that runs images, from their placing until their tasks start.
#include <gtest/gtest.h>

#include "control/test_in_images.h"
#include "engine/engine.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using base::ErrorCode;
using engine::ImageRequest;
using job::JobSpec;
using job::Phase;
using launch::ImageFacts;

using Preparing = InImages;

TEST_F(Preparing, NothingStartsBeforeItsImagesAreThere) {
  submit(two_tasks());
  EXPECT_EQ(job("dist").phase, Phase::kStarting);
  EXPECT_EQ(job("dist").reason, "checks for image horovod:0.28");
  EXPECT_TRUE(engine_.running.empty());

  clock_.advance(std::chrono::seconds(12));
  bring_all();

  EXPECT_EQ(job("dist").phase, Phase::kRunning) << text_of(job("dist"));
  EXPECT_TRUE(noted("dist", "checks for image horovod:0.28"));
  EXPECT_TRUE(noted("dist", "its images are present after 12s"));
}

TEST_F(Preparing, EachPlacedTaskIsPreparedWithTheSettingsOfItsRole) {
  JobSpec spec = two_tasks();
  spec.user = "ada";
  spec.registry = {.server = "reg:5000", .username = "ada", .secret = "registry"};
  spec.container.pull = job::PullPolicy::kAlways;
  spec.leader.image = "launcher:1";
  spec.leader.user = "root";
  submit(spec);

  ASSERT_EQ(engine_.image_requests.size(), 2U);
  const ImageRequest& launcher = engine_.image_requests[0];
  EXPECT_EQ(launcher.task, "launcher");
  EXPECT_EQ(launcher.image, "launcher:1");
  EXPECT_EQ(launcher.user, "root");
  EXPECT_EQ(launcher.username, "");
  const ImageRequest& worker = engine_.image_requests[1];
  EXPECT_EQ(worker.task, "worker-0");
  EXPECT_EQ(worker.node, "n1");
  EXPECT_EQ(worker.image, "horovod:0.28");
  EXPECT_EQ(worker.user, "ada");
  EXPECT_EQ(worker.pull, job::PullPolicy::kAlways);
  EXPECT_EQ(worker.registry, "reg:5000");
  EXPECT_EQ(worker.password, kRegistryPassword);
}

TEST_F(Preparing, ThePasswordOfARegistryIsInNoDocumentOfAJob) {
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

TEST_F(Preparing, TheProgressOfThePreparationIsShownAndNotStored) {
  submit(two_tasks());
  const int commits = store_.commits;
  int calls = 0;
  const auto watch = controller_->jobs().watch("dist", [&] {
    ++calls;
    loop_.stop();
  });
  for (int done = 0; done < 500; ++done) {
    engine_.progress(job::FetchesImage{
        .node = "n1", .image = "horovod:0.28", .done_megabytes = done, .all_megabytes = 500});
  }
  EXPECT_EQ(job("dist").reason, "n1 fetches horovod:0.28 (0 of 500 MB)");

  while (job("dist").reason != "n1 fetches horovod:0.28 (499 of 500 MB)") loop_.run();

  EXPECT_EQ(calls, 2);
  EXPECT_EQ(store_.commits, commits);
  EXPECT_EQ(store_.load()->jobs[0].reason, "checks for image horovod:0.28");
}

TEST_F(Preparing, AnErrorOfThePreparationFailsTheJob) {
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
    EXPECT_TRUE(noted("one", "n1 does not answer; the job is retried"));
    clock_.advance(std::chrono::minutes(1));
    ASSERT_TRUE(controller_->nodes().uncordon("n1"));  // which wakes the scheduler
    settle();
  }
  EXPECT_EQ(job("one").failure->cause, "n1 does not answer");
  EXPECT_EQ(job("one").attempt, 4);
}

TEST_F(Preparing, AHostThatAnswersAgainIsForgivenItsSilence) {
  submit(in_image(single("one", "red", 1)));
  bring_nothing({.code = ErrorCode::kUnavailable, .what = "n1 does not answer"});
  clock_.advance(std::chrono::minutes(1));
  ASSERT_TRUE(controller_->nodes().uncordon("n1"));
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

  ASSERT_EQ(engine_.image_requests.size(), 1U);
  EXPECT_EQ(engine_.image_requests[0].node, "n2");
  EXPECT_TRUE(engine_.running.empty());
  bring_all();
  EXPECT_EQ(job("one").phase, Phase::kRunning);
}

TEST_F(Preparing, AJobIsPreparedElsewhereIfItsNodeIsLost) {
  submit(in_image(single("one", "red", 1)));
  engine_.set_nodes({{.name = "n2", .task_slots = 100, .gpus = 2, .gpu_model = "V100"}});
  settle();
  EXPECT_EQ(engine_.image_requests[0].node, "n2");
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

TEST_F(Preparing, AJobThatIsBeingPreparedLeavesADrainedNode) {
  submit(in_image(single("one", "red", 1)));
  ASSERT_TRUE(controller_->nodes().drain("n1"));
  settle();

  EXPECT_EQ(job("one").phase, Phase::kQueued);
  EXPECT_TRUE(engine_.preparing.expired());
}

TEST_F(Preparing, ImagesThatComeInTheVeryMomentOfAnEvictionStartNothing) {
  submit(in_image(single("one", "red", 1)));
  store_.full = true;  // the eviction is decided, and not committed
  EXPECT_FALSE(controller_->suspend("one"));
  bring_all();
  store_.full = false;
  ASSERT_TRUE(controller_->nodes().cordon("n1"));
  settle();

  EXPECT_EQ(job("one").phase, Phase::kQueued);
  EXPECT_TRUE(engine_.running.empty());
}

TEST_F(Preparing, ANewServerBeginsAnewWhereverTheOldOneDied) {
  int crashes = 0;
  for (const bool before : {true, false}) {
    // Its submission, its placement, the start and the end of its preparation, and its start.
    for (int commit = 1; commit <= 6; ++commit) {
      SCOPED_TRACE((before ? "before commit " : "after commit ") + std::to_string(commit));
      (before ? store_.dies_before : store_.dies_after) = store_.commits + commit;
      try {
        static_cast<void>(controller_->submit(two_tasks(), "key"));
        settle();
        if (engine_.prepared) bring_all();
      } catch (const Crash&) {
        ++crashes;
      }
      store_.dies_before = store_.dies_after = 0;
      be_killed();
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
  EXPECT_GT(crashes, 0);
}

TEST_F(Preparing, AServerThatEndsDropsItsPreparations) {
  submit(two_tasks());
  controller_ = nullptr;

  EXPECT_TRUE(engine_.preparing.expired());
}

TEST_F(Preparing, TheTimeAStartMayTakeBeginsWithTheWorkers) {
  JobSpec spec = two_tasks();
  spec.start_timeout = std::chrono::milliseconds(1);
  submit(spec);
  // A timer that would fire after the timer of the job, if that had been set.
  const auto later = loop_.after(std::chrono::milliseconds(20), [this] { loop_.stop(); });
  loop_.run();

  EXPECT_EQ(job("dist").phase, Phase::kStarting);
}

TEST_F(Preparing, AJobWithoutAnImageIsRefused) {
  const auto refused = controller_->submit(single("one", "red", 1), "");

  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            "main of job 'one' has no image, and this server's tasks are containers");
}

TEST_F(Preparing, ALineOfShellIsRefusedWhereTheImageHasNone) {
  JobSpec spec = in_image(single("one", "red", 1));
  spec.command = {"sh", "-c", "echo hi"};
  submit(spec);
  bring_all([](ImageFacts& facts) { facts.has_shell = false; });

  ASSERT_EQ(job("one").phase, Phase::kFailed);
  EXPECT_EQ(job("one").failure->cause,
            "main runs a shell command line, but image 'horovod:0.28' has no shell (/bin/sh)");
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

}  // namespace
}  // namespace muster::control
