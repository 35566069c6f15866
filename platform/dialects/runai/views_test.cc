#include "dialects/runai/views.h"

#include <gtest/gtest.h>

#include <string>

#include "dialects/runai/runai.h"
#include "dialects/runai/test_jobs.h"

namespace muster::dialects::runai {

namespace {

using job::Job;
using job::Phase;

TEST(Views, ListHasAColumnForEachThingAndTwoBlanksBetween) {
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

TEST(Views, GpusThatAreAskedForByTheirMemoryAreShownSo) {
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

TEST(Views, DescriptionSaysWhyAJobWaitsAndUntilWhen) {
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

TEST(Views, DescriptionSaysWhyAJobIsBeingEnded) {
  Job job = mpi_job("dist", 1);
  job.eviction = job::SuspendedByUser{};
  job.reason = job::Remark{"is being ended; it was preempted by 'urgent'"};

  const std::string text = job_description(job, kNow, false);

  EXPECT_NE(text.find("STATUS:                   Terminating\n"), std::string::npos);
  EXPECT_NE(text.find("\nReason:\n  is being ended; it was preempted by 'urgent'\n"),
            std::string::npos);
}

TEST(Views, DescriptionSaysWhyAJobFailedAndWarnsOfThatEvent) {
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

TEST(Views, DescriptionSaysHowRanksWereStartedOnceItIsKnown) {
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

TEST(Views, DescriptionForProgramsHasTheNamesOfRunAi) {
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
