#include "control/failure.h"

#include <gtest/gtest.h>

#include <csignal>

#include "control/test_launcher_words.h"
#include "engine/fake_engine.h"

namespace muster::control {
namespace {

job::Job mpi_job() {
  job::Job job{.spec = {.name = "dist", .kind = job::Kind::kMpi, .workers = 2}};
  job.tasks = job::tasks_of(job.spec);
  return job;
}

TEST(Census, AgreesWhenEveryRankRanOnAWorker) {
  EXPECT_EQ(census_fault(mpi_job(), {{0, 2, "worker-0"}, {1, 2, "worker-1"}}), "");
}

TEST(Census, CatchesRanksThatAllRanOnTheLauncher) {
  const std::string fault = census_fault(mpi_job(), {{0, 2, "launcher"}, {1, 2, "launcher"}});
  EXPECT_NE(fault.find("all ranks ran on the launcher"), std::string::npos);
}

TEST(Census, CatchesAWorldThatWasNeverWhole) {
  EXPECT_EQ(census_fault(mpi_job(), {{0, 4, "worker-0"}, {1, 4, "worker-1"}}),
            "only 2 of 4 ranks ever started");
}

TEST(Census, AcceptsSeveralProgramsOfOneJob) {
  // First mpirun -np 2, then mpirun -np 1: the file of rank 0 now speaks of a world of 1.
  EXPECT_EQ(census_fault(mpi_job(), {{0, 1, "worker-0"}, {0, 2, "worker-1"}, {1, 2, "worker-1"}}),
            "");
}

TEST(Census, HasNothingToSayWhereNoRankWasSeen) {
  EXPECT_EQ(census_fault(mpi_job(), {}), "");
  EXPECT_EQ(census_fault({.spec = {.kind = job::Kind::kSingle}}, {{0, 1, "main"}}), "");
}

TEST(Failure, NamesTheTaskTheCauseAndWhatToTry) {
  job::Task task{.name = "worker-1", .role = job::Role::kWorker};
  task.exit = job::ExitStatus{.signal = SIGKILL, .out_of_memory = true};

  const job::Failure failure = failure_of(task, {"last"});

  EXPECT_EQ(failure.task, "worker-1");
  EXPECT_EQ(failure.cause,
            "worker-1 was killed by signal 9 (SIGKILL): the kernel's out-of-memory killer struck");
  EXPECT_NE(failure.advice.find("memory"), std::string::npos);
  EXPECT_EQ(failure.last_lines, std::vector<std::string>{"last"});
}

TEST(Failure, TellsWhatToDoFromTheLaunchersOwnWords) {
  job::Task task{.name = "launcher", .role = job::Role::kLauncher};
  task.exit = job::ExitStatus{.code = 1};

  const job::Failure failure =
      failure_of(task, {"There are not enough slots available in the system"});

  EXPECT_NE(failure.advice.find("--workers"), std::string::npos);
}

TEST(Failure, ShowsWhatTheLauncherSaidFirstAndNotTheEndOfItsExplanation) {
  job::Task task{.name = "launcher", .role = job::Role::kLauncher};
  task.exit = job::ExitStatus{.code = 1};
  std::vector<std::string> lines(50, "long explanation");
  lines[20] = "There are not enough slots available in the system";

  const job::Failure failure = failure_of(task, lines);

  EXPECT_EQ(failure.last_lines.size(), 12U);
  EXPECT_EQ(failure.last_lines.front(), lines[20]);
}

using Lines = std::vector<std::string>;

job::Task launcher(job::ExitStatus status) {
  job::Task task{.name = "launcher", .role = job::Role::kLauncher, .hostname = "dist-launcher"};
  task.exit = std::move(status);
  return task;
}

job::Task worker(const std::string& name) {
  return {.name = name, .role = job::Role::kWorker, .hostname = "dist-" + name, .node = "n2"};
}

TEST(Failure, NamesTheRankThatFailedFirstAndWhereItRan) {
  Evidence evidence{.task = launcher({.code = 3}), .lines = lines_of(kOpenMpiExit3)};
  evidence.rank = first_failed(evidence.lines);
  evidence.where = worker("worker-1");
  evidence.rank_lines = {"loading", "no such data set"};

  const job::Failure failure = failure_of(evidence);

  EXPECT_EQ(failure.task, "worker-1");
  EXPECT_EQ(failure.rank, 1);
  EXPECT_EQ(failure.cause, "rank 1 on worker-1 exited with code 3");
  EXPECT_EQ(failure.last_lines, evidence.rank_lines);
}

TEST(Failure, OfARankIsExplainedByTheExceptionThatItPrinted) {
  Evidence evidence{.task = launcher({.code = 1}), .lines = lines_of(kOpenMpiExit3)};
  evidence.rank = RankEnd{.rank = 1, .host = {}, .status = {.code = 1}};
  evidence.where = worker("worker-1");
  evidence.rank_lines = Lines(70, "epoch");
  for (const char* line :
       {"Traceback (most recent call last):", "  File \"train.py\", line 4, in <module>",
        "ValueError: no data", "cleaning up"}) {
    evidence.rank_lines.emplace_back(line);
  }

  const job::Failure failure = failure_of(evidence);

  EXPECT_EQ(failure.cause,
            "rank 1 on worker-1 exited with code 1: ValueError: no data (train.py, line 4)");
  EXPECT_EQ(failure.last_lines.size(), 12U);
}

TEST(Failure, OfARankThatWasKilledSaysWhetherTheKernelWasShortOfMemory) {
  Evidence evidence{.task = launcher({.code = 137}), .lines = lines_of(kOpenMpiKilled)};
  evidence.rank = first_failed(evidence.lines);
  evidence.where = worker("worker-1");
  evidence.where->exit = job::ExitStatus{.signal = SIGKILL, .stopped = true};

  EXPECT_EQ(failure_of(evidence).cause, "rank 1 on worker-1 was killed by signal 9 (SIGKILL)");
  EXPECT_NE(failure_of(evidence).advice.find("dmesg"), std::string::npos);

  evidence.where->exit->out_of_memory = true;
  EXPECT_EQ(
      failure_of(evidence).cause,
      "rank 1 on worker-1 was killed by signal 9 (SIGKILL): the kernel's out-of-memory killer "
      "struck");
}

TEST(Failure, OfARankWhoseOutputWentThroughTheLauncherShowsWhatThatPrintedBesidesItsOwnWords) {
  Evidence evidence{.task = launcher({.code = 9}), .lines = lines_of(kMpichKilled)};
  evidence.rank = first_failed(evidence.lines);
  evidence.where = worker("worker-1");

  const job::Failure failure = failure_of(evidence);

  EXPECT_EQ(failure.task, "worker-1");
  EXPECT_FALSE(failure.rank);
  EXPECT_EQ(failure.cause, "a rank on worker-1 was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(failure.last_lines, (Lines{"[launcher] rank 1 here", "[launcher] about to fail",
                                       "[launcher] ", "[launcher] rank 0 here"}));
}

TEST(Failure, OfARankThatGaveUpByItselfSaysSo) {
  Evidence evidence{.task = launcher({.code = 5}), .lines = lines_of(kMpichAbort)};
  evidence.rank = first_failed(evidence.lines);

  const job::Failure failure = failure_of(evidence);

  EXPECT_EQ(failure.cause, "rank 1 called MPI_Abort with error code 5");
  EXPECT_EQ(failure.task, "launcher");
  EXPECT_TRUE(failure.last_lines.empty());
}

TEST(Failure, OfAProgramThatMpirunDidNotFindDoesNotReadASignalIntoItsCode) {
  const job::Failure failure = failure_of(launcher({.code = 134}), lines_of(kOpenMpiNotFound));

  EXPECT_EQ(failure.cause, "launcher exited with code 134: mpirun did not find the program");
  EXPECT_NE(failure.advice.find("full path"), std::string::npos);
}

/// A job of two workers whose tasks have printed something.
class Gathered : public testing::Test {
 protected:
  Gathered() {
    job_.tasks = {launcher({.code = 3}), worker("worker-0"), worker("worker-1")};
    engine_.logs["launcher"] = [] {
      std::string text;
      for (const std::string& line : lines_of(kOpenMpiKilled)) text += line + "\n";
      return text;
    }();
  }

  Evidence gather() { return evidence_of(engine_, {"j1", 1}, job_, job_.tasks[0]); }

  base::EventLoop loop_;
  engine::FakeEngine engine_{loop_};
  job::Job job_{.id = "j1", .spec = {.name = "dist", .kind = job::Kind::kMpi, .workers = 2}};
};

TEST_F(Gathered, ARankIsLookedForWhereTheCensusSaw) {
  engine_.census = {{0, 2, "worker-1"}, {1, 2, "worker-0"}};

  const Evidence evidence = gather();

  EXPECT_EQ(evidence.rank->rank, 1);
  EXPECT_EQ(evidence.where->name, "worker-0");
  EXPECT_EQ(culprit_of(evidence).node, "n2");
  EXPECT_EQ(culprit_of(evidence).exit->code, 3);
}

TEST_F(Gathered, WithoutACensusTheHostThatTheLauncherNamesIsItsTask) {
  EXPECT_EQ(gather().where->name, "worker-1");
}

TEST_F(Gathered, ATaskThatWasStoppedOrLostTellsOfNoRank) {
  job_.tasks[0].exit = job::ExitStatus{.lost = true};
  EXPECT_FALSE(gather().rank);
}

}  // namespace
}  // namespace muster::control
