#include "control/controller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "base/fake_random.h"
#include "engine/fake_engine.h"
#include "logs/log_follower.h"
#include "store/memory_store.h"
#include "words/sentence.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using base::ErrorCode;
using engine::AdoptionResult;
using engine::FakeEngine;
using engine::GangId;
using job::Job;
using job::JobSpec;
using job::Kind;
using job::Phase;

JobSpec mpi_job(std::string name = "dist") {
  return {.name = std::move(name),
          .kind = Kind::kMpi,
          .command = {"mpirun", "train"},
          .workers = 2,
          .folder = "/"};
}

JobSpec one_task_job(std::string name = "one") {
  return {.name = std::move(name), .command = {"train"}, .folder = "/"};
}

class Control : public testing::Test {
 protected:
  Control() { make(); }

  void make() {
    controller_ = nullptr;
    controller_ = std::make_unique<Controller>(
        ControllerDependencies{
            .loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
        SiteFacts{.user = "ada"});
  }

  /// Runs all posted work, and the work that it posts.
  void settle() {
    for (int round = 0; round < 20; ++round) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
    }
  }

  Job submit(const JobSpec& spec) {
    const auto job = controller_->submit(spec, "");
    EXPECT_TRUE(job) << job.error().to_string();
    settle();
    return job ? *job : Job{};
  }

  const Job& job(const std::string& name) { return **controller_->jobs().find(name); }
  GangId gang(const std::string& name) { return {job(name).id, job(name).attempt}; }

  /// An MPI job whose workers answer and whose launcher runs.
  void run_mpi(const JobSpec& spec = mpi_job()) {
    submit(spec);
    engine_.answer(gang(spec.name), "worker-0");
    engine_.answer(gang(spec.name), "worker-1");
    settle();
    ASSERT_EQ(job(spec.name).phase, Phase::kRunning);
  }

  bool called(const std::string& words) const {
    return std::any_of(engine_.calls.begin(), engine_.calls.end(), [&](const std::string& call) {
      return call.find(words) != std::string::npos;
    });
  }

  base::EventLoop loop_;
  store::MemoryStore store_;
  FakeEngine engine_{loop_};
  base::FakeClock clock_;
  base::FakeRandom random_;
  std::unique_ptr<Controller> controller_;
};

TEST_F(Control, ASingleJobRunsAndSucceeds) {
  submit(one_task_job());
  EXPECT_EQ(job("one").phase, Phase::kRunning);

  engine_.end(gang("one"), "main", {});
  settle();

  EXPECT_EQ(job("one").phase, Phase::kSucceeded);
  EXPECT_EQ(job("one").exit_code, 0);
  EXPECT_TRUE(called("scrub"));
  EXPECT_TRUE(controller_->idle());
}

TEST_F(Control, ATakenNameGetsTheNextNumberIfAsked) {
  const auto name_of_next = [&](const SubmitManner& manner) {
    const auto job = controller_->submit(one_task_job("train"), "", {}, manner);
    return job ? job->spec.name : job.error().what;
  };

  EXPECT_EQ(name_of_next({.name_suffix = true}), "train");
  EXPECT_EQ(name_of_next({}), "job 'train' exists already");
  EXPECT_EQ(name_of_next({.name_suffix = true}), "train-2");
  EXPECT_EQ(name_of_next({.name_template = "train-{n}"}), "train-3");
  EXPECT_EQ(name_of_next({.name_template = "run-{n}-b"}), "run-1-b");
  EXPECT_EQ(name_of_next({.name_template = "run-{n}-b"}), "run-2-b");
  EXPECT_EQ(name_of_next({.name_template = "Train"}), "the name template 'Train' is invalid");
}

TEST_F(Control, JobsOfOneTurnOfTheLoopGetDifferentNumbers) {
  std::vector<std::string> names;
  const auto note = [&](const Result<job::Job>& job) {
    names.push_back(job ? job->spec.name : job.error().what);
  };
  for (int i = 0; i < 3; ++i) {
    controller_->submit(one_task_job("train"), "", note, {}, {.name_suffix = true});
  }
  controller_->submit(one_task_job("train"), "", note, {}, {.name_template = "train-{n}"});
  settle();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"train", "train-2", "train-3", "train-4"}));
}

TEST_F(Control, AnIdempotencyKeyGivesTheFirstJobWhateverItsNumber) {
  const SubmitManner manner{.name_template = "train-{n}"};
  const auto first = controller_->submit(one_task_job("train"), "key", {}, manner);
  const auto again = controller_->submit(one_task_job("train"), "key", {}, manner);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->spec.name, "train-1");
  EXPECT_EQ(again->id, first->id);
}

TEST_F(Control, AJobKeepsItsOrigin) {
  const job::JobOrigin origin{.name = "train", .id = "abc"};
  const auto job = controller_->submit(one_task_job("train-2"), "", {}, {.origin = origin});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->origin, origin);
}

TEST_F(Control, AJobRunsAgainAfterTheJobItWaitedForWasDeleted) {
  submit(one_task_job("prep"));
  JobSpec train = one_task_job("train");
  train.after = {{.job = "prep"}};
  submit(train);
  for (const char* const name : {"prep", "train"}) {
    engine_.end(gang(name), "main", {});
    settle();
  }
  ASSERT_TRUE(controller_->remove("prep"));
  train.name = "train-2";
  EXPECT_FALSE(controller_->submit(train, ""));

  const SubmitManner rerun{.origin = job::JobOrigin{.name = "train", .id = job("train").id}};
  EXPECT_TRUE(controller_->forecast(train, rerun));
  ASSERT_TRUE(controller_->submit(train, "", {}, rerun));
  settle();

  EXPECT_EQ(job("train-2").phase, Phase::kRunning);
  // It has not waited for this job.
  train.name = "train-3";
  train.after.push_back({.job = "other"});
  const auto refused = controller_->submit(train, "", {}, rerun);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().faults.size(), 1U);
}

TEST_F(Control, TheLauncherWaitsUntilEveryWorkerHasAnswered) {
  submit(mpi_job());
  engine_.answer(gang("dist"), "worker-1");
  settle();
  EXPECT_FALSE(called("start") && called("launcher"));

  engine_.answer(gang("dist"), "worker-0");
  settle();

  EXPECT_TRUE(called("launcher"));
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
}

TEST_F(Control, TheWorkersAreStoppedWhenTheLauncherHasEnded) {
  run_mpi();
  engine_.end(gang("dist"), "launcher", {});
  settle();

  EXPECT_TRUE(called("worker-0 now"));
  EXPECT_TRUE(engine_.running.empty());
  EXPECT_EQ(job("dist").phase, Phase::kSucceeded);
}

TEST_F(Control, ALostWorkerFailsTheJobAndIsNamed) {
  run_mpi();
  engine_.logs["worker-1"] = "the last\nlines of it\n";
  engine_.end(gang("dist"), "worker-1", {.signal = SIGKILL});
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  ASSERT_TRUE(job("dist").failure);
  EXPECT_EQ(job("dist").failure->task, "worker-1");
  EXPECT_EQ(job("dist").failure->cause, "worker-1 was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(job("dist").exit_code, 128 + SIGKILL);
  EXPECT_EQ(job("dist").failure->last_lines, (std::vector<std::string>{"the last", "lines of it"}));
  EXPECT_TRUE(engine_.running.empty());
}

TEST_F(Control, ADeadWorkerIsNamedEvenIfTheLauncherEndsFirst) {
  run_mpi();
  engine_.stops_obey = false;
  engine_.end(gang("dist"), "launcher", {.code = 205});
  engine_.end(gang("dist"), "worker-0", {.signal = SIGTERM, .stopped = true});
  engine_.end(gang("dist"), "worker-1", {.signal = SIGKILL});
  settle();

  EXPECT_EQ(job("dist").failure->task, "worker-1");
  EXPECT_EQ(job("dist").exit_code, 205);
}

TEST_F(Control, AWorkerThatNeverAnswersFailsTheJobAndIsNamed) {
  JobSpec spec = mpi_job();
  spec.start_timeout = std::chrono::milliseconds(1);
  submit(spec);
  engine_.answer(gang("dist"), "worker-0");
  while (!job::is_final(job("dist").phase)) settle();

  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  EXPECT_EQ(job("dist").failure->cause, "worker-1 did not answer on its ssh port within 1ms");
  EXPECT_FALSE(called("start " + job("dist").id + "/1 launcher"));
}

TEST_F(Control, AnErrorOfTheEngineFailsTheJobWithItsWords) {
  engine_.start_errors["worker-1"] = {
      .code = ErrorCode::kNotFound, .what = "bwrap is missing", .advice = "install it"};
  submit(mpi_job());
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  EXPECT_EQ(job("dist").failure->cause, "bwrap is missing");
  EXPECT_EQ(job("dist").failure->advice, "install it");
  EXPECT_EQ(job("dist").exit_code, 1);
}

TEST_F(Control, AJobForWhichAMachineHasNoProcessLeftIsTriedAgainAndNotForEver) {
  const base::Error exhausted{
      .code = ErrorCode::kExhausted,
      .what = "cannot start 'muster-shim': Resource temporarily unavailable"};
  engine_.start_errors["worker-1"] = exhausted;
  submit(mpi_job());
  settle();
  for (int tries = 1; job("dist").phase != Phase::kFailed; ++tries) {
    ASSERT_LT(tries, 20);
    ASSERT_EQ(job("dist").attempt, tries);
    EXPECT_EQ(job("dist").phase, Phase::kQueued) << "it waits a moment";
    engine_.start_errors["worker-1"] = exhausted;
    clock_.advance(std::chrono::minutes(1));
    ASSERT_TRUE(controller_->nodes().uncordon("node"));  // which wakes the scheduler
    settle();
  }
  EXPECT_EQ(job("dist").attempt, 4);
  EXPECT_EQ(job("dist").failure->cause, exhausted.what);
}

TEST_F(Control, AJobWhoseAddressIsInUseStartsAgainWithOtherAddresses) {
  engine_.start_errors["worker-0"] = {.code = ErrorCode::kConflict, .what = "address in use"};
  submit(mpi_job());
  settle();

  EXPECT_EQ(job("dist").attempt, 2);
  EXPECT_EQ(job("dist").phase, Phase::kStarting);
}

TEST_F(Control, AJobWhoseEndIsReportedFirstHasRun) {
  engine_.slow_starts = {"main"};
  submit(one_task_job());
  settle();
  ASSERT_EQ(job("one").phase, Phase::kStarting);
  engine_.end(gang("one"), "main", {}, clock_.now());
  settle();
  engine_.finish_start("main");
  settle();

  EXPECT_EQ(job("one").phase, Phase::kSucceeded);
  EXPECT_EQ(job("one").started, clock_.now());
  const auto& events = job("one").events;
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const job::Event& event) {
    return event.what == job::Fact(job::Notice{job::Notice::What::kRunning});
  }));
}

TEST_F(Control, ATaskThatCouldNotBeStartedHasNotRun) {
  engine_.slow_starts = {"main"};
  submit(one_task_job());
  settle();
  engine_.end(gang("one"), "main", {.code = 126, .error = "cannot become the account"},
              clock_.now());
  settle();
  engine_.finish_start("main");
  settle();

  EXPECT_EQ(job("one").phase, Phase::kFailed);
  EXPECT_EQ(job("one").started, std::nullopt);
}

TEST_F(Control, ACensusThatDisagreesFailsAJobWhoseLauncherSucceeded) {
  run_mpi();
  engine_.census = {{0, 2, "launcher"}, {1, 2, "launcher"}};
  engine_.end(gang("dist"), "launcher", {});
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  EXPECT_NE(words::sentence(job("dist").failure->cause).find("ran on the launcher"),
            std::string::npos);
  EXPECT_EQ(job("dist").exit_code, 1);
}

TEST_F(Control, StoppingAsksTheLauncherFirstAndEndsStopped) {
  run_mpi();
  ASSERT_TRUE(controller_->stop("dist", false));
  settle();

  EXPECT_TRUE(called("launcher gracefully"));
  EXPECT_EQ(job("dist").phase, Phase::kStopped);
  EXPECT_EQ(job("dist").exit_code, 128 + SIGTERM);
  EXPECT_FALSE(job("dist").failure);
}

TEST_F(Control, StoppingAJobThatStartsLeavesNothing) {
  submit(mpi_job());
  ASSERT_TRUE(controller_->stop("dist", false));
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kStopped);
  EXPECT_TRUE(engine_.running.empty());
}

TEST_F(Control, StoppingAJobThatWaitsEndsItAtOnce) {
  engine_.set_nodes({});
  submit(one_task_job());
  EXPECT_EQ(job("one").phase, Phase::kQueued);

  ASSERT_TRUE(controller_->stop("one", false));

  EXPECT_EQ(job("one").phase, Phase::kStopped);
}

TEST_F(Control, StoppingAStoppedOrEndedJobIsNoError) {
  submit(one_task_job());
  EXPECT_TRUE(controller_->stop("one", false));
  EXPECT_TRUE(controller_->stop("one", true));
  settle();
  EXPECT_TRUE(controller_->stop("one", false));
  EXPECT_EQ(job("one").phase, Phase::kStopped);
}

TEST_F(Control, AJobThatSucceededBeforeTheStopReachedItSucceeded) {
  submit(one_task_job());
  engine_.stops_obey = false;
  ASSERT_TRUE(controller_->stop("one", false));
  engine_.end(gang("one"), "main", {.code = 0, .stopped = true});
  settle();

  EXPECT_EQ(job("one").phase, Phase::kSucceeded);
}

TEST_F(Control, TheSameKeyGivesTheSameJob) {
  const auto first = controller_->submit(one_task_job(), "key");
  const auto second = controller_->submit(one_task_job(), "key");

  ASSERT_TRUE(second);
  EXPECT_EQ(first->id, second->id);
  EXPECT_EQ(controller_->jobs().list().size(), 1U);
}

TEST_F(Control, TheSameKeyForAnotherJobIsRefusedAndNamesWhatDiffers) {
  const auto first = controller_->submit(one_task_job(), "key");
  JobSpec other = one_task_job("two");
  other.environment["LR"] = "0.1";

  for (int i = 0; i < 2; ++i) {
    const auto second = controller_->submit(other, "key");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kConflict);
    ASSERT_EQ(second.error().faults.size(), 2U);
    EXPECT_EQ(second.error().faults[0].field, "name");
    EXPECT_EQ(second.error().faults[1].field, "environment.LR");
    make();
    ASSERT_TRUE(controller_->recover());
  }
  JobSpec array = one_task_job();
  array.array.indexes = "0-1";
  EXPECT_EQ(controller_->submit_array(array, "key").error().code, ErrorCode::kConflict);
  EXPECT_EQ(controller_->submit(one_task_job(), "key")->id, first->id);
  EXPECT_EQ(controller_->jobs().list().size(), 1U);
}

TEST_F(Control, AJobThatGotANameAndLabelsLaterIsStillTheOneOfItsKey) {
  submit(one_task_job());
  const auto first = controller_->submit(one_task_job(), "key", {}, {.name_suffix = true});
  ASSERT_TRUE(controller_->set_labels("one-2", {{"seen", "yes"}}));

  const auto second = controller_->submit(one_task_job(), "key", {}, {.name_suffix = true});

  ASSERT_TRUE(second);
  EXPECT_EQ(first->id, second->id);
}

TEST_F(Control, RefusesANameInUseAndAFaultySpec) {
  submit(one_task_job());

  EXPECT_EQ(controller_->submit(one_task_job(), "").error().code, ErrorCode::kConflict);
  JobSpec faulty = one_task_job("two");
  faulty.command = {};
  faulty.folder = "x";
  EXPECT_EQ(controller_->submit(faulty, "").error().faults.size(), 2U);
}

TEST_F(Control, RemovesOnlyEndedJobs) {
  submit(one_task_job());
  EXPECT_EQ(controller_->remove("one").error().code, ErrorCode::kConflict);

  engine_.end(gang("one"), "main", {});
  settle();
  ASSERT_TRUE(controller_->remove("one"));

  EXPECT_EQ(controller_->jobs().find("one").error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(store_.load()->jobs.empty());
}

TEST_F(Control, SuggestsTheNameThatWasMeant) {
  submit(one_task_job("resnet"));
  EXPECT_EQ(controller_->jobs().find("resnte").error().advice, "did you mean 'resnet'?");
}

TEST_F(Control, AWatcherReceivesEveryChangeUntilItsHandleIsDropped) {
  submit(one_task_job());
  int calls = 0;
  auto handle = controller_->jobs().watch("one", [&] { ++calls; });
  engine_.end(gang("one"), "main", {});
  settle();
  EXPECT_EQ(calls, 1);

  handle.reset();
  ASSERT_TRUE(controller_->remove("one"));
  EXPECT_EQ(calls, 1);
}

// --- a new server over the same store

TEST_F(Control, ANewServerTakesUpARunningJob) {
  run_mpi();
  engine_.adoptable = {{"launcher", AdoptionResult::kRunning},
                       {"worker-0", AdoptionResult::kRunning},
                       {"worker-1", AdoptionResult::kRunning}};
  make();
  ASSERT_TRUE(controller_->recover());
  settle();
  EXPECT_EQ(job("dist").phase, Phase::kRunning);

  engine_.end(gang("dist"), "launcher", {});
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kSucceeded);
  EXPECT_EQ(job("dist").attempt, 1);
}

TEST_F(Control, ANewServerRestartsJobsWhoseLauncherHadNotStarted) {
  submit(mpi_job());
  engine_.adoptable = {{"worker-0", AdoptionResult::kRunning}};
  make();
  ASSERT_TRUE(controller_->recover());
  settle();

  EXPECT_EQ(job("dist").attempt, 2);
  EXPECT_TRUE(called("stop " + job("dist").id + "/1 worker-0 now"));
  EXPECT_EQ(engine_.running.count({{job("dist").id, 1}, "worker-0"}), 0U);
}

TEST_F(Control, ANewServerNeverStartsALauncherTwice) {
  // Committed as Starting: the server dies before it commits the start of the launcher.
  submit(mpi_job());
  engine_.adoptable = {{"launcher", AdoptionResult::kRunning},
                       {"worker-0", AdoptionResult::kRunning},
                       {"worker-1", AdoptionResult::kRunning}};
  make();
  ASSERT_TRUE(controller_->recover());
  settle();

  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
}

TEST_F(Control, ANewServerContinuesToStopJobs) {
  run_mpi();
  engine_.stops_obey = false;
  ASSERT_TRUE(controller_->stop("dist", false));
  engine_.stops_obey = true;
  engine_.adoptable = {{"launcher", AdoptionResult::kRunning},
                       {"worker-0", AdoptionResult::kRunning},
                       {"worker-1", AdoptionResult::kRunning}};
  make();
  ASSERT_TRUE(controller_->recover());
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kStopped);
}

TEST_F(Control, ANewServerReportsALostRunningJob) {
  run_mpi();
  make();
  ASSERT_TRUE(controller_->recover());
  settle();

  EXPECT_EQ(job("dist").phase, Phase::kFailed);
  EXPECT_NE(words::sentence(job("dist").failure->cause).find("was lost"), std::string::npos);
}

TEST_F(Control, ANewServerStartsWaitingJobs) {
  engine_.set_nodes({});
  submit(one_task_job());
  engine_.offered = {{.name = "node", .task_slots = 1}};
  make();
  ASSERT_TRUE(controller_->recover());
  settle();

  EXPECT_EQ(job("one").phase, Phase::kRunning);
}

TEST_F(Control, AWaitingJobHasAReason) {
  engine_.offered = {{.name = "node", .task_slots = 10, .gpus = 1}};
  make();
  JobSpec spec = one_task_job();
  spec.resources.gpus = 1;
  submit(spec);
  spec.name = "two";
  submit(spec);

  EXPECT_EQ(job("two").phase, Phase::kQueued);
  EXPECT_NE(words::sentence(job("two").reason).find("1 GPU"), std::string::npos)
      << job("two").reason;
}

TEST_F(Control, ANodeThatLosesGpusInUseHasZeroFreeGpus) {
  engine_.offered = {{.name = "node", .task_slots = 10, .gpus = 2, .cpu_milli = 2000}};
  make();
  JobSpec spec = one_task_job();
  spec.resources = {.gpus = 2, .cpu_milli = 2000};
  submit(spec);
  ASSERT_EQ(job("one").phase, Phase::kRunning);

  engine_.set_nodes({{.name = "node", .task_slots = 10, .gpus = 1, .cpu_milli = 1000}});
  settle();

  const auto node = controller_->nodes().find("node");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->cpu_milli_free, 0);
  ASSERT_EQ(node->devices.size(), 2U) << "the task still holds both";
  for (const job::Device& device : node->devices) EXPECT_EQ(device.free_milli, 0);
}

TEST_F(Control, TheLogOfAJobThatStartedAgainHoldsEveryAttempt) {
  JobSpec spec = one_task_job();
  spec.scheduling.retries = 1;
  submit(spec);
  engine_.logs["main"] = "a line\n";
  engine_.end(gang("one"), "main", {.code = 1});
  settle();
  engine_.end(gang("one"), "main", {});
  settle();
  ASSERT_EQ(job("one").attempt, 2);

  std::vector<std::string> lines;
  const auto follower = controller_->follow_logs("one", {});
  bool over = false;
  while (!over) {
    follower->pull([&](const job::LogBatch& batch, bool end) {
      for (const auto& record : job::records_of(batch)) lines.push_back(record.text);
      over = end;
    });
    settle();
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"a line", "a line"}));
}

}  // namespace
}  // namespace muster::control
