#include "engine/node/slurm_step.h"

#include <gtest/gtest.h>

#include "engine/node/node_task.h"
#include "launch/srun_command.h"

namespace muster::engine::node {
namespace {

Variables step_variables(Variables more) {
  more.insert({{"SLURM_JOB_ID", "17"}, {"SLURM_PROCID", "0"}, {"SLURMD_NODENAME", "n1"}});
  return more;
}

TEST(NodeFacts, TheRankInTheStepDeterminesTheTask) {
  const struct {
    const char* what;
    int component;
    Variables variables;
    int expected_component, expected_index;
  } cases[] = {
      {"a plain job", 0, {{"SLURM_PROCID", "5"}}, 0, 5},
      {"a step of one component", 2, {{"SLURM_PROCID", "1"}, {"SLURM_HET_SIZE", "3"}}, 2, 1},
      {"a plain job without a component", -1, {{"SLURM_PROCID", "5"}}, 0, 5},
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

TEST(NodeFacts, AHeterogeneousJobHasTheIdOfItsLeader) {
  const auto facts = read_step_facts(
      1, step_variables(
             {{"SLURM_JOB_ID", "18"}, {"SLURM_HET_JOB_ID", "17"}, {"SLURM_RESTART_COUNT", "2"}}));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->allocation, 17u);
  EXPECT_EQ(facts->restarts, 2);
}

TEST(NodeFacts, VariablesWithoutAStepAreRejected) {
  EXPECT_FALSE(read_step_facts(0, {}));
  EXPECT_FALSE(read_step_facts(0, {{"SLURM_JOB_ID", "17"}}));
  EXPECT_FALSE(read_step_facts(0, {{"SLURM_PROCID", "0"}}));
  EXPECT_FALSE(read_step_facts(0, step_variables({{"SLURM_PROCID", "-1"}})));
  EXPECT_FALSE(read_step_facts(-1, step_variables({{"SLURM_PROCID", "9"},
                                                   {"SLURM_HET_SIZE", "1"},
                                                   {"SLURM_NTASKS_HET_GROUP_0", "4"}})));
}

TEST(NodeFacts, GpusHaveSlurmsNumbersIfGiven) {
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

TEST(PlanHere, ATaskGetsTheNodesNamesOfItsGpus) {
  launch::TaskPlan plan;
  plan.devices = {6};
  plan.environment["CUDA_VISIBLE_DEVICES"] = "6";
  plan.resources = {.gpus = 1, .cpu_milli = 1000, .memory_bytes = 5};
  const NodeFacts facts{.node = "n1", .gpus = {"0", "1"}, .gpu_indices = {4, 6}};

  const launch::TaskPlan here = plan_on_node(plan, facts);

  EXPECT_EQ(here.environment.at("CUDA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(here.gpus, (std::vector<std::string>{"1"}));
  EXPECT_EQ(here.resources, (job::Resources{.gpus = 1, .memory_bytes = 5}))
      << "Slurm enforces it only where the site has configured that";
  EXPECT_EQ(plan_on_node(plan, {.node = "n1", .gpus = {}, .gpu_indices = {4, 6}})
                .environment.at("CUDA_VISIBLE_DEVICES"),
            "6");
}

}  // namespace
namespace {

TEST(ExpandNodes, KeepsOrderAndLeadingZeros) {
  struct Row {
    const char* list;
    std::vector<std::string> names;
  };
  const std::vector<Row> rows{
      {"n1", {"n1"}},
      {"n[1-3,07],gpu-a2", {"n1", "n2", "n3", "n07", "gpu-a2"}},
      {"n[08-11]", {"n08", "n09", "n10", "n11"}},
      {"n[099-101]", {"n099", "n100", "n101"}},
      {"r[1-2]n[1,3]", {"r1n1", "r1n3", "r2n1", "r2n3"}},
      {"r[1-2]-ib", {"r1-ib", "r2-ib"}},
      {"a,b,c", {"a", "b", "c"}},
      {"", {}},
      {"(null)", {}},
      {"None assigned", {}},
  };
  for (const Row& row : rows) {
    const auto names = expand_nodes(row.list);
    ASSERT_TRUE(names) << row.list;
    EXPECT_EQ(*names, row.names) << row.list;
  }
}

TEST(ExpandNodes, AMalformedListIsAnError) {
  for (const char* list :
       {"n[1-3", "n1-3]", "n[]", "n[3-1]", "n[a-b]", "n[1-]", "n[-3]", "n[1--2]", ",", "n1,", "[",
        "n[1-9999999]", "n[0-99999][0-99999]", "n[99999999999999999999]", "n[1-2,]]"}) {
    const auto names = expand_nodes(list);
    ASSERT_FALSE(names) << list;
    EXPECT_EQ(names.error().what, "'" + std::string(list) + "' is not a valid list of nodes");
  }
}

}  // namespace
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

TEST(JoiningRank, AStepOfAnotherSizeIsRejected) {
  for (const char* size : {"1", "3", "100"}) {
    EXPECT_FALSE(joining_rank("worker-0=1,worker-1=1", variables_of_rank("0", size))) << size;
  }
}

TEST(JoiningRank, WithoutSrunThereIsNoRank) {
  const auto rank = joining_rank("worker-0=1", {});
  ASSERT_FALSE(rank);
  EXPECT_EQ(rank.error().what, "this process is not a rank that srun started");
  EXPECT_FALSE(joining_rank("worker-0=1", variables_of_rank("-1", "1")));
  EXPECT_FALSE(joining_rank("worker-0=1", variables_of_rank("x", "1")));
}

TEST(JoiningRank, RejectsTasksOutsideTheGangsFolder) {
  for (const char* tasks : {"../other=1", "a/b=1", ".=1", "=1", "worker-0", "worker-0=0",
                            "worker-0=-1", "worker-0=2147483647", "worker-0=1x", ""}) {
    EXPECT_FALSE(joining_rank(tasks, variables_of_rank("0", "1"))) << tasks;
  }
}

TEST(EnvironmentOfRank, AddsTheVariablesOfTheStepToTheTasks) {
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
namespace {

using Words = std::vector<std::string>;

launch::TaskPlan launcher(Words argv) {
  launch::TaskPlan plan;
  plan.role = job::TaskRole::kLauncher;
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

TEST(LauncherHere, GetsTheVariablesOfTheJobButNotOfTheStep) {
  const auto plan = plan_srun_launcher(launcher({"/usr/bin/srun", "x"}), kStep, "/jobs/j/1");
  EXPECT_EQ(plan.environment, (Variables{{"MUSTER_ATTEMPT_FOLDER", "/jobs/j/1"},
                                         {"PATH", "/bin"},
                                         {"SLURM_CONF", "/etc/s.conf"},
                                         {"SLURM_JOBID", "17"},
                                         {"SLURM_JOB_ID", "17"},
                                         {"SLURM_JOB_NODELIST", "n[1-3]"}}));
  EXPECT_EQ(plan.argv, (Words{"/usr/bin/srun", "x"}));
}

TEST(LauncherHere, AnMpirunGetsNoVariableOfSlurm) {
  launch::TaskPlan plan = launcher({"mpirun", "srun"});
  plan.files.clear();
  EXPECT_EQ(plan_srun_launcher(plan, kStep, "/jobs/j/1"), plan);
  launch::TaskPlan worker = launcher({"srun", "x"});
  worker.role = job::TaskRole::kWorker;
  EXPECT_EQ(plan_srun_launcher(worker, kStep, "/jobs/j/1"), worker);
}

TEST(LauncherHere, NamesTheComponentOfAHeterogeneousJobWithTheRanks) {
  Variables step = kStep;
  step["SLURM_HET_SIZE"] = "2";
  step["SLURM_JOB_NODELIST_HET_GROUP_0"] = "n1";
  step["SLURM_JOB_NODELIST_HET_GROUP_1"] = "n[2-3]";
  EXPECT_EQ(plan_srun_launcher(launcher({"srun", "x"}), step, "/jobs/j/1").argv,
            (Words{"srun", "--het-group=1", "x"}));

  // The nodes are in two components: no component is chosen, and srun reports the error.
  step["SLURM_JOB_NODELIST_HET_GROUP_1"] = "n2";
  EXPECT_EQ(plan_srun_launcher(launcher({"srun", "x"}), step, "/jobs/j/1").argv,
            (Words{"srun", "x"}));
}

}  // namespace
}  // namespace muster::engine::node
