#include "launch/contract_environment.h"

#include <gtest/gtest.h>

namespace muster::launch {
namespace {

using job::Job;
using job::Kind;
using job::Task;
using job::Volume;

const Volume kProjectStorage{
    .kind = Volume::Kind::kStorage, .source = "storage", .target = "/storage"};

Job job_of(job::JobSpec spec) {
  return {.id = "j1", .spec = std::move(spec), .attempt = 2};
}

TEST(ContractEnvironment, TellsATaskWhoItIsInTheWordsOfRunai) {
  const auto variables = contract_environment(
      job_of({.name = "dist", .project = "team-a"}),
      {.name = "worker-1", .node = "n1", .devices = {0, 1}, .gpu_share_milli = 1000});

  const std::map<std::string, std::string> expected{
      {"JOB_NAME", "dist"},          {"JOB_UUID", "j1"},       {"POD_INDEX", "1"},
      {"POD_UUID", "j1-2-worker-1"}, {"NODE_NAME", "n1"},      {"RUNAI_PROJECT", "team-a"},
      {"RUNAI_JOB_NAME", "dist"},    {"RUNAI_JOB_UUID", "j1"}, {"RUNAI_NUM_OF_GPUS", "2"}};
  EXPECT_EQ(variables, expected);
}

TEST(ContractEnvironment, NumbersATaskWithinItsRole) {
  struct Case {
    std::string task;
    std::string index;
  };
  for (const Case& c : {Case{"main", "0"}, Case{"launcher", "0"}, Case{"chief", "0"},
                        Case{"worker-0", "0"}, Case{"worker-12", "12"}, Case{"ps-3", "3"}}) {
    EXPECT_EQ(contract_environment(job_of({}), {.name = c.task}).at("POD_INDEX"), c.index);
  }
}

TEST(ContractEnvironment, CountsPartsOfGpus) {
  struct Case {
    Task task;
    std::string gpus;
  };
  for (const Case& c :
       {Case{{.name = "main"}, "0"}, Case{{.name = "main", .devices = {0}}, "1"},
        Case{{.name = "main", .devices = {0}, .gpu_share_milli = 500}, "0.5"},
        Case{{.name = "main", .devices = {0, 1, 2}, .gpu_share_milli = 500}, "1.5"}}) {
    EXPECT_EQ(contract_environment(job_of({}), c.task).at("RUNAI_NUM_OF_GPUS"), c.gpus);
  }
}

TEST(ContractEnvironment, SpeaksOfAnExperimentOnlyWhereItIsOne) {
  const Task task{.name = "main"};
  const auto experiment =
      contract_environment(job_of({.annotations = {{"a", "b"}, {"gradient/name", "x"}}}), task);
  EXPECT_EQ(experiment.at("PAPERSPACE_EXPERIMENT_ID"), "j1");
  EXPECT_EQ(experiment.at("PAPERSPACE_METRIC_WORKLOAD_ID"), "j1");

  const auto other = contract_environment(job_of({.annotations = {{"gradients", "x"}}}), task);
  EXPECT_FALSE(other.contains("PAPERSPACE_EXPERIMENT_ID"));
}

TEST(ContractEnvironment, NamesThePathOfTheModelWhereThereIsAFolderToKeepItIn) {
  struct Case {
    job::JobSpec spec;
    std::string path;
  };
  for (const Case& c :
       {Case{{.kind = Kind::kSingle, .volumes = {kProjectStorage}}, "/artifacts"},
        Case{{.kind = Kind::kGrpc, .volumes = {kProjectStorage}}, "/storage/models/j1"},
        Case{{.kind = Kind::kMpi, .volumes = {kProjectStorage}}, "/storage/models/j1"},
        Case{{.volumes = {kProjectStorage}, .annotations = {{"gradient/modelPath", "/m"}}},
             "/m"}}) {
    const auto variables = contract_environment(job_of(c.spec), {.name = "main"});
    EXPECT_EQ(variables.at("PS_MODEL_PATH"), c.path);
    EXPECT_EQ(variables.at("PS_JOBSPACE"), "/storage");
  }
  Volume elsewhere = kProjectStorage;
  elsewhere.target = "/other";
  const auto variables = contract_environment(job_of({.volumes = {elsewhere}}), {.name = "main"});
  EXPECT_FALSE(variables.contains("PS_JOBSPACE"));
  EXPECT_FALSE(variables.contains("PS_MODEL_PATH"));
}

}  // namespace
}  // namespace muster::launch
