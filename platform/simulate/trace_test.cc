#include "simulate/trace.h"

#include <gtest/gtest.h>

namespace muster::simulate {
namespace {

TEST(ParseTrace, ReadsTheFourColumnsThatEveryTraceHas) {
  const auto jobs = parse_trace(
      "project,gpus,duration_s,submit_s\n"
      "a,8,3600,0\n"
      "b,0.25,0.5,12.25\n");

  ASSERT_TRUE(jobs) << jobs.error().to_string();
  EXPECT_EQ(*jobs, (std::vector<TraceJob>{{.line = 2,
                                           .submit = milliseconds(0),
                                           .duration = milliseconds(3'600'000),
                                           .gpus = 8,
                                           .project = "a"},
                                          {.line = 3,
                                           .submit = milliseconds(12'250),
                                           .duration = milliseconds(500),
                                           .gpu_share_milli = 250,
                                           .project = "b"}}));
}

TEST(ParseTrace, ReadsTheOthersAndTakesAnEmptyCellForTheDefault) {
  const auto jobs = parse_trace(
      "submit_s,duration_s,gpus,project,tasks,cpus,memory,priority,time_limit_s\n"
      "0,10,2,a,4,1.5,16G,125,60\n"
      "0,10,2,a,,,,,\n");

  ASSERT_TRUE(jobs) << jobs.error().to_string();
  const TraceJob& full = jobs->at(0);
  EXPECT_EQ(full.tasks, 4);
  EXPECT_EQ(full.cpu_milli, 1500);
  EXPECT_EQ(full.memory_bytes, 16LL << 30);
  EXPECT_EQ(full.priority, 125);
  EXPECT_EQ(full.time_limit, milliseconds(60'000));
  const TraceJob& bare = jobs->at(1);
  EXPECT_EQ(bare,
            (TraceJob{.line = 3, .duration = milliseconds(10'000), .gpus = 2, .project = "a"}));
}

TEST(ParseTrace, ReportsAllFaultsWithTheirLines) {
  const auto jobs = parse_trace(
      "submit_s,duration_s,gpus,project,tasks,memory,priority\n"
      "-1,10,1,a,1,1G,50\n"
      "0,soon,1.5,,0,much,50\n"
      "0,10,1,a,1,1G,50\n"
      "1700000000,10,1,a,1,1G,2000\n");

  ASSERT_FALSE(jobs);
  std::vector<std::pair<int, std::string>> faults;
  for (const base::Fault& fault : jobs.error().faults) faults.emplace_back(fault.line, fault.field);
  EXPECT_EQ(faults, (std::vector<std::pair<int, std::string>>{{2, "submit_s"},
                                                              {3, "duration_s"},
                                                              {3, "gpus"},
                                                              {3, "project"},
                                                              {3, "tasks"},
                                                              {3, "memory"},
                                                              {5, "submit_s"},
                                                              {5, "priority"}}));
}

TEST(ParseTrace, RefusesOneWithoutJobs) {
  const auto jobs = parse_trace("submit_s,duration_s,gpus,project\n");

  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().faults.size(), 1u);
}

}  // namespace
namespace {

TEST(Csv, FindsColumnsByNameInAnyOrder) {
  const auto table = parse_csv("b, a\n1,x\n2, y \n", "the list", {"a", "b"});

  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 2U);
  std::vector<base::Fault> faults;
  EXPECT_EQ(table->text(table->rows[1], "a"), "y");
  EXPECT_EQ(table->whole(table->rows[1], "b", {}, faults), 2);
  EXPECT_EQ(table->text(table->rows[1], "c"), "");
  EXPECT_TRUE(faults.empty());
}

TEST(Csv, ReadsQuotesEmptyCellsAndForeignLineEnds) {
  const auto table = parse_csv(
      "\xEF\xBB\xBFname,note,rest\r\n\"a \"\"b\"\", c\",,\r\n\r\nd,\"two\nlines\",x\r\ne,,",
      "the list", {"name"});

  ASSERT_TRUE(table);
  const std::vector<CsvRow> expected = {
      {2, {"a \"b\", c", "", ""}}, {4, {"d", "two\nlines", "x"}}, {6, {"e", "", ""}}};
  EXPECT_EQ(table->rows, expected);
}

TEST(Csv, NamesEveryFaultWithItsLine) {
  const auto table =
      parse_csv("gpus,names\n1,a,b\n2,b\n3\n4,\"open\n", "the list", {"gpu", "name"});

  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().what, "the list is invalid: 5 faults");
  const std::vector<base::Fault> expected = {
      {"gpu", "the column is missing; there is one named gpus", 1},
      {"name", "the column is missing; there is one named names", 1},
      {"", "has 3 cells where the first row names 2 columns", 2},
      {"", "has 1 cells where the first row names 2 columns", 4},
      {"", "a quote is not closed", 5}};
  EXPECT_EQ(table.error().faults, expected);
}

TEST(Csv, NamesTheCellThatIsNotANumberOrOutOfRange) {
  const auto table =
      parse_csv("gpus,days\n1,0.5\nmany,-1\n65,1e999\n,nan\n-1,2x\n", "the list", {});
  ASSERT_TRUE(table);

  std::vector<base::Fault> faults;
  int64_t sum = 0;
  double days = 0;
  for (const CsvRow& row : table->rows) {
    sum += table->whole(row, "gpus", {.least = 0, .most = 64}, faults);
    days += table->decimal(row, "days", faults);
  }

  EXPECT_EQ(sum, 1);
  EXPECT_EQ(days, 0.5);
  const std::vector<base::Fault> expected = {
      {"gpus", "'many' is not a whole number from 0 to 64", 3},
      {"days", "'-1' is not a number of at least 0", 3},
      {"gpus", "'65' is not a whole number from 0 to 64", 4},
      {"days", "'1e999' is not a number of at least 0", 4},
      {"gpus", "'' is not a whole number from 0 to 64", 5},
      {"days", "'nan' is not a number of at least 0", 5},
      {"gpus", "'-1' is not a whole number from 0 to 64", 6},
      {"days", "'2x' is not a number of at least 0", 6}};
  EXPECT_EQ(faults, expected);
}

TEST(Csv, AShortRowDoesNotHideTheFaultsOfOtherRows) {
  const auto jobs =
      parse_trace("submit_s,duration_s,gpus,project\n0,1,many,a\n0,1\n0,soon,1,a\n0,1,1,a\n");

  ASSERT_FALSE(jobs);
  ASSERT_EQ(jobs.error().faults.size(), 3U);
  EXPECT_EQ(jobs.error().faults[0].line, 2);
  EXPECT_EQ(jobs.error().faults[1].what, "has 2 cells where the first row names 4 columns");
  EXPECT_EQ(jobs.error().faults[2].field, "duration_s");
}

TEST(Csv, AnEmptyTextMissesItsColumns) {
  const auto table = parse_csv("", "the list", {"gpu"});

  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().faults.front().what, "the column is missing");
}

}  // namespace
namespace {

constexpr const char* kNodes =
    "sn,cpu_milli,memory_mib,gpu,model\n"
    "node-0,64000,262144,4,A100\n"
    "node-1,64000,262144,4,A100\n"
    "node-2,32000,131072,2,T4\n"
    "node-3,64000,262144,0,\n";

constexpr const char* kWholes =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
    "p0,4000,8192,1,1000\n"
    "p1,4000,8192,2,1000\n"
    "p2,4000,8192,0,0\n";

TEST(Openb, FillsAClusterToTheLastGpuWhereEverythingFits) {
  const auto result =
      replay_openb(kNodes, "cpu_milli,memory_mib,num_gpu,gpu_milli\n1000,1024,1,1000\n", {});

  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->nodes, 4);
  EXPECT_EQ(result->gpus, 10);
  EXPECT_EQ(result->pods, 1);
  ASSERT_EQ(result->runs.size(), 10U);
  EXPECT_EQ(result->runs.front().seed, 42);
  for (const OpenbRun& run : result->runs) {
    EXPECT_EQ(run.arrived, 10);
    EXPECT_EQ(run.refused, 0);
    EXPECT_DOUBLE_EQ(run.ratio, 1);
  }
  EXPECT_DOUBLE_EQ(result->mean, 1);
}

TEST(Openb, APodThatFitsNowhereIsRefusedAndForgotten) {
  const auto result = replay_openb(
      kNodes, "cpu_milli,memory_mib,num_gpu,gpu_milli\n1000,1024,1,600\n", {.seeds = {1}});

  ASSERT_TRUE(result);
  const OpenbRun& run = result->runs.front();  // 16 x 0.6, rounded to 10
  EXPECT_EQ(run.arrived, 16);
  EXPECT_EQ(run.refused, 6);
  EXPECT_DOUBLE_EQ(run.ratio, 0.6);
}

TEST(Openb, AModelThatAPodAsksForIsTheOnlyOneItGets) {
  const auto result = replay_openb(kNodes,
                                   "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
                                   "1000,1024,1,1000,T4\n",
                                   {.seeds = {1}});
  ASSERT_TRUE(result);
  EXPECT_DOUBLE_EQ(result->mean, 0.2);

  const auto either = replay_openb(kNodes,
                                   "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
                                   "1000,1024,1,1000,A100|T4\n",
                                   {.seeds = {1}});
  ASSERT_TRUE(either);
  EXPECT_DOUBLE_EQ(either->mean, 1);
}

TEST(Openb, WhereFewerGpusAreAskedForThanThereAreThatIsWhatIsAllocated) {
  const auto result =
      replay_openb(kNodes, "cpu_milli,memory_mib,num_gpu,gpu_milli\n1000,1024,1,1000\n",
                   {.seeds = {1}, .tuned = 0.5});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->runs.front().arrived, 5);
  EXPECT_DOUBLE_EQ(result->mean, 0.5);
}

TEST(Openb, IsTheSameEveryTimeAndAnotherWithAnotherSeed) {
  std::string pods = kWholes;
  for (int pod = 0; pod < 40; ++pod)
    pods += "q," + std::to_string(1000 + 500 * (pod % 9)) + ",4096,1," +
            std::to_string(100 + 90 * (pod % 7)) + "\n";
  const OpenbOptions options{.seeds = {1, 2, 3}};
  const auto once = replay_openb(kNodes, pods, options);
  const auto again = replay_openb(kNodes, pods, options);

  ASSERT_TRUE(once);
  ASSERT_TRUE(again);
  EXPECT_EQ(openb_text(*once), openb_text(*again));
  EXPECT_LE(once->lowest, once->mean);
  EXPECT_LE(once->mean, once->highest);
  EXPECT_LT(once->lowest, once->highest);
}

TEST(Openb, TheFragmentationTermBeatsPlainPackingWhereGpusAreStrandedForCpus) {
  // Tasks with many CPUs fit the CPU-rich nodes, and strand GPUs on the others.
  std::string nodes = "sn,cpu_milli,memory_mib,gpu,model\n";
  for (int node = 0; node < 8; ++node)
    nodes += "n" + std::to_string(node) + "," + (node % 2 == 0 ? "96000" : "16000") + ",99999,4,\n";
  const std::string pods =
      "cpu_milli,memory_mib,num_gpu,gpu_milli\n"
      "12000,1,1,1000\n12000,1,1,1000\n4000,1,1,1000\n4000,1,1,1000\n2000,1,1,500\n8000,1,0,0\n";
  OpenbOptions options;
  const auto fragmentation = replay_openb(nodes, pods, options);
  options.packing = schedule::Packing::kPack;
  const auto pack = replay_openb(nodes, pods, options);

  ASSERT_TRUE(fragmentation);
  ASSERT_TRUE(pack);
  EXPECT_GT(fragmentation->mean, pack->mean);
}

TEST(Openb, NamesEveryFaultOfTheListsWithItsLine) {
  const auto nodes =
      replay_openb("sn,cpu_milli,memory_mib,gpu,model\na,1,1,65,x\na,one,1,1,x\n", kWholes, {});
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().what, "the node list is invalid: 3 faults");
  const std::vector<base::Fault> expected = {
      {"gpu", "'65' is not a whole number from 0 to 64", 2},
      {"cpu_milli", "'one' is not a whole number from 0 to 1099511627776", 3},
      {"sn", "'a' is also the name of another node", 3}};
  EXPECT_EQ(nodes.error().faults, expected);

  const auto pods =
      replay_openb(kNodes, "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,2,500\n1,1,1,0\n", {});
  ASSERT_FALSE(pods);
  const std::vector<base::Fault> of_pods = {
      {"gpu_milli", "a pod with several GPUs uses whole GPUs: 1000", 2},
      {"gpu_milli", "'0' is not a whole number from 1 to 1000", 3}};
  EXPECT_EQ(pods.error().faults, of_pods);

  const auto columns = replay_openb("sn,cpu_milli\n", kWholes, {});
  ASSERT_FALSE(columns);
  EXPECT_EQ(columns.error().faults.size(), 3U);
}

TEST(Openb, RefusesWhatHasNoAnswer) {
  const std::string no_gpus = "sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\n";
  const std::string no_pods = "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,0,0\n";
  const auto result = replay_openb(no_gpus, no_pods, {.seeds = {}, .tuned = 0});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().faults.size(), 4U);
}

TEST(Openb, TheTextIsATable) {
  const OpenbResult result{.runs = {{.seed = 42, .ratio = 0.9573, .arrived = 9000, .refused = 312}},
                           .mean = 0.9573,
                           .lowest = 0.9573,
                           .highest = 0.9573,
                           .nodes = 1213,
                           .gpus = 6212,
                           .pods = 8152};
  EXPECT_EQ(openb_text(result),
            "8152 pods onto 1213 nodes with 6212 GPUs, until the pods that arrived ask for all of "
            "them\n\n"
            "SEED     ALLOCATED %    ARRIVED   REFUSED\n"
            "42             95.73       9000       312\n"
            "mean           95.73\n"
            "lowest         95.73\n"
            "highest        95.73\n");
}

}  // namespace
}  // namespace muster::simulate
