#include "job/job.h"

#include <gtest/gtest.h>

namespace muster::job {
namespace {

TEST(TasksOf, AnMpiJobHasALauncherAndItsWorkersEachWithAHostName) {
  const auto tasks = tasks_of({.name = "dist", .kind = Kind::kMpi, .workers = 2});

  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].name, "launcher");
  EXPECT_EQ(tasks[0].role, Role::kLauncher);
  EXPECT_EQ(tasks[1].hostname, "dist-worker-0");
  EXPECT_EQ(tasks[2].hostname, "dist-worker-1");
}

TEST(TasksOf, ASingleJobHasOneTask) {
  const auto tasks = tasks_of({.name = "one"});

  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].name, "main");
}

TEST(Names, OfPhasesAndRolesReadBack) {
  for (const Phase phase : {Phase::kQueued, Phase::kStarting, Phase::kRunning, Phase::kSucceeded,
                            Phase::kFailed, Phase::kStopped}) {
    EXPECT_EQ(phase_of(to_string(phase)), phase);
  }
  for (const Role role : {Role::kLauncher, Role::kWorker, Role::kSingle}) {
    EXPECT_EQ(role_of(to_string(role)), role);
  }
  for (const TaskPhase phase :
       {TaskPhase::kPending, TaskPhase::kStarting, TaskPhase::kRunning, TaskPhase::kEnded}) {
    EXPECT_EQ(task_phase_of(to_string(phase)), phase);
  }
  EXPECT_EQ(phase_of("Sleeping"), std::nullopt);
}

TEST(IsFinal, OnceSucceededFailedOrStopped) {
  EXPECT_FALSE(is_final(Phase::kQueued));
  EXPECT_FALSE(is_final(Phase::kRunning));
  EXPECT_TRUE(is_final(Phase::kStopped));
}

}  // namespace
}  // namespace muster::job
