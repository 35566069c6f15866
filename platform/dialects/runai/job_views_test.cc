#include "dialects/runai/job_views.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dialects/runai/runai.h"
#include "dialects/runai/test_jobs.h"

namespace muster::dialects::runai {

namespace {

using namespace std::chrono_literals;

TEST(Age, IsOneNumberWithTheLargestUnitRoundedDown) {
  const std::vector<std::pair<std::chrono::nanoseconds, std::string>> cases{
      {-2s, "<invalid>"},   {-1s, "0s"},       {-500ms, "0s"},       {0s, "0s"},
      {59s, "59s"},         {59999ms, "59s"},  {60s, "1m"},          {119s, "1m"},
      {59min + 59s, "59m"}, {1h, "1h"},        {23h + 59min, "23h"}, {24h, "1d"},
      {24h * 364, "364d"},  {24h * 365, "1y"}, {24h * 729, "1y"},    {24h * 730, "2y"},
  };
  for (const auto& [age, words] : cases) {
    EXPECT_EQ(age_words(age), words) << std::chrono::duration<double>(age).count();
  }
}

TEST(Age, OfAPodCountsFromItsStartAndOfAWaitingPodFromTheSubmission) {
  const base::Time now = base::FakeClock().now();
  job::Job job;
  job.submitted = now - 3h;

  EXPECT_EQ(age_of(job, now), "3h");
  EXPECT_EQ(age_of(job, job::Task{.started = now - 2min}, now), "2m");
  EXPECT_EQ(age_of(job, job::Task{}, now), "3h");
}

TEST(Age, TheDurationOfAnEndedJobIsConstant) {
  const base::Time now = base::FakeClock().now();
  job::Job job;
  EXPECT_EQ(duration_of(job, now), "0s");
  job.started = now - 10min;
  EXPECT_EQ(duration_of(job, now), "10m");
  job.ended = now - 8min;
  EXPECT_EQ(duration_of(job, now), "2m");
}

}  // namespace

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
    task.phase = task.role == job::TaskRole::kLauncher ? launcher : workers;
  }
}

TEST(Status, OfAJobDependsOnAllItsPods) {
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

TEST(Status, TimedOutIsReportedOnlyForTheTimeLimit) {
  Job job = ended_job("dist", 1, Phase::kFailed, 1);
  job.spec.scheduling.time_limit = std::chrono::minutes(2);
  EXPECT_EQ(status_of(job), "Failed") << "it ended by itself";

  job.tasks.front().exit = job::ExitStatus{.signal = 15, .stopped = true};
  EXPECT_EQ(status_of(job), "TimedOut");

  job.spec.scheduling.time_limit = std::chrono::minutes(20);
  EXPECT_EQ(status_of(job), "Failed") << "there was time left";
}

TEST(Status, AnElasticGangRunsWithItsCurrentWorkers) {
  Job job = mpi_job("dist", 3);
  job.spec.scheduling.min_workers = 2;
  job.tasks[3].phase = TaskPhase::kPending;
  job.tasks[3].node.clear();

  EXPECT_EQ(status_of(job), "Running");
}

TEST(Status, AWorkerThatLeftAnElasticGangAffectsOnlyItsOwnStatus) {
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

TEST(Status, OfAnEndedPodShowsHowItEnded) {
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
  EXPECT_EQ(status_of(done, done.tasks[1]), "Completed") << "a worker ends when it is stopped";
}

TEST(Status, OfAPodThatHasNotStarted) {
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

TEST(Status, APodThatCouldNotStartHasFailed) {
  Job job = waiting_job("single", 0);
  job.phase = Phase::kFailed;
  job.attempt = 1;
  job.failure = {.task = "", .cause = job::Remark{"cannot start main: there is no '/nonexistent'"}};
  job.tasks.resize(1);
  EXPECT_EQ(status_of(job, job.tasks[0]), "ContainerCannotRun");
  const std::string page = job_description(job, kNow, false);
  EXPECT_NE(page.find("FAILED PODS:              1\n"), std::string::npos) << page;

  job.attempt = 0;  // for example, a job on which it depends has failed
  EXPECT_EQ(status_of(job, job.tasks[0]), "N/A");
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

TEST(Status, TheUserIsTheGivenOneOrElseTheOwner) {
  Job job = mpi_job("dist", 1);
  EXPECT_EQ(user_of(job), "ada");
  job.spec.annotations[kUser] = "grace";
  EXPECT_EQ(user_of(job), "grace");
  job.spec.annotations.clear();
  job.owner.clear();
  EXPECT_EQ(user_of(job), "-");
}

TEST(Status, CountsPodsByState) {
  EXPECT_EQ(count_pods(mpi_job("dist", 2)), (PodCounts{.running = 3}));
  EXPECT_EQ(count_pods(waiting_job("dist", 2)), (PodCounts{.pending = 3}));
  EXPECT_EQ(count_pods(ended_job("dist", 2, Phase::kSucceeded)), (PodCounts{.succeeded = 3}));
  EXPECT_EQ(count_pods(ended_job("dist", 2, Phase::kFailed, 1)), (PodCounts{.failed = 1}));
  Job held = waiting_job("dist", 2);
  held.suspended = true;
  EXPECT_EQ(count_pods(held), PodCounts{});
}

TEST(Status, CountsAllocatedAndRequestedGpus) {
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

TEST(Status, TheNodeIsASingleNodeMultipleOrNone) {
  Job job = mpi_job("dist", 2);
  EXPECT_EQ(node_of(job), "gpu-7");
  job.tasks[2].node = "gpu-8";
  EXPECT_EQ(node_of(job), "<multiple>");
  EXPECT_EQ(node_of(waiting_job("dist", 2)), "N/A");
}

}  // namespace

namespace {

TEST(Views, ListHasAlignedColumnsSeparatedByTwoBlanks) {
  Job half = waiting_job("half", 1);
  half.spec.resources = {.gpu_share_milli = 500};
  half.spec.image.clear();
  half.owner.clear();
  half.spec.scheduling.purpose = job::Purpose::kBuild;

  EXPECT_EQ(job_list({mpi_job("dist", 2), ended_job("done", 2, Phase::kSucceeded), half}, kNow),
            "NAME  STATUS     AGE  NODE   IMAGE            TYPE         PROJECT  USER"
            "  GPUs Allocated (Requested)  PODs Running (Pending)  SERVICE URL(S)\n"
            "dist  Running    5m   gpu-7  demo/quickstart  Train        team-a   ada "
            "  2 (2)                       3 (0)\n"
            "done  Succeeded  5m   gpu-7  demo/quickstart  Train        team-a   ada "
            "  - (2)                       0 (0)\n"
            "half  Pending    5m   N/A    -                Interactive  team-a   -   "
            "  0 (0.5)                     0 (2)\n");
}

TEST(Views, GpusRequestedByMemoryAreShownAsMemory) {
  Job job = waiting_job("dist", 2);
  job.spec.resources = {.gpu_memory_bytes = int64_t{4} << 30};
  EXPECT_EQ(gpus_of(job), "0 (8Gi)");
}

TEST(Views, DescriptionShowsEveryLineThePodsAndTheEvents) {
  Job job = mpi_job("dist", 2);
  job.spec.annotations[kCommandLine] = "runai submit-mpi dist --processes=2 -g 1";
  job.events = {{kNow - std::chrono::minutes(5), job::Remark{"submitted"}},
                {kNow - std::chrono::minutes(4), job::Remark{"running"}}};

  EXPECT_EQ(job_description(job, kNow, false),
            "NAME:                     dist\n"
            "NAMESPACE:                runai-team-a\n"
            "TYPE:                     Train\n"
            "STATUS:                   Running\n"
            "TRAINING DURATION:        4m\n"
            "GPUS:                     1\n"
            "TOTAL REQUESTED GPUS:     2\n"
            "ALLOCATED GPUS:           2\n"
            "ALLOCATED GPUS MEMORY:    -\n"
            "RUNNING PODS:             3\n"
            "PENDING PODS:             0\n"
            "PARALLELISM:              1\n"
            "COMPLETIONS:              1\n"
            "SUCCEEDED PODS:           0\n"
            "FAILED PODS:              0\n"
            "IS DISTRIBUTED WORKLOAD:  true\n"
            "CREATED BY CLI:           true\n"
            "SERVICE URL(S):\n"
            "COMMAND LINE:             runai submit-mpi dist --processes=2 -g 1\n"
            "\n"
            "Pods:\n"
            "POD            STATUS   TYPE   AGE  NODE\n"
            "dist-launcher  RUNNING  TRAIN  4m   gpu-7\n"
            "dist-worker-0  RUNNING  TRAIN  4m   gpu-7\n"
            "dist-worker-1  RUNNING  TRAIN  4m   gpu-7\n"
            "\n"
            "Events:\n"
            "SOURCE    TYPE    AGE  MESSAGE\n"
            "job/dist  Normal  5m   submitted\n"
            "job/dist  Normal  4m   running\n");
}

TEST(Views, DescriptionShowsWhyAJobWaitsAndUntilWhen) {
  Job job = waiting_job("dist", 1);
  job.reason.details = {job::Remark{"'other' holds 1 GPU"}};
  job.may_start = kNow + std::chrono::minutes(90);

  const std::string text = job_description(job, kNow, false);

  EXPECT_NE(text.find("\nReason:\n"
                      "  needs 2 GPUs; 1 is free\n"
                      "  'other' holds 1 GPU\n"
                      "  may start in 1h\n"
                      "\nPods:\n"
                      "POD            STATUS   TYPE   AGE  NODE\n"
                      "dist-launcher  PENDING  TRAIN  5m   N/A\n"
                      "dist-worker-0  PENDING  TRAIN  5m   N/A\n"
                      "\nEvents:\n"
                      "No events for resources\n"),
            std::string::npos)
      << text;
}

TEST(Views, DescriptionShowsWhyAJobIsBeingEnded) {
  Job job = mpi_job("dist", 1);
  job.eviction = job::SuspendedByUser{};
  job.reason = job::Remark{"is being ended; it was preempted by 'urgent'"};

  const std::string text = job_description(job, kNow, false);

  EXPECT_NE(text.find("STATUS:                   Terminating\n"), std::string::npos);
  EXPECT_NE(text.find("\nReason:\n  is being ended; it was preempted by 'urgent'\n"),
            std::string::npos);
}

TEST(Views, DescriptionShowsWhyAJobFailedAndMarksThatEventAsAWarning) {
  Job job = ended_job("dist", 1, Phase::kFailed, 3);
  job.failure = job::Failure{.task = "launcher",
                             .cause = job::Remark{"launcher exited with code 3"},
                             .advice = "read its logs",
                             .last_lines = {"no such file"}};
  job.events = {{kNow, job::Failed{job::Remark{"launcher exited with code 3"}}}};

  const std::string text = job_description(job, kNow, true);

  EXPECT_NE(text.find("\nReason:\n"
                      "  launcher exited with code 3\n"
                      "  last lines of launcher:\n"
                      "    no such file\n"
                      "  read its logs\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("dist-launcher  ERROR       TRAIN  4m   gpu-7  -     exited with code 3"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("job/dist  Warning  0s   launcher exited with code 3\n"), std::string::npos)
      << text;
}

TEST(Views, DescriptionShowsTheLaunchMethodOnceItIsKnown) {
  Job job = mpi_job("dist", 1);
  EXPECT_EQ(job_description(job, kNow, false).find("LAUNCH:"), std::string::npos);
  job.launch = job::LaunchFacts{
      .by = job::LaunchBy::kSsh, .why = "the images have sshd and ssh", .mpi = "Open MPI 4.1.4"};

  const std::string text = job_description(job, kNow, false);

  EXPECT_NE(
      text.find("LAUNCH:                   by ssh: the images have sshd and ssh; Open MPI 4.1.4\n"),
      std::string::npos)
      << text;
}

TEST(Views, DescriptionAsJsonHasRunAisNames) {
  Job job = mpi_job("dist", 1);
  job.spec.annotations[kCommandLine] = "runai submit-mpi dist";

  EXPECT_EQ(job_description_json(job, kNow),
            R"({"name":"dist","namespace":"runai-team-a","duration":"4m","status":"Running",)"
            R"("trainer":"mpijob","chiefName":"dist-launcher","priority":"train",)"
            R"("commandLine":"runai submit-mpi dist","instances":[)"
            R"({"status":"Running","name":"dist-launcher","age":"4m","node":"gpu-7","chief":true},)"
            R"({"status":"Running","name":"dist-worker-0","age":"4m","node":"gpu-7","chief":false})"
            R"(]})");
}

}  // namespace

}  // namespace muster::dialects::runai
