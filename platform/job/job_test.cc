#include "job/job.h"

#include <gtest/gtest.h>

#include <utility>

namespace muster::job {
namespace {

TEST(TasksOf, AnMpiJobHasALauncherAndItsWorkersEachWithAHostName) {
  const auto tasks = tasks_of({.name = "dist", .kind = Kind::kMpi, .workers = 2});

  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].name, "launcher");
  EXPECT_EQ(tasks[0].role, TaskRole::kLauncher);
  EXPECT_EQ(tasks[1].hostname, "dist-worker-0");
  EXPECT_EQ(tasks[2].hostname, "dist-worker-1");
}

TEST(TasksOf, ASingleJobHasOneTask) {
  const auto tasks = tasks_of({.name = "one"});

  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].name, "main");
}

TEST(TasksOf, AGrpcJobHasAChiefThenWorkersThenParameterServers) {
  const auto tasks =
      tasks_of({.name = "tf", .kind = Kind::kGrpc, .workers = 1, .parameter_servers = 2});

  ASSERT_EQ(tasks.size(), 4U);
  EXPECT_EQ(tasks[0], (Task{.name = "chief", .role = TaskRole::kChief, .hostname = "tf-chief"}));
  EXPECT_EQ(tasks[1].hostname, "tf-worker-0");
  EXPECT_EQ(
      tasks[2],
      (Task{.name = "ps-0", .role = TaskRole::kParameterServer, .hostname = "tf-ps-0", .seat = 2}));
  EXPECT_EQ(tasks[3].name, "ps-1");
}

TEST(TasksOf, AGrpcJobHasItsEvaluatorLast) {
  const auto tasks =
      tasks_of({.name = "tf", .kind = Kind::kGrpc, .parameter_servers = 1, .evaluators = 1});

  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[2], (Task{.name = "evaluator-0",
                            .role = TaskRole::kEvaluator,
                            .hostname = "tf-evaluator-0",
                            .seat = 2}));
}

TEST(NextWorker, HasTheFreeSeatAndANewName) {
  Job job{.spec = {.name = "t", .kind = Kind::kTorch, .workers = 2}};
  job.tasks = tasks_of(job.spec);
  job.tasks[1].left = true;

  job.tasks.push_back(next_worker(job, 1));

  EXPECT_EQ(
      job.tasks.back(),
      (Task{.name = "worker-2", .role = TaskRole::kWorker, .hostname = "t-worker-2", .seat = 1}));
  EXPECT_EQ(next_worker(job, 2).name, "worker-3");
}

TEST(TasksOf, ATorchJobHasAMasterAndWorkers) {
  const auto tasks = tasks_of({.name = "t", .kind = Kind::kTorch, .workers = 1});

  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[0], (Task{.name = "master", .role = TaskRole::kMaster, .hostname = "t-master"}));
  EXPECT_EQ(tasks[1].role, TaskRole::kWorker);
}

TEST(ResourcesOf, DependOnTheRole) {
  const JobSpec spec{.resources = {.gpus = 1},
                     .leader = {.resources = {.gpus = 2}},
                     .parameter_server = {.resources = {.gpus = 3}},
                     .evaluator = {.resources = {.gpus = 4}}};
  const std::pair<TaskRole, int> gpus[] = {
      {TaskRole::kSingle, 1},   {TaskRole::kWorker, 1}, {TaskRole::kLauncher, 2},
      {TaskRole::kChief, 2},    {TaskRole::kMaster, 2}, {TaskRole::kParameterServer, 3},
      {TaskRole::kEvaluator, 4}};
  for (const auto& [role, count] : gpus) {
    EXPECT_EQ(resources_of(spec, role).gpus, count) << to_string(role);
  }
}

TEST(Names, OfKindsReadBack) {
  for (const Kind kind : {Kind::kSingle, Kind::kMpi, Kind::kGrpc, Kind::kTorch}) {
    EXPECT_EQ(kind_of(to_string(kind)), kind);
  }
  for (const auto kind : {Volume::Kind::kHostPath, Volume::Kind::kTree, Volume::Kind::kStorage,
                          Volume::Kind::kArtifacts}) {
    EXPECT_EQ(volume_kind_of(to_string(kind)), kind);
  }
  EXPECT_EQ(kind_of("spark"), std::nullopt);
  EXPECT_EQ(volume_kind_of("nfs"), std::nullopt);
}

TEST(Names, OfLaunchMethodsAndPullPoliciesReadBack) {
  for (const LaunchBy launch :
       {LaunchBy::kAuto, LaunchBy::kSsh, LaunchBy::kAgent, LaunchBy::kSrun}) {
    EXPECT_EQ(launch_by_of(to_string(launch)), launch);
  }
  for (const PullPolicy policy :
       {PullPolicy::kIfMissing, PullPolicy::kAlways, PullPolicy::kNever}) {
    EXPECT_EQ(pull_policy_of(to_string(policy)), policy);
  }
  EXPECT_EQ(launch_by_of("rsh"), std::nullopt);
  EXPECT_EQ(pull_policy_of("IfNotPresent"), std::nullopt);
}

TEST(Names, OfPhasesAndRolesReadBack) {
  for (const Phase phase : {Phase::kQueued, Phase::kStarting, Phase::kRunning, Phase::kSucceeded,
                            Phase::kFailed, Phase::kStopped}) {
    EXPECT_EQ(phase_of(to_string(phase)), phase);
  }
  for (const TaskRole role :
       {TaskRole::kLauncher, TaskRole::kWorker, TaskRole::kSingle, TaskRole::kChief,
        TaskRole::kParameterServer, TaskRole::kMaster, TaskRole::kEvaluator}) {
    EXPECT_EQ(role_of(to_string(role)), role);
  }
  for (const TaskPhase phase :
       {TaskPhase::kPending, TaskPhase::kStarting, TaskPhase::kRunning, TaskPhase::kEnded}) {
    EXPECT_EQ(task_phase_of(to_string(phase)), phase);
  }
  EXPECT_EQ(phase_of("Sleeping"), std::nullopt);
}

TEST(IsFinal, IsTrueAfterSuccessFailureAndStop) {
  EXPECT_FALSE(is_final(Phase::kQueued));
  EXPECT_FALSE(is_final(Phase::kRunning));
  EXPECT_TRUE(is_final(Phase::kStopped));
}

}  // namespace
}  // namespace muster::job
