#include "control/first_failure.h"

#include <gtest/gtest.h>

#include <csignal>
#include <utility>

namespace muster::control {
namespace {

using job::ExitStatus;
using std::chrono::milliseconds;

base::Time at(int64_t ms) {
  return base::Time(milliseconds(1'700'000'000'000 + ms));
}

PrintedEnd own(int64_t ms) {
  return {.error = PrintedError{.time = at(ms)}, .report = {}};
}
PrintedEnd consequence(int64_t ms) {
  return {.error = PrintedError{.time = at(ms), .is_consequence = true}, .report = {}};
}
PrintedEnd reports(PrintedEnd end, ExitStatus status) {
  end.report = RankEnd{.rank = 0, .host = {}, .status = std::move(status)};
  return end;
}

const ExitStatus kExit1{.code = 1};
const ExitStatus kStopped{.signal = SIGTERM, .stopped = true};

struct EndOfTask {
  std::string name;
  ExitStatus exit;
  int64_t ended = 0;  ///< milliseconds
  PrintedEnd printed = {};
};

struct FaultCase {
  std::string name;
  std::vector<EndOfTask> ends;
  std::string loss;   ///< the task whose loss made the gang end; empty: its leader ended
  std::string fault;  ///< the expected task
};

job::Job job_of(job::Kind kind, const std::vector<EndOfTask>& ends) {
  job::Job job{.id = "j1", .spec = {.name = "dist", .kind = kind}};
  for (const EndOfTask& end : ends) {
    job::Task task{.name = end.name, .role = job::TaskRole::kWorker};
    if (end.name == "master") task.role = job::TaskRole::kMaster;
    if (end.name == "launcher") task.role = job::TaskRole::kLauncher;
    task.phase = job::TaskPhase::kEnded;
    task.exit = end.exit;
    task.ended = at(end.ended);
    job.tasks.push_back(std::move(task));
  }
  return job;
}

job::Task fault_of(const job::Job& job, const FaultCase& known) {
  PrintedEnds printed;
  for (const EndOfTask& end : known.ends) printed[end.name] = end.printed;
  GangLoss loss;
  for (const job::Task& task : job.tasks) {
    if (task.name == known.loss) loss.task = &task;
  }
  return task_at_fault(job, loss, printed);
}

// The agents of torchrun look at their ranks every few seconds, so their ends come in any order.
TEST(TaskAtFault, IsTheOneThatFailedFirstInAnyOrderOfTheEnds) {
  const FaultCase cases[] = {
      {"a consequence ends first; the cause ends by itself",
       {{"master", kExit1, 5000, consequence(700)}, {"worker-0", kExit1, 5100, own(0)}},
       "",
       "worker-0"},
      {"a consequence ends first; the cause is stopped",
       {{"master", kExit1, 5000, consequence(700)}, {"worker-0", kStopped, 5100, own(0)}},
       "",
       "worker-0"},
      {"the cause ends first",
       {{"master", kStopped, 5200, consequence(700)}, {"worker-0", kExit1, 5000, own(0)}},
       "worker-0",
       "worker-0"},
      {"a worker ends first as a consequence; the leader is the cause",
       {{"master", kStopped, 5200, own(0)}, {"worker-0", kExit1, 5000, consequence(700)}},
       "worker-0",
       "master"},
      {"a worker ends first as a consequence of another worker",
       {{"master", kStopped, 5200, consequence(710)},
        {"worker-0", kExit1, 5000, consequence(700)},
        {"worker-1", kExit1, 5100, own(0)}},
       "worker-0",
       "worker-1"},
      {"two have errors of their own: the earlier error counts",
       {{"master", kExit1, 5000, own(20)}, {"worker-0", kExit1, 5100, own(10)}},
       "",
       "worker-0"},
      {"only consequences: the task that ended first",
       {{"master", kExit1, 5000, consequence(700)}, {"worker-0", kExit1, 5100, consequence(600)}},
       "",
       "master"},
      {"a rank that ended silently is the cause",
       {{"master", kExit1, 5000, consequence(700)}, {"worker-0", {.code = 3}, 5100, {}}},
       "",
       "worker-0"},
      {"a rank that a signal ended is the cause, although a rank beside it reports the loss",
       {{"master", kExit1, 5000, consequence(700)},
        {"worker-0", kExit1, 5100, reports(consequence(650), {.signal = SIGKILL})}},
       "",
       "worker-0"},
      {"a rank that aborted because of a loss is not the cause",
       {{"master", kExit1, 5000, reports(consequence(700), {.signal = SIGABRT})},
        {"worker-0", kExit1, 5100, own(0)}},
       "",
       "worker-0"},
      {"nothing is known of a task that was stopped",
       {{"master", kExit1, 5000, consequence(700)}, {"worker-0", kStopped, 5100, {}}},
       "",
       "master"},
      {"an error of a stopped task came after the request to stop",
       {{"master", kExit1, 5000, consequence(700)}, {"worker-0", kStopped, 5100, own(5050)}},
       "",
       "master"},
      {"an error of a stopped task is old",
       {{"master", kExit1, 100'000, consequence(99'000)}, {"worker-0", kStopped, 100'100, own(0)}},
       "",
       "master"},
      {"an own error of a stopped task does not excuse a task that failed by itself",
       {{"master", kExit1, 5000, own(4000)}, {"worker-0", kStopped, 5100, own(3000)}},
       "",
       "master"},
      {"a killed task is the cause, whatever others printed",
       {{"master", kExit1, 5000, own(0)}, {"worker-0", {.signal = SIGKILL}, 5100, {}}},
       "",
       "worker-0"},
      {"without any lines, the leader that ended first",
       {{"master", kExit1, 5000, {}}, {"worker-0", kExit1, 5100, {}}},
       "",
       "master"},
      {"without any lines, a worker that ended before the leader",
       {{"master", kExit1, 5000, {}}, {"worker-0", kExit1, 4000, {}}},
       "",
       "worker-0"},
      {"at the same time, the task whose end was noticed first",
       {{"master", kExit1, 5000, {}}, {"worker-0", kExit1, 5000, {}}},
       "worker-0",
       "worker-0"},
  };
  for (const FaultCase& known : cases) {
    const job::Task fault = fault_of(job_of(job::Kind::kTorch, known.ends), known);
    EXPECT_EQ(fault.name, known.fault) << known.name;
  }
}

TEST(TaskAtFault, ThatWasStoppedTooLateFailedByItself) {
  const FaultCase known{
      "",
      {{"master", kExit1, 5000, consequence(700)}, {"worker-0", kStopped, 5100, own(0)}},
      "",
      ""};
  EXPECT_EQ(fault_of(job_of(job::Kind::kTorch, known.ends), known).exit, ExitStatus{.code = 1});
}

TEST(ExitedBefore, IsTheFirstTaskOfAPyTorchJobThatHadExitedWithCode0) {
  const std::vector<EndOfTask> ends{
      {"master", kExit1, 5000},        {"worker-0", {}, 4900},
      {"worker-1", {}, 4000},          {"worker-2", {.stopped = true}, 3000},
      {"worker-3", {.code = 3}, 2000}, {"worker-4", {}, 1000}};
  job::Job job = job_of(job::Kind::kTorch, ends);
  job.tasks[5].left = true;
  const auto before = [&](int64_t ms) {
    job.tasks[0].ended = at(ms);
    const job::Task* const task = exited_before(job, job.tasks[0]);
    return task == nullptr ? "" : task->name;
  };
  EXPECT_EQ(before(5000), "worker-1");
  EXPECT_EQ(before(4500), "worker-1");
  EXPECT_EQ(before(4000), "");
  job.spec.kind = job::Kind::kGrpc;
  EXPECT_EQ(before(5000), "") << "workers of a TensorFlow cluster may end early";
}

TEST(TaskAtFault, OfAnMpiJobIsTheLauncherUnlessAWorkerWasLost) {
  const FaultCase known{
      "", {{"launcher", {.code = 3}, 5000, {}}, {"worker-0", kStopped, 5100, own(0)}}, "", ""};
  const job::Job job = job_of(job::Kind::kMpi, known.ends);
  EXPECT_EQ(fault_of(job, known).name, "launcher");
  EXPECT_TRUE(tasks_to_read(job, 10).empty());
}

TEST(TasksToRead, AreThoseThatFailedOrWereStoppedInTheOrderOfTheirEnds) {
  const auto names = [](const job::Job& job, size_t most) {
    std::string text;
    for (const job::Task* task : tasks_to_read(job, most)) text += task->name + " ";
    return text;
  };
  job::Job job = job_of(job::Kind::kTorch, {{"master", kExit1, 5000},
                                            {"worker-0", kStopped, 4900},
                                            {"worker-1", {}, 1000},
                                            {"worker-2", {.lost = true}, 1000}});
  EXPECT_EQ(names(job, 10), "worker-0 master ");
  EXPECT_EQ(names(job, 1), "worker-0 ");
  job.tasks[1].exit = ExitStatus{};
  EXPECT_EQ(names(job, 10), "") << "nothing to compare the leader with";
}

}  // namespace
}  // namespace muster::control
