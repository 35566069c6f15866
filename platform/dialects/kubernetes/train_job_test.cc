#include <gtest/gtest.h>

#include "dialects/kubernetes/test_files.h"

namespace muster::dialects::kubernetes {
namespace {

using job::Kind;

std::string train_job(const std::string& runtime, const std::string& spec) {
  return "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: ddp}\nspec:\n"
         "  runtimeRef: {name: " +
         runtime + "}\n" + spec;
}

std::string runtime(const std::string& policy, const std::string& jobs,
                    const std::string& more = "") {
  return "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\nmetadata: {name: "
         "mine}\nspec:\n  mlPolicy: " +
         policy + "\n" + more + "  template:\n    spec:\n      replicatedJobs:\n" + jobs + "---\n";
}

std::string replicated(const std::string& name, const std::string& container,
                       const std::string& pod = "") {
  return "      - name: " + name + "\n        template: {spec: {template: {spec: {" + pod +
         "containers: [{name: node, " + container + "}]}}}}\n";
}

TEST(TrainJobFile, RunsOnTheTorchRuntimeOfTrainer) {
  const TranslatedFile file = translated(
      train_job("torch-distributed",
                "  trainer: {numNodes: 3, image: 'torch:1', command: [torchrun, train.py], env: "
                "[{name: LR, value: '1'}], resourcesPerNode: {requests: {cpu: 2}, limits: {cpu: 4, "
                "memory: 1Gi}}}\n"));
  ASSERT_EQ(file.faults, Lines{});
  EXPECT_EQ(file.warnings, Lines{});
  const job::JobSpec& spec = file.jobs[0].spec;
  EXPECT_EQ(spec.kind, Kind::kTorch);
  EXPECT_EQ(spec.workers, 2);
  EXPECT_EQ(spec.success, job::Success::kAll);
  EXPECT_EQ(spec.image, "torch:1");
  EXPECT_EQ(spec.command, (Lines{"torchrun", "train.py"}));
  EXPECT_EQ(spec.environment, (Settings{{"LR", "1"}}));
  EXPECT_EQ(spec.resources, (job::Resources{.cpu_milli = 4000, .memory_bytes = int64_t{1} << 30}));
  EXPECT_EQ(spec.leader.resources, spec.resources);
  EXPECT_EQ(spec.slots_per_worker, 4);
}

TEST(TrainJobFile, ReportsTheDefaultImageIfItNamesNone) {
  EXPECT_EQ(warnings_of(train_job("torch-distributed", "  trainer: {command: [ls]}\n")),
            (Lines{"spec.runtimeRef.name: is not in this file; the image is that of Trainer 2.3, "
                   "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"}));
}

TEST(TrainJobFile, StartsAsManyProcessesAsGpus) {
  struct Case {
    const char* trainer;
    int expected;
  };
  for (const Case& one :
       std::vector<Case>{{"resourcesPerNode: {limits: {nvidia.com/gpu: 8}}", 8},
                         {"resourcesPerNode: {limits: {nvidia.com/gpu: 8}}, numProcPerNode: 2", 2},
                         {"numProcPerNode: auto", 1},
                         {"resourcesPerNode: {limits: {cpu: 500m}}", 1}}) {
    EXPECT_EQ(spec_of(train_job("torch-distributed", "  trainer: {image: 'a:1', command: [ls], " +
                                                         std::string(one.trainer) + "}\n"))
                  .slots_per_worker,
              one.expected)
        << one.trainer;
  }
}

TEST(TrainJobFile, RunsOnARuntimeOfItsFile) {
  const job::JobSpec spec = spec_of(
      runtime("{numNodes: 2, torch: {}}",
              replicated("node",
                         "image: 'mine:1', command: [python], args: [a.py], env: [{name: A, "
                         "value: '1'}, {name: B, value: '1'}]",
                         "nodeSelector: {agentpool: gpus}, "),
              "  podGroupPolicy: {volcano: {}}\n") +
      train_job("mine",
                "  trainer: {args: [b.py], env: [{name: B, value: '2'}]}\n  suspend: true\n  "
                "activeDeadlineSeconds: 5\n"));
  EXPECT_EQ(spec.workers, 1);
  EXPECT_EQ(spec.image, "mine:1");
  EXPECT_EQ(spec.command, Lines{"python"});
  EXPECT_EQ(spec.arguments, Lines{"b.py"});
  EXPECT_EQ(spec.environment, (Settings{{"A", "1"}, {"B", "2"}}));
  EXPECT_EQ(spec.scheduling.node_pools, Lines{"gpus"});
  EXPECT_EQ(spec.scheduling.time_limit, std::chrono::seconds(5));
  EXPECT_TRUE(spec.held);
}

TEST(TrainJobFile, RunsMpiWithItsLauncherAsANode) {
  for (const char* name : {"mpi-distributed", "deepspeed-distributed", "mlx-distributed"}) {
    const job::JobSpec spec = spec_of(train_job(
        name,
        "  trainer: {numNodes: 3, numProcPerNode: 2, image: 'mpi:1', command: [mpirun], args: "
        "[./a], resourcesPerNode: {limits: {cpu: 1}}}\n"));
    EXPECT_EQ(spec.kind, Kind::kMpi);
    EXPECT_EQ(spec.workers, 2);
    EXPECT_EQ(spec.leader_slots, 2);
    EXPECT_EQ(spec.slots_per_worker, 2);
    EXPECT_EQ(spec.image, "mpi:1");
    EXPECT_EQ(spec.user, "1000");
    EXPECT_EQ(spec.command, Lines{"mpirun"});
    EXPECT_EQ(spec.arguments, Lines{"./a"});
    EXPECT_EQ(spec.resources.cpu_milli, 1000);
    EXPECT_EQ(spec.leader, (job::RoleSpec{.resources = {.cpu_milli = 1000}}));
  }
}

TEST(TrainJobFile, RunsPlainRuntimes) {
  const std::string mine =
      runtime("{numNodes: 1}", replicated("node", "image: 'a:1', command: [ls]"));
  EXPECT_EQ(spec_of(mine + train_job("mine", "")).kind, Kind::kSingle);
  const job::JobSpec many = spec_of(mine + train_job("mine", "  trainer: {numNodes: 2}\n"));
  EXPECT_EQ(many.kind, Kind::kTorch);
  EXPECT_EQ(many.success, job::Success::kAll);
}

TEST(TrainJobFile, ChangesThePodsOfItsRuntime) {
  const std::string pod =
      "{volumes: [{name: d, persistentVolumeClaim: {claimName: data}}], containers: [{name: node, "
      "volumeMounts: [{name: d, mountPath: /data}]}], nodeSelector: {agentpool: big}, "
      "serviceAccountName: a}";
  const std::string trainer = "  trainer: {image: 'a:1', command: [ls]}\n";
  for (const std::string& change :
       {"  runtimePatches: [{manager: me, trainingRuntimeSpec: {template: {metadata: {labels: "
        "{team: a}}, spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: " +
            pod + "}}}}]}}}}]\n",
        "  podTemplateOverrides: [{targetJobs: [{name: node}], spec: " + pod + "}]\n"}) {
    const TranslatedFile file = translated(train_job("torch-distributed", trainer + change));
    ASSERT_EQ(file.faults, Lines{});
    const job::JobSpec& spec = file.jobs[0].spec;
    EXPECT_EQ(spec.volumes,
              (std::vector<job::Volume>{
                  {.kind = job::Volume::Kind::kStorage, .source = "data", .target = "/data"}}));
    EXPECT_EQ(spec.scheduling.node_pools, Lines{"big"});
    ASSERT_EQ(file.warnings.size(), 1U);
    EXPECT_NE(file.warnings[0].find(".spec.serviceAccountName: applies only"), std::string::npos);
  }
}

TEST(TrainJobFile, NamesFieldsWithoutACounterpart) {
  EXPECT_EQ(
      faults_of(train_job("jax-distributed",
                          "  initializer: {dataset: {storageUri: "
                          "'hf://a/b'}}\n  managedBy: "
                          "kueue.x-k8s.io/multikueue\n")),
      (Lines{"spec.runtimeRef.name: 'jax-distributed' is neither in this file nor one of "
             "Trainer's runtimes torch-distributed, mpi-distributed, deepspeed-distributed and "
             "mlx-distributed; add the TrainingRuntime to the file",
             "spec.initializer: is not supported: Muster runs no step before the training; "
             "fetch the data in the command, or in a job of its own into a volume of the "
             "project",
             "spec.managedBy: 'kueue.x-k8s.io/multikueue' would run the job in another "
             "cluster; remove it"}));
  EXPECT_EQ(
      faults_of(runtime("{jax: {}}", replicated("dataset-initializer", "image: 'b:1'") +
                                         replicated("node", "image: 'a:1', command: [ls]")) +
                train_job("mine",
                          "  runtimePatches: [{manager: m, trainingRuntimeSpec: "
                          "{template: {spec: {replicatedJobs: [{name: other}]}}}}]\n")),
      (Lines{"spec.mlPolicy.jax: is not supported; Muster runs torch, mpi and plain runtimes",
             "spec.template.spec.replicatedJobs[0]: 'dataset-initializer' is a step of its own, "
             "which Muster does not run; submit it as a job before this one, and remove it from "
             "the runtime",
             "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].name: "
             "'other' is not a job of the runtime"}));
}

TEST(TrainJobFile, CallsItsNodesByTheirNames) {
  EXPECT_EQ(spec_of(train_job("torch-distributed",
                              "  trainer: {numNodes: 2, image: 'a:1', command: [ls, "
                              "'ddp-node-0-0.ddp:29400', ddp-node-0-1.ddp]}\n"))
                .command,
            (Lines{"ls", "ddp-master:29400", "ddp-worker-0"}));
}

}  // namespace
}  // namespace muster::dialects::kubernetes
