// Jobs whose tasks run the program themselves: the tasks that the start waits for, and the tasks
// whose end decides.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "control/test_parts.h"
#include "words/sentence.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using job::Phase;

job::JobSpec grpc(const std::string& name, int workers, int parameter_servers) {
  job::JobSpec spec = single(name, "default", 0);
  spec.kind = job::Kind::kGrpc;
  spec.workers = workers;
  spec.parameter_servers = parameter_servers;
  return spec;
}

class Roles : public Scheduling {
 protected:
  const job::Job& submit(const job::JobSpec& spec) {
    const auto submitted = controller_->submit(spec, "");
    EXPECT_TRUE(submitted) << submitted.error().to_string();
    settle();
    return job();
  }

  const job::Job& job() { return *controller_->jobs().list().back(); }
  engine::GangId gang() { return {job().id, job().attempt}; }

  void end(const std::string& task, job::ExitStatus status = {}) {
    engine_.end(gang(), task, std::move(status), clock_.now());
    settle();
  }

  bool called(const std::string& words) const {
    return std::any_of(engine_.calls.begin(), engine_.calls.end(), [&](const std::string& call) {
      return call.find(words) != std::string::npos;
    });
  }

  size_t place_of(const std::string& call) const {
    for (size_t i = 0; i < engine_.calls.size(); ++i) {
      if (engine_.calls[i].find(call) != std::string::npos) return i;
    }
    return engine_.calls.size();
  }
};

TEST_F(Roles, TheChiefStartsWhenParameterServersAndWorkersAreUp) {
  submit(grpc("mnist", 1, 1));

  EXPECT_EQ(job().phase, Phase::kRunning);
  const size_t chief = place_of("start " + job().id + "/1 chief");
  EXPECT_LT(place_of("start " + job().id + "/1 ps-0"), chief);
  EXPECT_LT(place_of("start " + job().id + "/1 worker-0"), chief);
  EXPECT_LT(chief, engine_.calls.size());
}

TEST_F(Roles, AClusterOfTheJobsOwnIsHandedOnAndNotedOnce) {
  job::JobSpec spec = grpc("mnist", 1, 0);
  spec.environment["TF_CONFIG"] = "{}";
  spec.scheduling.retries = 1;
  submit(spec);
  EXPECT_EQ(engine_.plans.at({gang(), "chief"}).environment.at("TF_CONFIG"), "{}");
  end("chief", {.code = 1});
  ASSERT_EQ(job().attempt, 2);

  EXPECT_EQ(
      std::count_if(job().events.begin(), job().events.end(),
                    [](const job::Event& event) {
                      return words::sentence(event.what)
                          .starts_with("the job itself sets TF_CONFIG, so Muster does not set it");
                    }),
      1);
}

TEST_F(Roles, TheJobEndsWithItsChiefAndParameterServersAreStoppedThen) {
  submit(grpc("mnist", 1, 1));

  end("worker-0");
  EXPECT_EQ(job().phase, Phase::kRunning) << "a worker that is done is no loss";
  end("chief");

  EXPECT_EQ(job().phase, Phase::kSucceeded);
  EXPECT_TRUE(called("ps-0 gracefully"));
  EXPECT_TRUE(engine_.running.empty());
}

TEST_F(Roles, WorkersMayEndByThemselvesAfterTheirChief) {
  submit(grpc("mnist", 1, 1));

  end("chief");
  EXPECT_FALSE(called("worker-0 gracefully"));
  EXPECT_EQ(job().phase, Phase::kRunning);
  end("worker-0");

  EXPECT_EQ(job().phase, Phase::kSucceeded);
  EXPECT_FALSE(called("worker-0 gracefully"));
}

job::JobSpec grpc_that_needs_all(int workers) {
  job::JobSpec spec = grpc("mnist", workers, 1);
  spec.success = job::Success::kAll;
  return spec;
}

TEST_F(Roles, AJobThatNeedsAllItsWorkersContinuesUntilTheLastHasEnded) {
  submit(grpc_that_needs_all(2));

  end("worker-1");
  end("chief");
  clock_.advance(std::chrono::hours(1));
  settle();
  EXPECT_EQ(job().phase, Phase::kRunning);
  EXPECT_FALSE(called("ps-0 gracefully"));
  end("worker-0");

  EXPECT_EQ(job().phase, Phase::kSucceeded);
  EXPECT_TRUE(called("ps-0 gracefully"));
  EXPECT_FALSE(called("worker-0 gracefully"));
}

TEST_F(Roles, AJobWhoseChiefEndsBeforeItsAnswerHasItsTimeLimit) {
  engine_.slow_starts = {"chief"};
  job::JobSpec spec = grpc_that_needs_all(1);
  spec.scheduling.time_limit = std::chrono::milliseconds(1);
  submit(spec);
  end("chief");
  engine_.finish_start("chief");

  while (!job::is_final(job().phase)) settle();

  EXPECT_EQ(job().failure->cause, "ran longer than its time limit of 1ms");
}

TEST_F(Roles, AJobThatNeedsAllItsWorkersFailsWithOneAfterItsChief) {
  submit(grpc_that_needs_all(2));

  end("chief");
  end("worker-0", {.code = 3});

  EXPECT_EQ(job().phase, Phase::kFailed);
  EXPECT_EQ(job().failure->task, "worker-0");
  EXPECT_EQ(job().exit_code, 3);
  EXPECT_TRUE(called("worker-1 gracefully"));
}

TEST_F(Roles, AChiefThatIsStoppedInItsStartIsNotTheCause) {
  engine_.slow_starts = {"chief"};
  submit(grpc_that_needs_all(1));

  end("worker-0", {.code = 3});
  EXPECT_TRUE(called("chief gracefully")) << "and its start fails";
  end("ps-0", {.signal = SIGTERM, .stopped = true});

  EXPECT_EQ(job().phase, Phase::kFailed);
  ASSERT_TRUE(job().failure);
  EXPECT_EQ(job().failure->task, "worker-0");
}

TEST_F(Roles, AJobThatNeedsAllItsWorkersIsStoppedAfterItsChief) {
  submit(grpc_that_needs_all(1));

  end("chief");
  ASSERT_TRUE(controller_->stop(job().id, false));
  settle();
  end("worker-0", {.signal = SIGTERM, .stopped = true});

  EXPECT_EQ(job().phase, Phase::kStopped);
}

TEST_F(Roles, AWorkerThatFailsAfterItsChiefHasSucceededChangesNothing) {
  submit(grpc("mnist", 1, 0));

  end("chief");
  end("worker-0", {.code = 1});

  EXPECT_EQ(job().phase, Phase::kSucceeded);
}

TEST_F(Roles, AFailedWorkerFailsTheJobAtOnceAndIsNamed) {
  submit(grpc("mnist", 2, 1));

  end("worker-1", {.code = 3});

  EXPECT_EQ(job().phase, Phase::kFailed);
  ASSERT_TRUE(job().failure);
  EXPECT_EQ(job().failure->task, "worker-1");
  EXPECT_TRUE(called("chief gracefully"));
  EXPECT_TRUE(called("ps-0 gracefully"));
}

TEST_F(Roles, TheExitCodeIsThatOfTheTaskThatFailedFirst) {
  engine_.stops_obey = false;
  submit(grpc("mnist", 2, 0));

  end("worker-1", {.code = 7});
  end("worker-0", {.code = 9});
  end("chief", {.signal = SIGTERM, .stopped = true});

  EXPECT_EQ(job().phase, Phase::kFailed);
  EXPECT_EQ(job().failure->task, "worker-1");
  EXPECT_EQ(job().exit_code, 7);
}

TEST_F(Roles, TheExitCodeOfAStoppedJobIsThatOfItsLeader) {
  submit(grpc("mnist", 1, 0));
  ASSERT_TRUE(controller_->stop(job().id, false));
  settle();

  EXPECT_EQ(job().phase, Phase::kStopped);
  EXPECT_EQ(job().exit_code, 128 + SIGTERM);
}

TEST_F(Roles, AParameterServerThatEndsBeforeItsChiefIsALossWhateverItsExitCode) {
  submit(grpc("mnist", 0, 1));

  end("ps-0");

  EXPECT_EQ(job().phase, Phase::kFailed);
  EXPECT_EQ(job().failure->task, "ps-0");
}

TEST_F(Roles, AFailedChiefIsTheCauseAndNotATaskThatLostItsConnection) {
  engine_.stops_obey = false;
  submit(grpc("mnist", 1, 0));

  end("chief", {.code = 1});
  end("worker-0", {.code = 14});

  EXPECT_EQ(job().phase, Phase::kFailed);
  EXPECT_EQ(job().failure->task, "chief");
  EXPECT_EQ(job().exit_code, 1);
}

// The chief detects the closed connection at once. On a busy machine it ends before the shim of the
// killed task reports the kill.
TEST_F(Roles, AKilledTaskIsToBlameAlsoIfItsEndIsNoticedAfterThatOfTheChief) {
  engine_.stops_obey = false;
  submit(grpc("mnist", 0, 1));

  end("chief", {.code = 1});
  clock_.advance(std::chrono::milliseconds(100));
  end("ps-0", {.signal = SIGKILL});

  EXPECT_EQ(job().failure->task, "ps-0");
  EXPECT_EQ(job().exit_code, 128 + SIGKILL);
}

TEST_F(Roles, AKilledTaskIsTheCauseEvenIfItsShimWasStoppedBeforeItReportedTheKill) {
  engine_.stops_obey = false;
  submit(grpc("mnist", 0, 1));

  end("chief", {.code = 1});
  clock_.advance(std::chrono::milliseconds(100));
  end("ps-0", {.signal = SIGKILL, .stopped = true});

  EXPECT_EQ(job().failure->task, "ps-0");
  EXPECT_EQ(job().exit_code, 128 + SIGKILL);
}

// A worker that loses its connection to a killed task ends at once, and the server may receive the
// report of its end first.
TEST_F(Roles, AKilledTaskIsToBlameInWhicheverOrderTheEndsAreNoticed) {
  using Ends = std::vector<std::pair<std::string, job::ExitStatus>>;
  const std::pair<std::string, job::ExitStatus> chief{"chief", {.code = 1}};
  const std::pair<std::string, job::ExitStatus> worker{"worker-0", {.code = 1}};
  const std::pair<std::string, job::ExitStatus> killed{"ps-0", {.signal = SIGKILL}};
  engine_.stops_obey = false;
  int number = 0;
  for (const Ends& ends :
       {Ends{killed, worker, chief}, Ends{killed, chief, worker}, Ends{worker, killed, chief},
        Ends{worker, chief, killed}, Ends{chief, killed, worker}, Ends{chief, worker, killed}}) {
    SCOPED_TRACE(ends[0].first + ", " + ends[1].first + ", " + ends[2].first);
    submit(grpc("mnist-" + std::to_string(++number), 1, 1));
    bool asked_to_stop = false;
    for (auto [task, status] : ends) {
      status.stopped = std::exchange(asked_to_stop, true);
      end(task, status);
      clock_.advance(std::chrono::milliseconds(50));
    }

    EXPECT_EQ(job().phase, Phase::kFailed);
    EXPECT_EQ(job().failure->task, "ps-0");
    EXPECT_EQ(job().exit_code, 128 + SIGKILL);
  }
}

// torchrun notices the ends of its ranks every few seconds, so the master may end first.
TEST_F(Roles, ATaskThatLostAnotherOneIsNotToBlameAlsoIfItEndsFirst) {
  engine_.stops_obey = false;
  job::JobSpec spec = grpc("ddp", 1, 0);
  spec.kind = job::Kind::kTorch;
  engine_.logs["master"] =
      "Traceback (most recent call last):\n  File \"f.py\", line 4, in <module>\n"
      "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer\n";
  engine_.logs["worker-0"] =
      "Traceback (most recent call last):\n  File \"f.py\", line 3, in <module>\n"
      "FileNotFoundError: [Errno 2] No such file or directory: '/data.bin'\n";
  submit(spec);

  end("master", {.code = 1});
  clock_.advance(std::chrono::milliseconds(100));
  end("worker-0", {.code = 1});

  ASSERT_TRUE(job().failure);
  EXPECT_EQ(job().failure->task, "worker-0");
  EXPECT_EQ(words::sentence(job().failure->cause),
            "worker-0 exited with code 1: FileNotFoundError: [Errno 2] No such file or directory: "
            "'/data.bin' (f.py, line 3)");
}

TEST_F(Roles, AKilledChiefIsToBlameAlsoIfTheEndOfAWorkerIsNoticedFirst) {
  engine_.stops_obey = false;
  submit(grpc("mnist", 1, 1));

  end("worker-0", {.code = 1});
  end("chief", {.signal = SIGKILL, .stopped = true});
  end("ps-0", {.stopped = true});

  EXPECT_EQ(job().failure->task, "chief");
}

TEST_F(Roles, AChiefThatFailedEarlierThanAWorkerIsToBlameAlsoIfItsEndIsNoticedLater) {
  engine_.stops_obey = false;
  submit(grpc("mnist", 1, 0));
  const base::Time first = clock_.now();
  clock_.advance(std::chrono::milliseconds(50));

  end("worker-0", {.code = 14});
  engine_.end(gang(), "chief", {.code = 3}, first);
  settle();

  EXPECT_EQ(job().failure->task, "chief");
  EXPECT_EQ(job().exit_code, 3);
}

TEST_F(Roles, AWorkerThatFailedIsToBlameAndNotATaskThatMusterKilledAfterItsGrace) {
  engine_.stops_obey = false;
  submit(grpc("mnist", 1, 1));

  end("worker-0", {.code = 3});
  end("chief", {.signal = SIGTERM, .stopped = true});
  clock_.advance(job().spec.grace);
  end("ps-0", {.signal = SIGKILL, .stopped = true});

  EXPECT_EQ(job().failure->task, "worker-0");
  EXPECT_EQ(job().exit_code, 3);
}

TEST_F(Roles, AChiefThatSucceedsWhenItIsStoppedDoesNotHideTheFailureOfAWorker) {
  engine_.stops_obey = false;
  submit(grpc("mnist", 1, 0));

  end("worker-0", {.code = 3});
  end("chief", {.stopped = true});

  EXPECT_EQ(job().phase, Phase::kFailed);
  EXPECT_EQ(job().failure->task, "worker-0");
}

TEST_F(Roles, AUserWhoStopsAGangThatHasLostATaskDoesNotHideTheFailure) {
  engine_.stops_obey = false;
  submit(grpc("mnist", 1, 0));

  end("worker-0", {.code = 3});
  ASSERT_TRUE(controller_->stop(job().id, false));
  settle();
  end("chief", {.signal = SIGTERM, .stopped = true});

  EXPECT_EQ(job().phase, Phase::kFailed);
  EXPECT_EQ(job().failure->task, "worker-0");
}

TEST_F(Roles, ALossIsExplainedAfterTheGracePeriodIfTheEndsOfOthersAreNeverReported) {
  engine_.stops_obey = false;
  job::JobSpec spec = grpc("mnist", 1, 1);
  spec.grace = std::chrono::milliseconds(100);
  submit(spec);

  end("worker-0", {.code = 3});
  EXPECT_FALSE(job().failure);
  EXPECT_EQ(job().reason, "is being ended");
  while (!job().failure) settle();

  EXPECT_EQ(job().failure->task, "worker-0");
  EXPECT_EQ(job().phase, Phase::kRunning) << "the others have not ended";
}

TEST_F(Roles, ATaskThatMusterKilledAfterItsGraceIsNotToBlame) {
  engine_.stops_obey = false;
  submit(grpc("mnist", 0, 1));

  end("chief", {.code = 1});
  clock_.advance(job().spec.grace);
  end("ps-0", {.signal = SIGKILL, .stopped = true});

  EXPECT_EQ(job().failure->task, "chief");
}

TEST_F(Roles, OfAKilledChiefAndAKilledTaskTheFirstIsToBlame) {
  engine_.stops_obey = false;
  submit(grpc("mnist", 0, 1));

  end("chief", {.signal = SIGKILL});
  end("ps-0", {.signal = SIGKILL, .stopped = true});

  EXPECT_EQ(job().failure->task, "chief");
}

TEST_F(Roles, AWorkerThatSucceedsBeforeItsChiefHasStartedDoesNotBlockTheStart) {
  ASSERT_TRUE(controller_->submit(grpc("quick", 1, 0), ""));
  // Its end is reported before its start.
  while (engine_.running.empty()) {
    loop_.post([this] { loop_.stop(); });
    loop_.run();
  }
  engine_.end(gang(), "worker-0", {});
  settle();

  EXPECT_EQ(job().phase, Phase::kRunning);
  end("chief");
  EXPECT_EQ(job().phase, Phase::kSucceeded);
}

TEST_F(Roles, EachRoleHasItsOwnClaims) {
  job::JobSpec spec = grpc("mnist", 1, 1);
  spec.resources.gpus = 1;
  spec.leader.resources.gpus = 1;

  submit(spec);

  ASSERT_EQ(job().phase, Phase::kRunning);
  std::map<std::string, size_t> gpus;
  for (const job::Task& task : job().tasks) gpus[task.name] = task.devices.size();
  EXPECT_EQ(gpus, (std::map<std::string, size_t>{{"chief", 1}, {"worker-0", 1}, {"ps-0", 0}}));
}

TEST_F(Roles, AMasterAndItsWorkersRunTheProgramTogether) {
  job::JobSpec spec = single("ddp", "default", 0);
  spec.kind = job::Kind::kTorch;
  spec.workers = 1;

  submit(spec);
  ASSERT_EQ(job().phase, Phase::kRunning);
  end("master");
  end("worker-0");

  EXPECT_EQ(job().phase, Phase::kSucceeded);
}

// --- held

TEST_F(Roles, AHeldJobWaitsUntilItIsResumed) {
  job::JobSpec spec = single("later", "default", 1);
  spec.held = true;

  submit(spec);
  EXPECT_EQ(job().phase, Phase::kQueued);
  EXPECT_TRUE(job().suspended);
  EXPECT_EQ(job().attempt, 0);
  EXPECT_EQ(job().reason, "is held; muster resume later starts it");
  EXPECT_TRUE(engine_.calls.empty());

  ASSERT_TRUE(controller_->resume("later"));
  settle();
  EXPECT_EQ(job().phase, Phase::kRunning);
}

TEST_F(Roles, AHeldJobIsStillHeldAfterARestart) {
  job::JobSpec spec = single("later", "default", 1);
  spec.held = true;
  submit(spec);

  live_again();
  ASSERT_TRUE(controller_->recover());
  settle();

  EXPECT_EQ(job().phase, Phase::kQueued);
  EXPECT_EQ(job().attempt, 0);
}

TEST_F(Roles, AHeldJobThatIsStoppedNeverRuns) {
  job::JobSpec spec = single("later", "default", 1);
  spec.held = true;
  submit(spec);

  ASSERT_TRUE(controller_->stop("later", false));
  settle();

  EXPECT_EQ(job().phase, Phase::kStopped);
  EXPECT_FALSE(job().started);
}

// --- labels

TEST_F(Roles, LabelsOfAnEndedJobCanBeSetAndRemoved) {
  job::JobSpec spec = single("one", "default", 0);
  spec.labels = {{"nightly", ""}, {"team", "vision"}};
  submit(spec);
  end("main");

  const auto changed = controller_->set_labels(
      "one", {{"nightly", std::nullopt}, {"best", ""}, {"gone", std::nullopt}});

  ASSERT_TRUE(changed) << changed.error().to_string();
  const std::map<std::string, std::string> wanted{{"best", ""}, {"team", "vision"}};
  EXPECT_EQ(changed->spec.labels, wanted);
  EXPECT_EQ(store_.load()->jobs.front().spec.labels, wanted);
}

TEST_F(Roles, InvalidLabelsAreRefusedAndNothingChanges) {
  submit(single("one", "default", 0));

  const auto changed = controller_->set_labels("one", {{"best", ""}, {"a=b", "c"}});

  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, base::ErrorCode::kInvalid);
  ASSERT_EQ(changed.error().faults.size(), 1U);
  EXPECT_TRUE(job().spec.labels.empty());
}

// --- programs that cannot be started

TEST_F(Roles, AnImageWithoutACommandIsRefusedIfTheEngineRunsNoImagesAndHasNoSubstitute) {
  job::JobSpec spec = mpi("dist", "default", 1);
  spec.command.clear();
  spec.image = "quickstart:3";

  const auto submitted = controller_->submit(spec, "");

  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, base::ErrorCode::kInvalid);
  EXPECT_EQ(
      submitted.error().what,
      "launcher of job 'dist' has no command, and this server's engine does not run images, so "
      "the program of image 'quickstart:3' is unknown");
  EXPECT_TRUE(controller_->jobs().list().empty());
}

TEST_F(Roles, AnImageIsReportedAsUnusedIfTheEngineRunsNoImages) {
  job::JobSpec spec = single("one", "default", 0);
  spec.image = "quickstart:3";

  submit(spec);

  EXPECT_TRUE(std::any_of(job().events.begin(), job().events.end(), [](const job::Event& event) {
    return words::sentence(event.what) ==
           "this engine does not run images: its tasks use this machine's files instead of "
           "'quickstart:3'";
  }));
}

TEST_F(Roles, FilesThatWereNeverSentAreMissed) {
  job::JobSpec spec = single("one", "default", 0);
  spec.volumes = {
      {.kind = job::Volume::Kind::kTree, .source = std::string(64, 'a'), .target = "/workspace"}};

  const auto submitted = controller_->submit(spec, "");

  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, base::ErrorCode::kNotFound);
}

}  // namespace
}  // namespace muster::control
