#include "launch/srun_command.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "launch/plan.h"
#include "launch/test_plan.h"

namespace muster::launch {
namespace {

using job::LaunchBy;

const SrunSite kHere{
    .srun = "/usr/bin/srun", .joiner = "/opt/muster/muster-node", .folder = "/generated"};

TEST(SrunCommand, NamesTheNodesTheTasksAndTheProgramOfARank) {
  const Words command = srun_command(
      kHere, {{.task = "worker-0", .node = "n1", .slots = 2}, {.task = "worker-1", .node = "n2"}},
      {"./train", "--rate", "1"});
  EXPECT_EQ(command[0], "/generated/srun_ranks");
  EXPECT_EQ(command[1], "/usr/bin/srun");
  for (const char* word : {"--mpi=pmix", "--overlap", "--nodes=2", "--ntasks=3",
                           "--distribution=arbitrary", "--nodelist=/generated/srun_nodes",
                           "--kill-on-bad-exit=1", "--input=0", "--export=MUSTER_ATTEMPT_FOLDER"}) {
    EXPECT_NE(std::find(command.begin(), command.end(), word), command.end()) << word;
  }
  EXPECT_EQ(Words(command.end() - 6, command.end()),
            (Words{"/opt/muster/muster-node", "--join", "worker-0=2,worker-1=1", "./train",
                   "--rate", "1"}));
}

TEST(SrunCommand, CountsTwoTasksOnANodeAsOneNode) {
  const Words command = srun_command(
      kHere, {{.task = "worker-0", .node = "n1"}, {.task = "worker-1", .node = "n1"}}, {"a"});
  EXPECT_NE(std::find(command.begin(), command.end(), "--nodes=1"), command.end());
  EXPECT_NE(std::find(command.begin(), command.end(), "--ntasks=2"), command.end());
}

TEST(SrunNodesFile, HasALineForEachRankInOrder) {
  EXPECT_EQ(srun_nodes_file({{.task = "worker-0", .node = "n2", .slots = 2},
                             {.task = "worker-1", .node = "n1", .slots = 1}})
                .content,
            "n2\nn2\nn1\n");
}

TEST(CheckSrunProgram, RefusesAnMpirunThatWouldStartAllRanksForEachRank) {
  for (const Words& program :
       {Words{"mpirun", "./a"}, Words{"/opt/openmpi/bin/mpiexec", "-n", "2", "./a"},
        Words{"sh", "-c", "cd x && mpirun ./a"}}) {
    const auto checked = check_srun_program(program);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, base::ErrorCode::kRefused);
    EXPECT_NE(checked.error().advice.find("--launch agent"), std::string::npos);
  }
  EXPECT_FALSE(check_srun_program({}));
  EXPECT_TRUE(check_srun_program({"./a"}));
  EXPECT_TRUE(check_srun_program({"srun", "mpirun-like"}));
}

job::Job two_workers(Words command, int leader_slots = 0) {
  job::Job job = placed({.name = "dist",
                         .kind = job::Kind::kMpi,
                         .launch = LaunchBy::kSrun,
                         .command = std::move(command),
                         .workers = 2,
                         .slots_per_worker = 2,
                         .leader_slots = leader_slots});
  job.tasks[1].node = "n2";
  job.tasks[2].node = "n3";
  return job;
}

Site site_with_slurm() {
  Site site = plain_site();
  site.rank_agent = "/opt/muster/muster-shim";
  site.srun = "/usr/bin/srun";
  site.joiner = "/opt/muster/muster-node";
  site.launch = LaunchBy::kSrun;
  return site;
}

TEST(ChooseLaunch, OffersSrunOnSlurm) {
  const auto chosen = choose_launch(two_workers({"./a"}), site_with_slurm());
  ASSERT_TRUE(chosen) << chosen.error().to_string();
  EXPECT_EQ(chosen->by, LaunchBy::kSrun);

  const auto nowhere = choose_launch(two_workers({"./a"}), plain_site());
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, base::ErrorCode::kRefused);

  EXPECT_FALSE(choose_launch(two_workers({"mpirun", "./a"}), site_with_slurm()));
}

TEST(PlanGang, RanksOfSrunNeedNoRemoteShell) {
  const auto plan = plan_gang(two_workers({"./a"}), seed(), site_with_slurm());
  ASSERT_TRUE(plan) << plan.error().to_string();
  ASSERT_EQ(plan->first.size(), 2u);
  for (const TaskPlan& worker : plan->first) {
    EXPECT_FALSE(worker.ssh);
    EXPECT_TRUE(worker.takes_ranks);
    EXPECT_TRUE(worker.argv.empty());
    EXPECT_EQ(find_file(worker, "rsh/key"), nullptr);
    EXPECT_EQ(find_file(worker, "ssh/id_ed25519"), nullptr);
    EXPECT_EQ(worker.environment.at("MUSTER_RANK_AGENT"), "/opt/muster/muster-shim");
    EXPECT_FALSE(worker.environment.contains("OMPI_MCA_plm_rsh_agent"));
    EXPECT_FALSE(worker.environment.contains("OMPI_MCA_btl"));
  }
  const TaskPlan& launcher = plan->then.front();
  EXPECT_EQ(launcher.argv[1], "/usr/bin/srun");
  ASSERT_NE(find_file(launcher, kSrunScript), nullptr);
  EXPECT_EQ(launcher.argv.back(), "./a");
  EXPECT_FALSE(launcher.mpi);
  EXPECT_FALSE(launcher.takes_ranks);
  ASSERT_NE(find_file(launcher, kSrunNodesFile), nullptr);
  EXPECT_EQ(find_file(launcher, kSrunNodesFile)->content, "n2\nn2\nn3\nn3\n");
}

TEST(PlanGang, ALauncherWithRanksIsLast) {
  const auto plan = plan_gang(two_workers({"./a"}, 1), seed(), site_with_slurm());
  ASSERT_TRUE(plan);
  const TaskPlan& launcher = plan->then.front();
  EXPECT_EQ(find_file(launcher, kSrunNodesFile)->content, "n2\nn2\nn3\nn3\nn1\n");
  EXPECT_TRUE(launcher.takes_ranks);
}

TEST(PlanGang, RanksInTwoTasksOfANodeDoNotShareMemory) {
  job::Job job = two_workers({"./a"});
  job.tasks[2].node = job.tasks[1].node;
  const auto plan = plan_gang(job, seed(), site_with_slurm());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->first.front().environment.at("OMPI_MCA_btl"), "^vader,sm");
}

TEST(PlanGang, AnSrunOfTheUserRunsUnchanged) {
  const auto plan =
      plan_gang(two_workers({"srun", "--mpi=pmi2", "./a"}), seed(), site_with_slurm());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->then.front().argv, (Words{"srun", "--mpi=pmi2", "./a"}));
  EXPECT_EQ(find_file(plan->then.front(), kSrunNodesFile), nullptr);
}

}  // namespace
}  // namespace muster::launch
