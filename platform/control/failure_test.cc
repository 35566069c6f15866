#include "control/failure.h"

#include <gtest/gtest.h>

#include <csignal>

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

}  // namespace
}  // namespace muster::control
