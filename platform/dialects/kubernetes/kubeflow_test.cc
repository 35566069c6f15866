#include <gtest/gtest.h>

#include "dialects/kubernetes/test_files.h"

namespace muster::dialects::kubernetes {
namespace {

using job::Kind;

std::string replicas(const std::string& kind, const std::string& keys, const std::string& container,
                     const std::string& pod = "") {
  return "    " + kind + ":\n      " + (keys.empty() ? "" : keys + "\n      ") +
         "template: {spec: {" + pod + "containers: [{" + container + "}]}}\n";
}

std::string mpi_job(const std::string& spec, const std::string& launcher,
                    const std::string& workers) {
  return "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: pi}\nspec:\n" + spec +
         "  mpiReplicaSpecs:\n" + launcher + workers;
}

const std::string kLauncher =
    replicas("Launcher", "replicas: 1",
             "name: l, image: 'mpi:1', command: [mpirun], args: [-n, '2', "
             "/home/mpiuser/pi]");
const std::string kWorkers =
    replicas("Worker", "replicas: 2",
             "name: w, image: 'mpi:1', command: [/usr/sbin/sshd], args: [-De, -f, "
             "/home/mpiuser/.sshd_config], resources: {limits: {cpu: 1, memory: 1Gi}}");

TEST(MpiJobFile, IsALauncherAndItsWorkers) {
  const TranslatedFile file = translated(
      mpi_job("  slotsPerWorker: 4\n  sshAuthMountPath: /home/mpiuser/.ssh\n  mpiImplementation: "
              "MPICH\n  runPolicy: {cleanPodPolicy: Running, ttlSecondsAfterFinished: 60, "
              "activeDeadlineSeconds: 3600, backoffLimit: 2, suspend: true}\n",
              kLauncher, kWorkers));
  ASSERT_EQ(file.faults, Lines{});
  EXPECT_EQ(file.warnings, Lines{});
  const job::JobSpec& spec = file.jobs[0].spec;
  EXPECT_EQ(spec.name, "pi");
  EXPECT_EQ(spec.kind, Kind::kMpi);
  EXPECT_EQ(spec.workers, 2);
  EXPECT_EQ(spec.slots_per_worker, 4);
  EXPECT_EQ(spec.image, "mpi:1");
  EXPECT_EQ(spec.command, Lines{"mpirun"});
  EXPECT_EQ(spec.arguments, (Lines{"-n", "2", "/home/mpiuser/pi"}));
  EXPECT_EQ(spec.worker_command, Lines{});
  EXPECT_EQ(spec.resources, (job::Resources{.cpu_milli = 1000, .memory_bytes = int64_t{1} << 30}));
  EXPECT_EQ(spec.leader, job::RoleSpec());
  EXPECT_EQ(spec.keep_for, std::chrono::seconds(60));
  EXPECT_EQ(spec.scheduling.time_limit, std::chrono::hours(1));
  EXPECT_EQ(spec.scheduling.retries, 2);
  EXPECT_TRUE(spec.held);
}

TEST(MpiJobFile, OfRootLetsOpenMpiRunAsRootWhereTheImageIsNotRun) {
  const std::string text = mpi_job("", kLauncher, kWorkers);
  const TranslatedFile file = translated_with({.is_root = true}, text);
  ASSERT_EQ(file.faults, Lines{});
  const job::JobSpec& spec = file.jobs[0].spec;
  for (const std::string name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                 "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"}) {
    EXPECT_EQ(spec.environment.at(name), "1");
    EXPECT_TRUE(job::inherited_variables(spec).contains(name)) << "an image does not get it";
  }
  EXPECT_EQ(spec_of(text).environment, Settings{}) << "of another user";
  // A value of the file stays, also in the image.
  const std::string own =
      replicas("Worker", "replicas: 2",
               "name: w, image: 'mpi:1', env: [{name: OMPI_ALLOW_RUN_AS_ROOT, value: '0'}]");
  const TranslatedFile kept = translated_with({.is_root = true}, mpi_job("", kLauncher, own));
  ASSERT_EQ(kept.faults, Lines{});
  const job::JobSpec& as_written = kept.jobs[0].spec;
  EXPECT_EQ(as_written.environment.at("OMPI_ALLOW_RUN_AS_ROOT"), "0");
  EXPECT_FALSE(job::inherited_variables(as_written).contains("OMPI_ALLOW_RUN_AS_ROOT"));
}

TEST(MpiJobFile, HasTheDefaultsOfItsOperator) {
  const job::JobSpec spec = spec_of(mpi_job("", kLauncher, kWorkers));
  EXPECT_EQ(spec.slots_per_worker, 1);
  EXPECT_EQ(spec.leader_slots, 0);
  EXPECT_EQ(spec.scheduling.retries, 6);
  EXPECT_FALSE(spec.keep_for);
  EXPECT_FALSE(spec.held);
}

TEST(MpiJobFile, MayRunRanksInTheLauncher) {
  EXPECT_EQ(
      spec_of(mpi_job("  slotsPerWorker: 2\n  runLauncherAsWorker: true\n", kLauncher, kWorkers))
          .leader_slots,
      2);
}

TEST(MpiJobFile, KeepsTheWorkersOwnCommandUnlessItIsSshd) {
  struct Case {
    const char* keys;
    Lines command;
    Lines warnings;
  };
  const std::string container = "spec.mpiReplicaSpecs.Worker.template.spec.containers[0]";
  for (const Case& one : std::vector<Case>{
           {"command: [/usr/sbin/sshd, -De]", {}, {}},
           {"args: [/usr/sbin/sshd, -De, -f, x]", {}, {}},
           {"command: [sleep, infinity]", {}, {}},
           {"command: [bash, -c, sleep infinity]", {}, {}},
           {"command: [sh, -c, \"sleep infinity\\n\"]", {}, {}},
           {"command: [sleep, 1.5h]", {}, {}},
           {"command: [sleep, inf]", {}, {}},
           {"command: [sleep, '30']", {}, {}},
           {"command: [sh, -c, sleep 365d]", {}, {}},
           {"command: [sh, -c, sleep 5; exec ./serve]", {"sh", "-c", "sleep 5; exec ./serve"}, {}},
           {"command: [sh, -c, sleep 5 && ./serve]", {"sh", "-c", "sleep 5 && ./serve"}, {}},
           {"command: [sh, -c, sleep $DELAY]", {"sh", "-c", "sleep $DELAY"}, {}},
           {"command: [bash, -c, 'sleep 10; prep; /usr/sbin/sshd -De']",
            {},
            {container + ".command: is not run: Muster starts the sshd of the workers itself"}},
           {"command: [./serve], args: [-v]", {"./serve", "-v"}, {}},
           {"command: [bash, -c, 'prepare && /usr/sbin/sshd -De']",
            {},
            {container + ".command: is not run: Muster starts the sshd of the workers itself"}}}) {
    const TranslatedFile file = translated(
        mpi_job("", kLauncher,
                replicas("Worker", "", "name: w, image: 'mpi:1', " + std::string(one.keys))));
    ASSERT_EQ(file.faults, Lines{});
    EXPECT_EQ(file.jobs[0].spec.worker_command, one.command) << one.keys;
    EXPECT_EQ(file.warnings, one.warnings) << one.keys;
  }
}

TEST(MpiJobFile, FindsTheFilesOfItsOperator) {
  const job::JobSpec spec =
      spec_of(mpi_job("",
                      replicas("Launcher", "",
                               "image: 'mpi:1', command: [horovodrun, --host-discovery-script, "
                               "/etc/mpi/discover_hosts.sh, --hostfile=/etc/mpi/hostfile, -H, "
                               "'pi-worker-0.pi.default.svc:1,pi-worker-1.pi:1']"),
                      kWorkers));
  EXPECT_EQ(spec.command,
            (Lines{"horovodrun", "--host-discovery-script", "/generated/discover_hosts.sh",
                   "--hostfile=/generated/hostfile", "-H", "pi-worker-0:1,pi-worker-1:1"}));
}

TEST(MpiJobFile, IsKnownByTheNameOfItsJob) {
  const std::string text = mpi_job(
      "",
      replicas("Launcher", "", "image: 'mpi:1', command: [mpirun, -H, 'pi-worker-0,pi-worker-9']"),
      kWorkers);
  const TranslatedFile file = translated_with({.name = "tau"}, text);
  ASSERT_EQ(file.faults, Lines{});
  EXPECT_EQ(file.jobs[0].spec.command.back(), "tau-worker-0,pi-worker-9");
}

TEST(MpiJobFile, WithAGeneratedNameKeepsTheFlagsOfItsLauncher) {
  std::string text = mpi_job(
      "", replicas("Launcher", "", "image: 'mpi:1', command: [mpirun, -launcher, ssh, ./pi]"),
      kWorkers);
  text.replace(text.find("{name: pi}"), 10, "{generateName: pi-}");
  EXPECT_EQ(spec_of(text).command, (Lines{"mpirun", "-launcher", "ssh", "./pi"}));
}

TEST(MpiJobFile, GivesTheLauncherItsOwnSettings) {
  const TranslatedFile file = translated(mpi_job(
      "",
      replicas(
          "Launcher", "",
          "image: 'launch:1', command: [mpirun], env: [{name: A, value: '1'}, {name: B, value: "
          "'2'}], securityContext: {runAsUser: 5}, resources: {requests: {cpu: 1}}"),
      replicas("Worker", "",
               "image: 'mpi:1', env: [{name: A, value: '1'}, {name: C, value: '3'}]")));
  ASSERT_EQ(file.faults, Lines{});
  const job::JobSpec& spec = file.jobs[0].spec;
  EXPECT_EQ(spec.leader, (job::RoleSpec{.image = "launch:1",
                                        .user = "5",
                                        .resources = {.cpu_milli = 1000},
                                        .environment = {{"B", "2"}}}));
  EXPECT_EQ(spec.environment, (Settings{{"A", "1"}, {"C", "3"}}));
  EXPECT_EQ(file.warnings,
            (Lines{"spec.mpiReplicaSpecs.Worker.template.spec.containers[0].env[1]: is set in all "
                   "tasks of the job, also in those of leader"}));
}

TEST(MpiJobFile, ReportsEveryFaultWithItsPath) {
  EXPECT_EQ(
      faults_of("apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: Pi_1}\nspec:\n"
                "  slotsPerWorker: 0\n  mpiImplementation: LAM\n"
                "  runPolicy: {cleanPodPolicy: Some, managedBy: kueue.x-k8s.io/multikueue}\n"
                "  mpiReplicaSpecs:\n" +
                replicas("Launcher", "replicas: 2", "image: 'mpi:1', command: [mpirun]") +
                replicas("Worker", "replicas: 0", "image: 'mpi:1'") +
                replicas("Master", "", "image: 'mpi:1'")),
      (Lines{
          "metadata.name: 'Pi_1' is not a job name; use 1 to 48 of a-z, 0-9 and '-', with a letter "
          "or digit at both ends",
          "spec.slotsPerWorker: must be a whole number from 1 to 1024",
          "spec.mpiImplementation: 'LAM' is invalid: expected one of OpenMPI, Intel, MPICH",
          "spec.runPolicy.cleanPodPolicy: 'Some' is invalid: expected one of All, Running, None, ",
          "spec.runPolicy.managedBy: 'kueue.x-k8s.io/multikueue' would run the job in another "
          "cluster; remove it",
          "spec.mpiReplicaSpecs.Launcher.replicas: is 2; a job has one of these",
          "spec.mpiReplicaSpecs.Worker.replicas: must be at least 1",
          "spec.mpiReplicaSpecs.Master: is an unknown kind of replicas; the kinds are Launcher and "
          "Worker"}));
}

TEST(MpiJobFile, MayStartWithFewerWorkers) {
  const job::JobSpec spec = spec_of(mpi_job(
      "  runPolicy: {schedulingPolicy: {minAvailable: 2, queue: team-a, priorityClass: build, "
      "minResources: {cpu: 3}}, backoffLimit: 0}\n",
      kLauncher, kWorkers));
  EXPECT_EQ(spec.scheduling.min_workers, 1);
  EXPECT_EQ(spec.project, "team-a");
  EXPECT_EQ(spec.scheduling.purpose, job::Purpose::kBuild);
  EXPECT_EQ(
      spec_of(mpi_job("  runPolicy: {schedulingPolicy: {minAvailable: 3}}\n", kLauncher, kWorkers))
          .scheduling.min_workers,
      std::nullopt);
}

// --- PyTorchJob

std::string torch_job(const std::string& spec, const std::string& specs) {
  return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: ddp}\nspec:\n" + spec +
         "  pytorchReplicaSpecs:\n" + specs;
}

const std::string kTorch = "name: pytorch, image: 'torch:1', command: [torchrun, demo.py]";

TEST(PyTorchJobFile, IsAMasterAndItsWorkers) {
  const job::JobSpec spec = spec_of(
      torch_job("  nprocPerNode: '2'\n",
                replicas("Master", "restartPolicy: OnFailure", kTorch) +
                    replicas("Worker", "replicas: 3\n      restartPolicy: OnFailure", kTorch)));
  EXPECT_EQ(spec.kind, Kind::kTorch);
  EXPECT_EQ(spec.workers, 3);
  EXPECT_EQ(spec.slots_per_worker, 2);
  EXPECT_EQ(spec.command, (Lines{"torchrun", "demo.py"}));
  EXPECT_EQ(spec.leader, job::RoleSpec());
  EXPECT_EQ(spec.success, job::Success::kLeader);
  EXPECT_EQ(spec.scheduling.retries, 1000);
}

TEST(PyTorchJobFile, WithoutAMasterHasItsFirstWorkerLead) {
  const job::JobSpec spec =
      spec_of(torch_job("", replicas("Worker", "replicas: 3",
                                     kTorch + ", env: [{name: STORE, value: 'ddp-worker-0:1 "
                                              "ddp-worker-2 ddp-worker-20'}], resources: {limits: "
                                              "{nvidia.com/gpu: 1}}")));
  EXPECT_EQ(spec.workers, 2);
  EXPECT_EQ(spec.leader.resources.gpus, 1);
  EXPECT_EQ(spec.environment, (Settings{{"PET_NPROC_PER_NODE", "auto"},
                                        {"STORE", "ddp-master:1 ddp-worker-1 ddp-worker-20"}}));
}

TEST(PyTorchJobFile, HasItsRolesOwnProgramsAndImages) {
  const job::JobSpec spec = spec_of(torch_job(
      "", replicas("Master", "", "name: pytorch, image: 'a:1', command: [lead], args: [x]") +
              replicas("worker", "", "name: pytorch, image: 'b:1', args: [y]")));
  EXPECT_EQ(spec.image, "b:1");
  EXPECT_EQ(spec.command, Lines{});
  EXPECT_EQ(spec.arguments, Lines{"y"});
  EXPECT_EQ(spec.leader, (job::RoleSpec{.image = "a:1", .command = {"lead", "x"}}));
}

TEST(PyTorchJobFile, AddsArgumentsOfTheMasterToTheImagesProgram) {
  const job::JobSpec spec = spec_of(
      torch_job("", replicas("Master", "", "image: 'a:1', args: [--backend, gloo, --save]") +
                        replicas("Worker", "", "image: 'a:1', args: [--backend, gloo]")));
  EXPECT_EQ(spec.arguments, (Lines{"--backend", "gloo"}));
  EXPECT_EQ(spec.leader.arguments, Lines{"--save"});
}

TEST(PyTorchJobFile, RefusesProgramsThatItsRolesCannotHave) {
  EXPECT_EQ(faults_of(torch_job("", replicas("Master", "", "image: 'a:1', args: [x]") +
                                        replicas("Worker", "", "image: 'a:1', args: [y]"))),
            (Lines{"spec.pytorchReplicaSpecs.Master.template.spec.containers[0].args: differ from "
                   "those of the workers, to which they could only be added; give the container a "
                   "command"}));
  EXPECT_EQ(
      faults_of(torch_job("", replicas("Master", "", "image: 'a:1'") +
                                  replicas("Worker", "", "image: 'a:1', command: [y]"))),
      (Lines{"spec.pytorchReplicaSpecs.Master.template.spec.containers[0]: has no command, so "
             "it would run the command of the workers; give it a command"}));
}

TEST(PyTorchJobFile, IsElasticWithAnElasticPolicy) {
  const TranslatedFile file = translated(torch_job(
      "  elasticPolicy: {rdzvBackend: c10d, minReplicas: 1, maxReplicas: 4, maxRestarts: 100, "
      "rdzvId: x, metrics: [{type: Resource}]}\n",
      replicas("Worker", "replicas: 2", kTorch)));
  ASSERT_EQ(file.faults, Lines{});
  EXPECT_EQ(file.warnings,
            (Lines{"spec.elasticPolicy.metrics: has no effect: an elastic job has as "
                   "many workers as there is room for"}));
  const job::JobSpec& spec = file.jobs[0].spec;
  EXPECT_EQ(spec.workers, 3);
  EXPECT_EQ(spec.scheduling.min_workers, 0);
  EXPECT_EQ(spec.environment, (Settings{{"PET_MAX_RESTARTS", "100"},
                                        {"PET_NPROC_PER_NODE", "auto"},
                                        {"PET_RDZV_ID", "x"}}));
  EXPECT_EQ(faults_of(torch_job("  elasticPolicy: {minReplicas: 3, maxReplicas: 2}\n",
                                replicas("Worker", "", kTorch))),
            (Lines{"spec.elasticPolicy: has a minReplicas above its maxReplicas"}));
}

TEST(PyTorchJobFile, RestartsByItsPolicies) {
  struct Case {
    const char* policy;
    const char* run_policy;
    int retries;
    size_t rules;
  };
  for (const Case& one :
       std::vector<Case>{{"Never", "", 0, 0},
                         {"Never", "  runPolicy: {backoffLimit: 3}\n", 0, 0},
                         {"OnFailure", "  runPolicy: {backoffLimit: 3}\n", 3, 0},
                         {"Always", "", 1000, 0},
                         {"ExitCode", "  runPolicy: {backoffLimit: 9}\n", 9, 1}}) {
    const job::JobSpec spec = spec_of(torch_job(
        one.run_policy, replicas("Master", std::string("restartPolicy: ") + one.policy, kTorch)));
    EXPECT_EQ(spec.scheduling.retries, one.retries) << one.policy;
    EXPECT_EQ(spec.scheduling.retry_rules.size(), one.rules) << one.policy;
  }
}

TEST(PyTorchJobFile, ReplacesTheVariablesOfATaskInItsArguments) {
  EXPECT_EQ(spec_of(torch_job("", replicas("Master", "",
                                           "image: 'a:1', command: [train], args: ['--world', "
                                           "$(WORLD_SIZE), $(HOME)]")))
                .command,
            (Lines{"sh", "-c", "exec train --world \"${WORLD_SIZE}\" '$(HOME)'"}));
}

// --- TFJob

std::string tf_job(const std::string& spec, const std::string& specs) {
  return "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: tf}\nspec:\n" + spec +
         "  tfReplicaSpecs:\n" + specs;
}

const std::string kTensorFlow = "name: tensorflow, image: 'tf:1', command: [python, mnist.py]";

TEST(TfJobFile, IsAClusterWithItsChief) {
  for (const char* chief : {"Chief", "Master"}) {
    const job::JobSpec spec = spec_of(tf_job(
        "", replicas(chief, "", kTensorFlow) + replicas("PS", "replicas: 2", kTensorFlow) +
                replicas("Worker", "replicas: 3", kTensorFlow + ", resources: {limits: {cpu: 2}}") +
                replicas("Evaluator", "", kTensorFlow)));
    EXPECT_EQ(spec.kind, Kind::kGrpc);
    EXPECT_EQ(spec.workers, 3);
    EXPECT_EQ(spec.parameter_servers, 2);
    EXPECT_EQ(spec.evaluators, 1);
    EXPECT_FALSE(spec.chief_is_worker);
    EXPECT_EQ(spec.resources.cpu_milli, 2000);
    EXPECT_EQ(spec.leader, job::RoleSpec());
    EXPECT_EQ(spec.scheduling.retries, 0);
    EXPECT_EQ(spec.success, job::Success::kLeader);
  }
}

TEST(TfJobFile, WithoutAChiefHasWorkerZeroLead) {
  const job::JobSpec spec = spec_of(
      tf_job("  successPolicy: AllWorkers\n", replicas("Worker", "replicas: 3", kTensorFlow)));
  EXPECT_EQ(spec.kind, Kind::kGrpc);
  EXPECT_EQ(spec.workers, 2);
  EXPECT_TRUE(spec.chief_is_worker);
  EXPECT_EQ(spec.success, job::Success::kAll);
}

TEST(TfJobFile, HasTheVolumesOfItsRolesOnce) {
  const std::string volume = "volumes: [{name: d, persistentVolumeClaim: {claimName: claim}}], ";
  const std::string mounted = kTensorFlow + ", volumeMounts: [{name: d, mountPath: /train}]";
  const auto file = [&](const std::string& chief, const std::string& worker) {
    std::string first = volume;
    std::string second = volume;
    first.replace(first.find("claim}"), 5, chief);
    second.replace(second.find("claim}"), 5, worker);
    return tf_job("", replicas("Chief", "", mounted, first) +
                          replicas("Worker", "replicas: 2", mounted, second));
  };
  EXPECT_EQ(spec_of(file("a", "a")).volumes.size(), 1U);
  EXPECT_EQ(
      faults_of(file("a", "b")),
      (Lines{
          "spec.tfReplicaSpecs.Chief.template.spec.containers[0].volumeMounts[0]: '/train' is "
          "already the target of "
          "spec.tfReplicaSpecs.Worker.template.spec.containers[0].volumeMounts[0]; all tasks of a "
          "job have the same volumes"}));
  EXPECT_EQ(spec_of(tf_job("", replicas("Worker", "replicas: 2", mounted, volume))).volumes.size(),
            1U);
}

TEST(TfJobFile, OfOneWorkerIsASingleTask) {
  EXPECT_EQ(spec_of(tf_job("", replicas("Worker", "", kTensorFlow))).kind, Kind::kSingle);
}

TEST(TfJobFile, RefusesUnsupportedFieldsAndInvalidRoles) {
  EXPECT_EQ(faults_of(tf_job("  enableDynamicWorker: true\n",
                             replicas("Chief", "replicas: 2", kTensorFlow) +
                                 replicas("Master", "", kTensorFlow))),
            (Lines{"spec.enableDynamicWorker: is not supported: each task has the addresses of the "
                   "whole cluster",
                   "spec.tfReplicaSpecs: has a Chief and a Master, which are the same; give one",
                   "spec.tfReplicaSpecs.Chief.replicas: is 2; a job has one of these"}));
  EXPECT_EQ(faults_of(tf_job("", replicas("PS", "", kTensorFlow))),
            (Lines{"spec.tfReplicaSpecs: has neither a Chief nor Workers"}));
}

}  // namespace
}  // namespace muster::dialects::kubernetes
