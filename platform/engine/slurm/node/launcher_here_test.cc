#include "engine/slurm/node/launcher_here.h"

#include <gtest/gtest.h>

#include "launch/srun_command.h"

namespace muster::engine::slurm {
namespace {

using Words = std::vector<std::string>;

launch::TaskPlan launcher(Words argv) {
  launch::TaskPlan plan;
  plan.role = job::Role::kLauncher;
  plan.argv = std::move(argv);
  plan.files = {{.path = launch::kSrunNodesFile, .content = "n2\nn2\nn3\n"}};
  plan.environment = {{"PATH", "/bin"}};
  return plan;
}

const Variables kStep{
    {"SLURM_JOB_ID", "17"},           {"SLURM_JOBID", "17"},      {"SLURM_CONF", "/etc/s.conf"},
    {"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_JOB_NAME", "dist"}, {"SLURM_PROCID", "0"},
    {"SLURM_STEP_ID", "0"},           {"SLURM_NTASKS", "3"},      {"SLURM_CPUS_PER_TASK", "2"},
    {"SLURM_JWT", "token"},           {"HOME", "/root"}};

TEST(LauncherHere, KnowsTheJobAndNothingOfMusterNodesStep) {
  const auto plan = launcher_here(launcher({"/usr/bin/srun", "x"}), kStep, "/jobs/j/1");
  EXPECT_EQ(plan.environment, (Variables{{"MUSTER_ATTEMPT_FOLDER", "/jobs/j/1"},
                                         {"PATH", "/bin"},
                                         {"SLURM_CONF", "/etc/s.conf"},
                                         {"SLURM_JOBID", "17"},
                                         {"SLURM_JOB_ID", "17"},
                                         {"SLURM_JOB_NODELIST", "n[1-3]"}}));
  EXPECT_EQ(plan.argv, (Words{"/usr/bin/srun", "x"}));
}

TEST(LauncherHere, AnMpirunIsToSeeNothingOfSlurm) {
  launch::TaskPlan plan = launcher({"mpirun", "srun"});
  plan.files.clear();
  EXPECT_EQ(launcher_here(plan, kStep, "/jobs/j/1"), plan);
  launch::TaskPlan worker = launcher({"srun", "x"});
  worker.role = job::Role::kWorker;
  EXPECT_EQ(launcher_here(worker, kStep, "/jobs/j/1"), worker);
}

TEST(LauncherHere, OfAHeterogeneousJobTheComponentIsNamedThatHasTheRanks) {
  Variables step = kStep;
  step["SLURM_HET_SIZE"] = "2";
  step["SLURM_JOB_NODELIST_HET_GROUP_0"] = "n1";
  step["SLURM_JOB_NODELIST_HET_GROUP_1"] = "n[2-3]";
  EXPECT_EQ(launcher_here(launcher({"srun", "x"}), step, "/jobs/j/1").argv,
            (Words{"srun", "--het-group=1", "x"}));

  // Its nodes are in two of them: srun says what it makes of that.
  step["SLURM_JOB_NODELIST_HET_GROUP_1"] = "n2";
  EXPECT_EQ(launcher_here(launcher({"srun", "x"}), step, "/jobs/j/1").argv, (Words{"srun", "x"}));
}

}  // namespace
}  // namespace muster::engine::slurm
