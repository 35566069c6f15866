#include "engine/slurm/node/step_facts.h"

#include <gtest/gtest.h>

#include "engine/slurm/node/plan_here.h"

namespace muster::engine::slurm {
namespace {

Variables step_variables(Variables more) {
  more.insert({{"SLURM_JOB_ID", "17"}, {"SLURM_PROCID", "0"}, {"SLURMD_NODENAME", "n1"}});
  return more;
}

TEST(StepFacts, WhichTaskItIsFollowsFromTheRankInTheStep) {
  const struct {
    const char* what;
    int component;
    Variables variables;
    int expected_component, expected_index;
  } cases[] = {
      {"a plain job", 0, {{"SLURM_PROCID", "5"}}, 0, 5},
      {"a step of one component", 2, {{"SLURM_PROCID", "1"}, {"SLURM_HET_SIZE", "3"}}, 2, 1},
      {"a plain job of which nothing is said", -1, {{"SLURM_PROCID", "5"}}, 0, 5},
      {"a step of all components, in the first",
       -1,
       {{"SLURM_PROCID", "0"},
        {"SLURM_HET_SIZE", "2"},
        {"SLURM_NTASKS_HET_GROUP_0", "1"},
        {"SLURM_NTASKS_HET_GROUP_1", "4"}},
       0,
       0},
      {"a step of all components, in the second",
       -1,
       {{"SLURM_PROCID", "3"},
        {"SLURM_HET_SIZE", "2"},
        {"SLURM_NTASKS_HET_GROUP_0", "1"},
        {"SLURM_NTASKS_HET_GROUP_1", "4"}},
       1,
       2},
  };
  for (const auto& each : cases) {
    const auto facts = read_step_facts(each.component, step_variables(each.variables));
    ASSERT_TRUE(facts) << each.what;
    EXPECT_EQ(facts->component, each.expected_component) << each.what;
    EXPECT_EQ(facts->index, each.expected_index) << each.what;
    EXPECT_EQ(facts->node, "n1");
  }
}

TEST(StepFacts, AHeterogeneousJobIsItsLeader) {
  const auto facts = read_step_facts(
      1, step_variables(
             {{"SLURM_JOB_ID", "18"}, {"SLURM_HET_JOB_ID", "17"}, {"SLURM_RESTART_COUNT", "2"}}));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->slurm_job, 17u);
  EXPECT_EQ(facts->restarts, 2);
}

TEST(StepFacts, WhatIsNoStepIsRefused) {
  EXPECT_FALSE(read_step_facts(0, {}));
  EXPECT_FALSE(read_step_facts(0, {{"SLURM_JOB_ID", "17"}}));
  EXPECT_FALSE(read_step_facts(0, {{"SLURM_PROCID", "0"}}));
  EXPECT_FALSE(read_step_facts(0, step_variables({{"SLURM_PROCID", "-1"}})));
  EXPECT_FALSE(read_step_facts(-1, step_variables({{"SLURM_PROCID", "9"},
                                                   {"SLURM_HET_SIZE", "1"},
                                                   {"SLURM_NTASKS_HET_GROUP_0", "4"}})));
}

TEST(StepFacts, GpusGoBySlurmsNumbersWhereItSaysThem) {
  using Names = std::vector<std::string>;
  using Numbers = std::vector<int>;
  const struct {
    const char* what;
    Variables variables;
    Names gpus;
    Numbers indices;
  } cases[] = {
      {"none", {}, {}, {}},
      {"held by a control group",
       {{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_STEP_GPUS", "4,6"}},
       {"0", "1"},
       {4, 6}},
      {"a range",
       {{"CUDA_VISIBLE_DEVICES", "0,1,2"}, {"SLURM_STEP_GPUS", "1-3"}},
       {"0", "1", "2"},
       {1, 2, 3}},
      {"of the job alone", {{"CUDA_VISIBLE_DEVICES", "3"}, {"SLURM_JOB_GPUS", "3"}}, {"3"}, {3}},
      {"of more than this step has",
       {{"CUDA_VISIBLE_DEVICES", "2"}, {"SLURM_JOB_GPUS", "1,2"}},
       {"2"},
       {2}},
      {"by name", {{"CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"}}, {"GPU-a", "GPU-b"}, {0, 1}},
      {"only counted", {{"SLURM_GPUS_ON_NODE", "2"}}, {}, {0, 1}},
      {"nonsense", {{"SLURM_STEP_GPUS", "a-b"}, {"SLURM_JOB_GPUS", "0-999999999"}}, {}, {}},
  };
  for (const auto& each : cases) {
    const auto facts = read_step_facts(0, step_variables(each.variables));
    ASSERT_TRUE(facts) << each.what;
    EXPECT_EQ(facts->gpus, each.gpus) << each.what;
    EXPECT_EQ(facts->gpu_indices, each.indices) << each.what;
  }
}

TEST(PlanHere, ATaskSeesTheGpusByTheNamesThatTheyHaveThere) {
  launch::TaskPlan plan;
  plan.devices = {6};
  plan.environment["CUDA_VISIBLE_DEVICES"] = "6";
  plan.resources = {.gpus = 1, .cpu_milli = 1000, .memory_bytes = 5};
  const StepFacts facts{.node = "n1", .gpus = {"0", "1"}, .gpu_indices = {4, 6}};

  const launch::TaskPlan here = plan_here(plan, facts);

  EXPECT_EQ(here.environment.at("CUDA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(here.gpus, (std::vector<std::string>{"1"}));
  EXPECT_EQ(here.resources, (job::Resources{.gpus = 1}));
  EXPECT_EQ(plan_here(plan, {.node = "n1", .gpus = {}, .gpu_indices = {4, 6}})
                .environment.at("CUDA_VISIBLE_DEVICES"),
            "6");
}

}  // namespace
}  // namespace muster::engine::slurm
