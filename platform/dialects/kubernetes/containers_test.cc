// The translation of init containers and sidecars in job files of Kubernetes.
#include <gtest/gtest.h>

#include "dialects/kubernetes/test_files.h"

namespace muster::dialects::kubernetes {

namespace {

using Of = job::PodContainer::Of;
using Runs = job::PodContainer::Runs;

const std::string kInit = "spec.template.spec.initContainers[0]";

TranslatedFile on_a_cluster(const std::string& text) {
  return translated_with({.on_kubernetes = true}, text);
}

/// A Job whose container has the volume `data` at /data, with these init containers.
TranslatedFile with_init(const std::string& init, const std::string& volume = "emptyDir: {}") {
  return on_a_cluster(
      simple_job({"command: [ls]", "volumeMounts: [{name: data, mountPath: /data}]"},
                 {"volumes: [{name: data, " + volume + "}, {name: own, emptyDir: {}}]",
                  "initContainers: [" + init + "]"}));
}

TEST(KubernetesContainers, AreTranslatedWithTheirMounts) {
  const TranslatedFile file = with_init(
      "{name: fetch, image: 'curl:8', command: [curl, $(URL)], args: [-o, '$$(x)'], env: [{name: "
      "URL, value: http://a}], workingDir: /tmp, resources: {limits: {cpu: 500m, memory: 1Ki}}, "
      "securityContext: {runAsUser: 7, runAsGroup: 8}, volumeMounts: [{name: data, mountPath: /in, "
      "subPath: raw, readOnly: true}]}, {name: keep, image: b, restartPolicy: Always, "
      "volumeMounts: [{name: data, mountPath: /data}]}");

  ASSERT_EQ(file.faults, Lines{});
  EXPECT_EQ(file.warnings, Lines{});
  EXPECT_EQ(file.jobs[0].spec.kubernetes.containers,
            (std::vector<job::PodContainer>{{.name = "fetch",
                                             .image = "curl:8",
                                             .command = {"curl", "http://a"},
                                             .arguments = {"-o", "$(x)"},
                                             .environment = {{"URL", "http://a"}},
                                             .folder = "/tmp",
                                             .user = "7:8",
                                             .cpu_milli = 500,
                                             .memory_bytes = 1024,
                                             .mounts = {"/data/raw:/in:ro"}},
                                            {.name = "keep",
                                             .runs = Runs::kBeside,
                                             .image = "b",
                                             .pull = job::PullPolicy::kAlways,
                                             .mounts = {"/data"}}}));
}

TEST(KubernetesContainers, OfAnotherPartOfAVolumeMountItsPathInTheTask) {
  const auto mounts_with = [](const std::string& own, const std::string& its) {
    const TranslatedFile file = on_a_cluster(simple_job(
        {"command: [ls]", "volumeMounts: [{name: data, mountPath: /data" + own + "}]"},
        {"volumes: [{name: data, persistentVolumeClaim: {claimName: sets}}]",
         "initContainers: [{name: a, image: a, volumeMounts: [{name: data, mountPath: /in" + its +
             "}]}]"}));
    return file.faults.empty() ? file.jobs[0].spec.kubernetes.containers[0].mounts : file.faults;
  };
  EXPECT_EQ(mounts_with(", subPath: a", ", subPath: a"), Lines{"/data:/in"});
  EXPECT_EQ(mounts_with(", subPath: a", ", subPath: a/b"), Lines{"/data/b:/in"});
  EXPECT_EQ(mounts_with(", subPath: a", ""),
            Lines{kInit + ".volumeMounts[0]: mounts another part of 'data' than the container of "
                          "the task"});
}

TEST(KubernetesContainers, WithFieldsThatOnlyTasksCanHaveAreRefused) {
  const auto faults =
      with_init(
          "{name: a, image: a, resources: {limits: {nvidia.com/gpu: 1}}, securityContext: "
          "{capabilities: {add: [SYS_PTRACE]}}, env: [{name: T, valueFrom: {secretKeyRef: {name: "
          "hf, key: t}}}, {name: H, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], "
          "volumeMounts: [{name: own, mountPath: /own}]}")
          .faults;
  const std::string only =
      ": has a value that exists only in the running task, or a secret; a container beside the "
      "task gets plain values, and Secrets as volumes";

  EXPECT_EQ(faults,
            (Lines{kInit + ": requests devices, which only the container of the task gets",
                   kInit + ": requests privileges, which only the container of the task may have",
                   kInit + ".env[0]" + only, kInit + ".env[1]" + only,
                   kInit + ".volumeMounts[0]: 'own' is not mounted by the container of the task; "
                           "mount the volume there, too"}));
}

TEST(KubernetesContainers, ThatNeedFilesOfTheSameFileAreRefused) {
  const std::string map =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: code}\ndata: {a.sh: echo}\n---\n";
  const std::string job = simple_job(
      {"command: [ls]", "volumeMounts: [{name: c, mountPath: /c}]"},
      {"volumes: [{name: c, configMap: {name: code}}]",
       "initContainers: [{name: a, image: a, volumeMounts: [{name: c, mountPath: /c}]}]"});

  EXPECT_EQ(on_a_cluster(map + job).faults,
            Lines{kInit + ".volumeMounts[0]: has files of a ConfigMap in the same file, which only "
                          "the task gets, when it starts; create the ConfigMap in the cluster, and "
                          "leave it out of the file"});
  EXPECT_EQ(on_a_cluster(job).faults, Lines{}) << "of the namespace";
}

TEST(KubernetesContainers, BesideTheMainOneAreSidecars) {
  const TranslatedFile file =
      on_a_cluster(simple_job({"command: [ls]"}) + "      - {name: log, image: 'b:1'}\n");

  ASSERT_EQ(file.faults, Lines{});
  EXPECT_EQ(file.warnings,
            Lines{"spec.template.spec.containers[1]: is a sidecar: it ends with the task, and is "
                  "started again if it ends before"});
  EXPECT_EQ(
      file.jobs[0].spec.kubernetes.containers,
      (std::vector<job::PodContainer>{{.name = "log", .runs = Runs::kBeside, .image = "b:1"}}));
}

std::string pod_of_role(const std::string& name, const std::string& init) {
  return "{restartPolicy: Never, template: {spec: {" +
         (init.empty() ? "" : "initContainers: [" + init + "], ") + "containers: [{name: " + name +
         ", image: 'a:1', command: [ls]}]}}}";
}

std::string job_of_two_roles(const std::string& of_launcher, const std::string& of_worker) {
  return "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: pi}\nspec:\n"
         "  mpiReplicaSpecs:\n    Launcher: " +
         pod_of_role("l", of_launcher) + "\n    Worker: " + pod_of_role("w", of_worker) + "\n";
}

TEST(KubernetesContainers, BelongToTheTasksOfTheirRole) {
  const std::string waits = "{name: wait, image: 'b:1', command: [nslookup, pi-worker-0.pi]}";
  const TranslatedFile file = on_a_cluster(job_of_two_roles(waits, ""));

  ASSERT_EQ(file.faults, Lines{});
  const auto& containers = file.jobs[0].spec.kubernetes.containers;
  ASSERT_EQ(containers.size(), 1U);
  EXPECT_EQ(containers[0].of, Of::kLeader);
  EXPECT_EQ(containers[0].command, (Lines{"nslookup", "pi-worker-0"}));
}

TEST(KubernetesContainers, ThatAllRolesHaveAreListedOnce) {
  const std::string same = "{name: a, image: 'b:1'}";
  const auto of_tasks = [](const TranslatedFile& file) {
    std::vector<Of> all;
    if (file.jobs.empty()) return all;
    for (const auto& each : file.jobs[0].spec.kubernetes.containers) all.push_back(each.of);
    return all;
  };
  EXPECT_EQ(of_tasks(on_a_cluster(job_of_two_roles(same, same))), std::vector<Of>{Of::kAll});
  EXPECT_EQ(of_tasks(on_a_cluster(job_of_two_roles(same, "{name: a, image: 'c:1'}"))),
            (std::vector<Of>{Of::kLeader, Of::kWorkers}));
}

TEST(KubernetesContainers, AreCheckedUnderThePathsOfTheFile) {
  EXPECT_EQ(with_init("{name: task, image: 'a:1'}").faults,
            Lines{kInit + ": 'task' is a container of Muster"});
  EXPECT_EQ(with_init("{name: main, image: 'a:1'}").faults,
            Lines{kInit + ": 'main' is the name of two containers"});
  EXPECT_EQ(with_init("{name: a, image: 'a:1'}, {name: a, image: 'b:1'}").faults,
            Lines{"spec.template.spec.initContainers[1]: 'a' is given twice"});
}

}  // namespace

}  // namespace muster::dialects::kubernetes
