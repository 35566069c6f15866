#include "engine/slurm/node/join_plan.h"

#include <gtest/gtest.h>

namespace muster::engine::slurm {
namespace {

Variables variables_of_rank(const char* rank, const char* size) {
  return {{"SLURM_PROCID", rank}, {"SLURM_STEP_NUM_TASKS", size}, {"SLURM_NTASKS", size}};
}

TEST(JoiningRank, RanksFillTheTasksInTheirOrder) {
  struct Row {
    const char* rank;
    JoiningRank joining;
  };
  const std::vector<Row> rows{
      {"0", {.task = "worker-0", .rank = 0, .local_rank = 0, .world_size = 5}},
      {"1", {.task = "worker-0", .rank = 1, .local_rank = 1, .world_size = 5}},
      {"2", {.task = "worker-1", .rank = 2, .local_rank = 0, .world_size = 5}},
      {"4", {.task = "launcher", .rank = 4, .local_rank = 0, .world_size = 5}},
  };
  for (const Row& row : rows) {
    const auto rank =
        joining_rank("worker-0=2,worker-1=2,launcher=1", variables_of_rank(row.rank, "5"));
    ASSERT_TRUE(rank) << row.rank << ": " << rank.error().to_string();
    EXPECT_EQ(*rank, row.joining) << row.rank;
  }
}

TEST(JoiningRank, AStepOfAnotherSizeIsNoneOfOurs) {
  for (const char* size : {"1", "3", "100"}) {
    EXPECT_FALSE(joining_rank("worker-0=1,worker-1=1", variables_of_rank("0", size))) << size;
  }
}

TEST(JoiningRank, WithoutSrunThereIsNoRank) {
  const auto rank = joining_rank("worker-0=1", {});
  ASSERT_FALSE(rank);
  EXPECT_EQ(rank.error().what, "this is no rank that srun has started");
  EXPECT_FALSE(joining_rank("worker-0=1", variables_of_rank("-1", "1")));
  EXPECT_FALSE(joining_rank("worker-0=1", variables_of_rank("x", "1")));
}

TEST(JoiningRank, NoTaskLeadsOutOfTheFolderOfTheGang) {
  for (const char* tasks : {"../other=1", "a/b=1", ".=1", "=1", "worker-0", "worker-0=0",
                            "worker-0=-1", "worker-0=2147483647", "worker-0=1x", ""}) {
    EXPECT_FALSE(joining_rank(tasks, variables_of_rank("0", "1"))) << tasks;
  }
}

TEST(EnvironmentOfRank, IsTheTasksWithWhatTheStepTellsTheRank) {
  Variables variables = variables_of_rank("2", "4");
  variables["PMIX_RANK"] = "2";
  variables["PATH"] = "/launcher";
  variables["LD_PRELOAD"] = "/launcher.so";
  const std::vector<std::string> environment =
      environment_of_rank({"PATH=/task", "CUDA_VISIBLE_DEVICES=1"}, variables,
                          {.task = "worker-1", .rank = 2, .local_rank = 0, .world_size = 4});
  const Variables found = variables_of(environment);
  EXPECT_EQ(found, (Variables{{"CUDA_VISIBLE_DEVICES", "1"},
                              {"MUSTER_LOCAL_RANK", "0"},
                              {"MUSTER_RANK", "2"},
                              {"MUSTER_WORLD_SIZE", "4"},
                              {"PATH", "/task"},
                              {"PMIX_RANK", "2"},
                              {"SLURM_NTASKS", "4"},
                              {"SLURM_PROCID", "2"},
                              {"SLURM_STEP_NUM_TASKS", "4"}}));
}

}  // namespace
}  // namespace muster::engine::slurm
