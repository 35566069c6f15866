#include "launch/task_environment.h"

#include <gtest/gtest.h>

#include "job/spec.h"

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

TEST(ContractEnvironment, GivesATaskItsIdentityInRunAisNames) {
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

TEST(ContractEnvironment, CountsFractionsOfGpus) {
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

TEST(ContractEnvironment, NamesAnExperimentOnlyForExperiments) {
  const Task task{.name = "main"};
  const auto experiment =
      contract_environment(job_of({.annotations = {{"a", "b"}, {"gradient/name", "x"}}}), task);
  EXPECT_EQ(experiment.at("PAPERSPACE_EXPERIMENT_ID"), "j1");
  EXPECT_EQ(experiment.at("PAPERSPACE_METRIC_WORKLOAD_ID"), "j1");

  const auto other = contract_environment(job_of({.annotations = {{"gradients", "x"}}}), task);
  EXPECT_FALSE(other.contains("PAPERSPACE_EXPERIMENT_ID"));
}

TEST(ContractEnvironment, NamesTheModelPathIfThereIsAFolderForIt) {
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
namespace {

using job::JobSpec;
using Notes = std::vector<std::string>;

const std::string kAdvice = " unless the program finds the other tasks by itself";

JobSpec spec_of(Kind kind) {
  return {.name = "j",
          .kind = kind,
          .command = {"train"},
          .workers = 1,
          .parameter_servers = kind == Kind::kGrpc ? 1 : 0};
}

TEST(OwnVariables, AreNotedWithTheirEffect) {
  struct Case {
    Kind kind;
    std::string name;
    std::string what;
  };
  for (const Case& c : {Case{Kind::kGrpc, "TF_CONFIG", "the address of each task"},
                        Case{Kind::kGrpc, "PS_CONFIG", "the address of each task"},
                        Case{Kind::kGrpc, "TYPE", "the role and index of the task"},
                        Case{Kind::kTorch, "MASTER_ADDR", "the address of the master"},
                        Case{Kind::kTorch, "RANK", "the rank and the world size"},
                        Case{Kind::kTorch, "PET_RDZV_ID", "the rendezvous of the attempt"},
                        Case{Kind::kMpi, "HYDRA_HOST_FILE", "the path of the hostfile"}}) {
    JobSpec spec = spec_of(c.kind);
    spec.environment[c.name] = "mine";

    EXPECT_EQ(notes_on_own_variables(spec, {}, false),
              Notes{"the job itself sets " + c.name + ", so Muster does not set it (" + c.what +
                    "); remove it" + kAdvice});
  }
}

TEST(OwnVariables, WithTheSamePurposeShareANote) {
  JobSpec spec = spec_of(Kind::kTorch);
  spec.environment = {{"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}, {"PET_RDZV_ENDPOINT", "h:1"}};

  EXPECT_EQ(notes_on_own_variables(spec, {}, false),
            Notes{"the job itself sets MASTER_ADDR, MASTER_PORT and PET_RDZV_ENDPOINT, so Muster "
                  "does not set them (the address of the master); remove them" +
                  kAdvice});
}

TEST(OwnVariables, OfARoleAreNotedForThatRole) {
  JobSpec spec = spec_of(Kind::kGrpc);
  spec.environment["PS_CONFIG"] = "all";
  spec.parameter_server.environment["TF_CONFIG"] = "ps";
  spec.leader.environment["TF_CONFIG"] = "chief";

  const Notes notes = notes_on_own_variables(spec, {}, false);

  ASSERT_EQ(notes.size(), 2U);
  EXPECT_TRUE(notes[0].starts_with("the job itself sets PS_CONFIG, so ")) << notes[0];
  EXPECT_TRUE(
      notes[1].starts_with("the job itself sets TF_CONFIG in tasks of role chief and ps, so "))
      << notes[1];
}

TEST(OwnVariables, OfARoleWithoutTasksAreNotNoted) {
  JobSpec spec = spec_of(Kind::kGrpc);
  spec.evaluator.environment["TF_CONFIG"] = "none";

  EXPECT_EQ(notes_on_own_variables(spec, {}, false), Notes());
}

TEST(OwnVariables, MayBeSecrets) {
  JobSpec spec = spec_of(Kind::kGrpc);
  spec.secrets = {{.name = "CLUSTER", .variable = "TF_CONFIG"}, {.name = "CA", .file = "ca"}};

  EXPECT_EQ(notes_on_own_variables(spec, {}, true).size(), 1U);
}

TEST(OwnVariables, MayComeFromAStandInOrFromTheShell) {
  JobSpec spec = spec_of(Kind::kTorch);
  spec.image = "torch";
  spec.environment["MASTER_PORT"] = "1";
  job::note_inherited({"MASTER_PORT"}, false, spec);
  const job::ImageStandIns images{{"torch", {.environment = {{"MASTER_ADDR", "h"}}}}};

  const Notes here = notes_on_own_variables(spec, images, false);
  ASSERT_EQ(here.size(), 1U);
  EXPECT_TRUE(here[0].starts_with("the job itself sets MASTER_ADDR and MASTER_PORT"));

  EXPECT_EQ(notes_on_own_variables(spec, images, true), Notes());
}

TEST(OwnVariables, AreNotNotedIfTheyOnlyTuneOrDoNotConcernTheKind) {
  JobSpec torch = spec_of(Kind::kTorch);
  torch.environment = {{"PET_MAX_RESTARTS", "3"}, {"PET_NPROC_PER_NODE", "gpu"}, {"TF_CONFIG", ""}};
  EXPECT_EQ(notes_on_own_variables(torch, {}, false), Notes());

  JobSpec single = spec_of(Kind::kSingle);
  single.environment = {{"MASTER_ADDR", "h"}, {"TF_CONFIG", "{}"}};
  EXPECT_EQ(notes_on_own_variables(single, {}, false), Notes());
}

}  // namespace
}  // namespace muster::launch
