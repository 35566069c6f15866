#include "dialects/runai/status.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "dialects/runai/runai.h"
#include "dialects/runai/test_jobs.h"

namespace muster::dialects::runai {

namespace {

using job::Job;
using job::Phase;
using job::TaskPhase;

struct Case {
  std::string name;
  std::function<void(Job&)> change;
  std::string status;
};

void set_tasks(Job& job, TaskPhase launcher, TaskPhase workers) {
  for (job::Task& task : job.tasks) {
    task.phase = task.role == job::Role::kLauncher ? launcher : workers;
  }
}

TEST(Status, OfAJobIsThatOfAllOfItsPods) {
  const std::vector<Case> cases{
      {"all run", [](Job&) {}, "Running"},
      {"a worker waits", [](Job& job) { job.tasks[2].phase = TaskPhase::kPending; }, "Pending"},
      {"a worker is started", [](Job& job) { job.tasks[2].phase = TaskPhase::kStarting; },
       "ContainerCreating"},
      {"waits in the queue", [](Job& job) { job = waiting_job("dist", 2); }, "Pending"},
      {"its launcher waits for its workers",
       [](Job& job) {
         job.phase = Phase::kStarting;
         set_tasks(job, TaskPhase::kPending, TaskPhase::kStarting);
       },
       "Init:0/1"},
      {"its launcher is started",
       [](Job& job) {
         job.phase = Phase::kStarting;
         set_tasks(job, TaskPhase::kStarting, TaskPhase::kRunning);
       },
       "ContainerCreating"},
      {"is evicted", [](Job& job) { job.eviction = job::SuspendedByUser{}; }, "Terminating"},
      {"is stopped", [](Job& job) { job.stop_requested = true; }, "Terminating"},
      {"was evicted, and waits to start again",
       [](Job& job) {
         job = waiting_job("dist", 2);
         job.attempt = job.restarts = 1;
       },
       "Pending"},
      {"is suspended",
       [](Job& job) {
         job = waiting_job("dist", 2);
         job.suspended = true;
       },
       "Suspended"},
      {"succeeded", [](Job& job) { job = ended_job("dist", 2, Phase::kSucceeded); }, "Succeeded"},
      {"failed", [](Job& job) { job = ended_job("dist", 2, Phase::kFailed, 1); }, "Failed"},
      {"was stopped", [](Job& job) { job = ended_job("dist", 2, Phase::kStopped); }, "Stopped"},
  };
  for (const Case& one : cases) {
    Job job = mpi_job("dist", 2);
    one.change(job);
    EXPECT_EQ(status_of(job), one.status) << one.name;
  }
}

TEST(Status, TimedOutIsWhatItsTimeLimitEndedAndNothingElse) {
  Job job = ended_job("dist", 1, Phase::kFailed, 1);
  job.spec.scheduling.time_limit = std::chrono::minutes(2);
  EXPECT_EQ(status_of(job), "Failed") << "it ended by itself";

  job.tasks.front().exit = job::ExitStatus{.signal = 15, .stopped = true};
  EXPECT_EQ(status_of(job), "TimedOut");

  job.spec.scheduling.time_limit = std::chrono::minutes(20);
  EXPECT_EQ(status_of(job), "Failed") << "there was time left";
}

TEST(Status, AnElasticGangRunsWithTheWorkersThatItHas) {
  Job job = mpi_job("dist", 3);
  job.spec.scheduling.min_workers = 2;
  job.tasks[3].phase = TaskPhase::kPending;
  job.tasks[3].node.clear();

  EXPECT_EQ(status_of(job), "Running");
}

TEST(Status, OfAWorkerThatLeftAnElasticGangIsItsOwnAlone) {
  Job job = mpi_job("dist", 2);
  job.spec.scheduling.min_workers = 1;
  job.tasks[2].left = true;
  EXPECT_EQ(status_of(job, job.tasks[2]), "Terminating");

  job.tasks[2].phase = TaskPhase::kEnded;
  job.tasks[2].exit = job::ExitStatus{.signal = 15, .stopped = true};
  job.tasks[2].node = "gpu-9";
  job.tasks.push_back(job::next_worker(job, 2));
  job.tasks[3].phase = TaskPhase::kRunning;
  job.tasks[3].node = "gpu-7";
  job.tasks[3].devices = {1};
  job.tasks[3].gpu_share_milli = 1000;

  EXPECT_EQ(status_of(job, job.tasks[2]), "Terminated");
  EXPECT_EQ(status_of(job), "Running");
  EXPECT_EQ(node_of(job), "gpu-7");
  EXPECT_EQ(count_pods(job).running, 3);
  EXPECT_EQ(count_gpus(job).requested_milli, 2000);
  EXPECT_EQ(count_gpus(job).allocated_milli, 2000);
}

TEST(Status, OfAPodSaysHowItEnded) {
  struct End {
    job::ExitStatus exit;
    std::string status;
  };
  const std::vector<End> ends{
      {{.code = 0}, "Completed"},
      {{.code = 3}, "Error"},
      {{.signal = 11}, "Error"},
      {{.signal = 9, .out_of_memory = true}, "OOMKilled"},
      {{.lost = true}, "Unknown"},
      {{.code = 127, .error = "there is no such program"}, "ContainerCannotRun"},
      {{.signal = 15, .stopped = true}, "Terminated"},
  };
  for (const End& end : ends) {
    Job job = ended_job("dist", 1, Phase::kFailed);
    job.tasks[0].exit = end.exit;
    EXPECT_EQ(status_of(job, job.tasks[0]), end.status);
  }
  const Job done = ended_job("dist", 1, Phase::kSucceeded);
  EXPECT_EQ(status_of(done, done.tasks[1]), "Completed") << "a worker ends when it is told to";
}

TEST(Status, OfAPodThatHasNotBegun) {
  Job job = waiting_job("dist", 1);
  EXPECT_EQ(status_of(job, job.tasks[1]), "Pending");
  job.suspended = true;
  EXPECT_EQ(status_of(job, job.tasks[1]), "Suspended");
  job.suspended = false;
  job.phase = Phase::kStarting;
  EXPECT_EQ(status_of(job, job.tasks[0]), "Init:0/1");
  job.tasks[1].phase = TaskPhase::kStarting;
  EXPECT_EQ(status_of(job, job.tasks[1]), "ContainerCreating");
  job.eviction = job::SuspendedByUser{};
  EXPECT_EQ(status_of(job, job.tasks[1]), "Terminating");
  job = waiting_job("dist", 1);
  job.phase = Phase::kStopped;
  EXPECT_EQ(status_of(job, job.tasks[1]), "N/A");
}

TEST(Status, TypesFollowThePurpose) {
  Job job = mpi_job("dist", 1);
  EXPECT_EQ(type_of(job), "Train");
  job.spec.scheduling.purpose = job::Purpose::kBuild;
  EXPECT_EQ(type_of(job), "Interactive");
  job.spec.scheduling.preemptible = true;
  EXPECT_EQ(type_of(job), "Interactive-Preemptible");
  job.spec.scheduling.purpose = job::Purpose::kInference;
  EXPECT_EQ(type_of(job), "Inference");
}

TEST(Status, TheUserIsTheOneThatWasSaidOrElseTheOwner) {
  Job job = mpi_job("dist", 1);
  EXPECT_EQ(user_of(job), "ada");
  job.spec.annotations[kUser] = "grace";
  EXPECT_EQ(user_of(job), "grace");
  job.spec.annotations.clear();
  job.owner.clear();
  EXPECT_EQ(user_of(job), "-");
}

TEST(Status, CountsPodsByWhatTheyDo) {
  EXPECT_EQ(count_pods(mpi_job("dist", 2)), (PodCounts{.running = 3}));
  EXPECT_EQ(count_pods(waiting_job("dist", 2)), (PodCounts{.pending = 3}));
  EXPECT_EQ(count_pods(ended_job("dist", 2, Phase::kSucceeded)), (PodCounts{.succeeded = 3}));
  EXPECT_EQ(count_pods(ended_job("dist", 2, Phase::kFailed, 1)), (PodCounts{.failed = 1}));
  Job held = waiting_job("dist", 2);
  held.suspended = true;
  EXPECT_EQ(count_pods(held), PodCounts{});
}

TEST(Status, CountsGpusThatAreHeldAndThatAreWanted) {
  EXPECT_EQ(count_gpus(mpi_job("dist", 2)),
            (GpuCounts{.allocated_milli = 2000, .requested_milli = 2000}));
  EXPECT_EQ(count_gpus(waiting_job("dist", 2)), (GpuCounts{.requested_milli = 2000}));
  EXPECT_EQ(count_gpus(ended_job("dist", 2, Phase::kSucceeded)),
            (GpuCounts{.requested_milli = 2000}));
  Job half = mpi_job("dist", 1);
  half.spec.resources = {.gpu_share_milli = 500};
  half.tasks[1].gpu_share_milli = 500;
  EXPECT_EQ(count_gpus(half), (GpuCounts{.allocated_milli = 500, .requested_milli = 500}));
}

TEST(Status, TheNodeIsOneOrMultipleOrNone) {
  Job job = mpi_job("dist", 2);
  EXPECT_EQ(node_of(job), "gpu-7");
  job.tasks[2].node = "gpu-8";
  EXPECT_EQ(node_of(job), "<multiple>");
  EXPECT_EQ(node_of(waiting_job("dist", 2)), "N/A");
}

}  // namespace

}  // namespace muster::dialects::runai
