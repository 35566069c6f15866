#include "dialects/kubernetes/pod.h"

#include <gtest/gtest.h>

#include "dialects/kubernetes/test_files.h"

namespace muster::dialects::kubernetes {
namespace {

using job::Volume;

const std::string kContainer = "spec.template.spec.containers[0]";
const std::string kPod = "spec.template.spec";

job::JobSpec pod_with(const Lines& container, const Lines& pod = {}) {
  Lines lines{"command: [ls]"};
  lines.insert(lines.end(), container.begin(), container.end());
  return spec_of(simple_job(lines, pod));
}

Lines pod_faults_with(const Lines& container, const Lines& pod = {}) {
  Lines lines{"command: [ls]"};
  lines.insert(lines.end(), container.begin(), container.end());
  return faults_of(simple_job(lines, pod));
}

Lines warnings_with(const Lines& container, const Lines& pod = {}) {
  Lines lines{"command: [ls]"};
  lines.insert(lines.end(), container.begin(), container.end());
  return warnings_of(simple_job(lines, pod));
}

TEST(KubernetesPod, ClaimsItsLimitsElseItsRequests) {
  struct Case {
    const char* resources;
    job::Resources expected;
  };
  for (const Case& one : std::vector<Case>{
           {"{limits: {cpu: 2, memory: 4Gi, nvidia.com/gpu: 1}, requests: {cpu: 1, memory: 1Gi}}",
            {.gpus = 1, .cpu_milli = 2000, .memory_bytes = int64_t{4} << 30}},
           {"{limits: {memory: 1G}, requests: {cpu: 100m}}",
            {.cpu_milli = 100, .memory_bytes = 1'000'000'000}},
           {"{limits: {amd.com/gpu: '2', rdma/hca: 0}}", {.gpus = 2}},
           {"{}", {}}}) {
    EXPECT_EQ(pod_with({"resources: " + std::string(one.resources)}).resources, one.expected)
        << one.resources;
  }
}

TEST(KubernetesPod, RefusesClaimsThatMusterDoesNotCount) {
  EXPECT_EQ(pod_faults_with({"resources: {limits: {rdma/hca: 1, nvidia.com/gpu: 0.5, cpu: x}}"}),
            (Lines{kContainer + ".resources.limits.rdma/hca: 'rdma/hca' is not a resource that "
                                "Muster counts; it counts cpu, memory and nvidia.com/gpu",
                   kContainer + ".resources.limits.nvidia.com/gpu: '0.5' is not a number of whole "
                                "GPUs up to 1024",
                   kContainer + ".resources.limits.cpu: 'x' is not a quantity, as in 2, 500m or "
                                "16Gi"}));
}

TEST(KubernetesPod, PullsItsImageAsKubernetesWould) {
  struct Case {
    const char* image;
    const char* policy;
    job::PullPolicy expected;
  };
  using Pull = job::PullPolicy;
  for (const Case& one :
       std::vector<Case>{{"a/b:1", "", Pull::kIfMissing},
                         {"a/b", "", Pull::kAlways},
                         {"host:5000/b", "", Pull::kAlways},
                         {"a/b:latest", "", Pull::kAlways},
                         {"a/b:latest", "imagePullPolicy: IfNotPresent", Pull::kIfMissing},
                         {"a/b:1", "imagePullPolicy: Never", Pull::kNever}}) {
    std::string text = simple_job({"command: [ls]", one.policy});
    text.replace(text.find("registry.example.com/train:1"), 28, one.image);
    EXPECT_EQ(spec_of(text).container.pull, one.expected) << one.image;
  }
}

TEST(KubernetesPod, HasTheRightsOfItsSecurityContext) {
  const job::JobSpec spec = pod_with(
      {"securityContext: {runAsUser: 1000, runAsGroup: 100, capabilities: {add: [SYS_PTRACE, "
       "cap_net_raw], drop: [ALL]}, allowPrivilegeEscalation: true, readOnlyRootFilesystem: "
       "true, seccompProfile: {type: RuntimeDefault}}"},
      {"securityContext: {runAsUser: 7, fsGroup: 1, runAsNonRoot: true}"});
  EXPECT_EQ(spec.user, "1000:100");
  EXPECT_EQ(spec.container.capabilities, (Lines{"SYS_PTRACE", "NET_RAW"}));
  EXPECT_TRUE(spec.container.new_privileges);
  EXPECT_FALSE(spec.container.writable_root);
  EXPECT_EQ(pod_with({}, {"securityContext: {runAsUser: 7}"}).user, "7");
  EXPECT_TRUE(pod_with({}).container.writable_root);
}

TEST(KubernetesPod, NamesFieldsWithoutACounterpart) {
  EXPECT_EQ(
      pod_faults_with({"securityContext: {privileged: true}",
                       "lifecycle: {preStop: {exec: {command: "
                       "[ls]}}}"},
                      {"hostPID: true", "hostIPC: false", "initContainers: [{name: a}]",
                       "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                       "{nodeSelectorTerms: []}}}"}),
      (Lines{
          kPod + ".hostPID: is not supported: a task sees its own processes only",
          kPod + ".initContainers[0]: is an init container, which only a server that runs jobs on "
                 "Kubernetes runs; elsewhere, do its work in the command or the image",
          kPod + ".affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution: is not "
                 "supported; choose nodes with scheduling.node_pools, scheduling.gpu_models or "
                 "scheduling.required_topology",
          kContainer + ".securityContext.privileged: is not supported: a task never has the "
                       "rights of its host",
          kContainer + ".lifecycle: is not supported: no program runs before or after the task's "
                       "own"}));
}

TEST(KubernetesPod, WarnsOfFieldsThatAreIgnored) {
  EXPECT_EQ(
      warnings_with(
          {"livenessProbe: {tcpSocket: {port: 1}}"},
          {"hostNetwork: true", "serviceAccountName: robot", "imagePullSecrets: [{name: a}]",
           "priorityClassName: high", "nodeSelector: {disk: ssd}"}),
      (Lines{
          kPod + ".hostNetwork: has no effect: the tasks have the network of their job",
          kPod + ".serviceAccountName: applies only on a server that runs jobs on Kubernetes",
          kPod + ".imagePullSecrets: applies only on a server that runs jobs on Kubernetes; "
                 "elsewhere, set registry.username and registry.secret",
          kPod +
              ".priorityClassName: priority class 'high' applies only on a server that runs jobs "
              "on Kubernetes; elsewhere the job has the usual priority, unless --set "
              "scheduling.priority=N gives another",
          kPod + ".nodeSelector.disk: applies only on a server that runs jobs on Kubernetes",
          kContainer + ".livenessProbe: has no effect: a task that hangs is not restarted"}));
}

TEST(KubernetesPod, NeedsItsOptionalSecrets) {
  EXPECT_EQ(warnings_with({"env: [{name: T, valueFrom: {secretKeyRef: {name: hf, key: token, "
                           "optional: true}}}, {name: U, valueFrom: {secretKeyRef: {name: hf, key: "
                           "user, optional: false}}}]"},
                          {}),
            (Lines{kContainer + ".env[0].valueFrom.secretKeyRef: optional has no effect: the "
                                "secret must exist"}));
}

TEST(KubernetesPod, HasTheOptionsOfACluster) {
  const TranslatedFile file = translated_with(
      {.on_kubernetes = true},
      simple_job({"command: [ls]", "resources: {limits: {rdma/hca: 1}}",
                  "volumeMounts: [{name: d, mountPath: /data, subPath: sets, readOnly: true}]"},
                 {"serviceAccountName: robot", "imagePullSecrets: [{name: pull}]",
                  "priorityClassName: high", "runtimeClassName: nvidia",
                  "nodeSelector: {disk: ssd, agentpool: a100}",
                  "tolerations: [{operator: Exists}, {key: gpu, operator: Exists, effect: "
                  "NoSchedule}, {key: team, value: a}, {key: b, operator: Equal, value: c, effect: "
                  "NoExecute, tolerationSeconds: 5}]",
                  "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]"}));
  ASSERT_EQ(file.faults, Lines{});
  EXPECT_EQ(file.warnings, Lines{});
  const job::JobSpec& spec = file.jobs[0].spec;
  EXPECT_EQ(spec.kubernetes,
            (job::KubernetesSpec{.node_selector = {{"agentpool", "a100"}, {"disk", "ssd"}},
                                 .tolerations = {"*", "gpu:NoSchedule", "team=a", "b=c:NoExecute"},
                                 .priority_class = "high",
                                 .service_account = "robot",
                                 .runtime_class = "nvidia",
                                 .image_pull_secrets = {"pull"},
                                 .claims = {"data/sets:/data:ro"},
                                 .devices = {{"rdma/hca", "1"}}}));
  EXPECT_TRUE(spec.volumes.empty());
  EXPECT_TRUE(spec.scheduling.node_pools.empty());
}

TEST(KubernetesPod, ToleratesAllTaintsOnlyIfTheOperatorIsExists) {
  const std::string fault = "requires a key, or the operator Exists, which tolerates all taints";
  EXPECT_EQ(pod_faults_with({}, {"tolerations: [{operator: Equal, value: a}, {effect: NoExecute}, "
                                 "{operator: Exists}]"}),
            (Lines{kPod + ".tolerations[0]: " + fault, kPod + ".tolerations[1]: " + fault}));
  EXPECT_EQ(warnings_with({}, {"tolerations: [{operator: Exists, effect: NoExecute}]"}),
            (Lines{kPod + ".tolerations[0]: tolerates all taints, not only those with the effect "
                          "NoExecute, because it has no key"}));
}

TEST(KubernetesPod, MountsSecretsAndConfigMapsOfTheNamespace) {
  const std::string file = simple_job(
      {"command: [ls]",
       "volumeMounts: [{name: s, mountPath: /s}, {name: k, mountPath: /k}, {name: c, mountPath: "
       "/c/train.py, subPath: train.py}]"},
      {"volumes: [{name: s, secret: {secretName: hf, defaultMode: 256}}, {name: k, secret: "
       "{secretName: tls, items: [{key: tls.key, path: a/key}]}}, {name: c, configMap: {name: "
       "code}}]"});
  const TranslatedFile translated = translated_with({.on_kubernetes = true}, file);
  ASSERT_EQ(translated.faults, Lines{});
  EXPECT_EQ(translated.jobs[0].spec.kubernetes.claims,
            (Lines{"secret:hf:/s", "secret:tls/tls.key:/k/a/key",
                   "configmap:code/train.py:/c/train.py"}));
  EXPECT_EQ(translated_with({}, file).faults.size(), 3U);
}

TEST(KubernetesPod, IsSilentAboutFieldsWithoutAnEffect) {
  EXPECT_EQ(warnings_with({"ports: [{containerPort: 80, name: http}]",
                           "readinessProbe: {tcpSocket: "
                           "{port: 1}}",
                           "terminationMessagePath: /dev/x"},
                          {"tolerations: [{key: gpu, operator: Exists}]", "dnsPolicy: ClusterFirst",
                           "automountServiceAccountToken: false", "hostNetwork: false",
                           "nodeSelector: {kubernetes.io/os: linux}", "schedulerName: volcano"}),
            Lines{});
}

TEST(KubernetesPod, ChoosesPoolsAndGpuModelsByWellKnownLabels) {
  const job::JobSpec spec = pod_with({}, {"nodeSelector: {cloud.google.com/gke-nodepool: a100, "
                                          "nvidia.com/gpu.product: NVIDIA-A100}"});
  EXPECT_EQ(spec.scheduling.node_pools, Lines{"a100"});
  EXPECT_EQ(spec.scheduling.gpu_models, Lines{"NVIDIA-A100"});
}

TEST(KubernetesPod, HasOneProgram) {
  EXPECT_EQ(
      faults_of(simple_job({"command: [ls]", "", "securityContext: {}"}) +
                "      - {name: sidecar, image: b}\n"),
      (Lines{"spec.template.spec.containers[1]: is a second container, which only a server "
             "that runs jobs on Kubernetes runs; elsewhere, do its work in the command or the "
             "image"}));
}

TEST(KubernetesPod, EndsAsItsPodWould) {
  EXPECT_EQ(pod_with({}).grace, std::chrono::seconds(30));
  EXPECT_EQ(pod_with({}, {"terminationGracePeriodSeconds: 5"}).grace, std::chrono::seconds(5));
}

TEST(KubernetesEnvironment, HasTheValuesOfTheFile) {
  const job::JobSpec spec = spec_of(
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {LR: '0.1', 'a.b': "
      "x}\n---\n" +
      simple_job({"command: [ls]", "envFrom: [{configMapRef: {name: settings}}]",
                  "env: [{name: RATE, valueFrom: {configMapKeyRef: {name: settings, key: LR}}}, "
                  "{name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}, "
                  "{name: MEM, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: "
                  "1Mi}}}, {name: EMPTY}, {name: LABEL, valueFrom: {fieldRef: {fieldPath: "
                  "\"metadata.labels['none']\"}}}]",
                  "resources: {limits: {cpu: 1500m, memory: 2Gi}}"}));
  EXPECT_EQ(spec.environment, (Settings{{"CPUS", "2"},
                                        {"EMPTY", ""},
                                        {"LABEL", ""},
                                        {"LR", "0.1"},
                                        {"MEM", "2048"},
                                        {"RATE", "0.1"}}));
}

TEST(KubernetesEnvironment, NamesVariablesWhoseValueIsNotInTheFile) {
  EXPECT_EQ(
      pod_faults_with(
          {"envFrom: [{secretRef: {name: all}}, {configMapRef: {name: away}}]",
           "env: [{name: a-b, value: x}, {name: X, valueFrom: {configMapKeyRef: {name: away, "
           "key: k}}}, {name: IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]"}),
      (Lines{
          kContainer + ".envFrom[0].secretRef: is not supported: the names of its keys are not "
                       "known; name each key under env, with secretKeyRef",
          kContainer + ".envFrom[1].configMapRef: ConfigMap 'away' is not in this file; add the "
                       "ConfigMap to the file, or replace it by its value",
          kContainer + ".env[0].name: 'a-b' is not a variable name; use letters, digits and '_'",
          kContainer + ".env[1].valueFrom.configMapKeyRef: key 'k' of ConfigMap 'away' is not in "
                       "this file; add the ConfigMap to the file, or replace it by its value",
          kContainer + ".env[2].valueFrom.fieldRef.fieldPath: 'status.hostIP' has no counterpart "
                       "in Muster"}));
}

TEST(KubernetesVolumes, AreMountedByTheirKind) {
  const job::JobSpec spec = pod_with(
      {"volumeMounts: [{name: host, mountPath: /data/, readOnly: true, subPath: cifar}, {name: "
       "claim, mountPath: /models}, {name: scratch, mountPath: /scratch}]"},
      {"volumes: [{name: host, hostPath: {path: /srv, type: Directory}}, {name: claim, "
       "persistentVolumeClaim: {claimName: models}}, {name: scratch, emptyDir: {}}, {name: unused, "
       "nfs: {server: a, path: b}}]"});
  EXPECT_EQ(spec.volumes,
            (std::vector<Volume>{
                {.kind = Volume::Kind::kHostPath,
                 .source = "/srv/cifar",
                 .target = "/data",
                 .read_only = true},
                {.kind = Volume::Kind::kStorage, .source = "models", .target = "/models"},
                {.kind = Volume::Kind::kTree, .source = "", .target = "/scratch"}}));
}

TEST(KubernetesVolumes, SetTheSizeOfSharedMemory) {
  struct Case {
    const char* volume;
    const char* memory;
    int64_t expected;
  };
  for (const Case& one :
       std::vector<Case>{{"emptyDir: {medium: Memory, sizeLimit: 8Gi}", "1Gi", int64_t{8} << 30},
                         {"emptyDir: {medium: Memory}", "1Gi", int64_t{1} << 30},
                         {"emptyDir: {medium: Memory}", "0", int64_t{64} << 30},
                         {"hostPath: {path: /dev/shm}", "0", int64_t{64} << 30}}) {
    const job::JobSpec spec =
        pod_with({"volumeMounts: [{name: shm, mountPath: /dev/shm}]",
                  "resources: {limits: {memory: " + std::string(one.memory) + "}}"},
                 {"volumes: [{name: shm, " + std::string(one.volume) + "}]"});
    EXPECT_EQ(spec.container.shm_bytes, one.expected) << one.volume;
    EXPECT_TRUE(spec.volumes.empty());
  }
}

TEST(KubernetesVolumes, AreFaultsWithoutACounterpart) {
  EXPECT_EQ(
      pod_faults_with(
          {"volumeMounts: [{name: keys, mountPath: /keys}, {name: none, mountPath: /none}, "
           "{name: nfs, mountPath: /nfs}, {name: claim, mountPath: /c, subPath: a}, {name: "
           "claim, mountPath: /d, mountPropagation: Bidirectional}, {name: sock, mountPath: "
           "/s}]"},
          {"volumes: [{name: keys, secret: {secretName: keys}}, {name: nfs, nfs: {server: a, "
           "path: b}}, {name: claim, persistentVolumeClaim: {claimName: models}}, {name: "
           "sock, hostPath: {path: /run/x, type: Socket}}]"}),
      (Lines{kPod +
                 ".volumes[0].secret: is not supported: secrets of Muster are variables, or files "
                 "below /generated/secrets; store it with 'muster secret set', and read it with "
                 "secretKeyRef",
             kPod + ".volumes[1].nfs: is not supported; mount it on the nodes, and use hostPath",
             kPod + ".volumes[3].hostPath.type: 'Socket' is not supported; a task gets files and "
                    "folders",
             kContainer + ".volumeMounts[1].name: 'none' is not one of the pod's volumes",
             kContainer + ".volumeMounts[3]: mounts the path 'a' of a claim; Muster mounts volumes "
                          "as a whole",
             kContainer + ".volumeMounts[4].mountPropagation: 'Bidirectional' is not supported"}));
}

TEST(KubernetesVolumes, OfAConfigMapHaveItsFiles) {
  const std::string map =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: code}\ndata: {train.py: 'print(1)', b.py: "
      "x}\n---\n";
  const auto job = [&](const std::string& volume) {
    return map + simple_job({"command: [ls]", "volumeMounts: [{name: code, mountPath: /code}]"},
                            {"volumes: [{name: code, configMap: " + volume + "}]"});
  };
  const TranslatedFile file = translated(job("{name: code}"));
  ASSERT_EQ(file.faults, Lines{});
  EXPECT_EQ(file.jobs[0].files.at("/code"), (Settings{{"b.py", "x"}, {"train.py", "print(1)"}}));
  EXPECT_EQ(
      file.jobs[0].spec.volumes,
      (std::vector<Volume>{
          {.kind = Volume::Kind::kTree, .source = "", .target = "/code", .read_only = true}}));
  EXPECT_EQ(translated(job("{name: code, items: [{key: train.py, path: a/t.py}]}"))
                .jobs[0]
                .files.at("/code"),
            (Settings{{"a/t.py", "print(1)"}}));
  EXPECT_EQ(faults_of(job("{name: code, items: [{key: train.py, path: ../t.py}]}")),
            (Lines{kPod + ".volumes[0].configMap.items[0].path: '../t.py' is not a path below the "
                          "volume"}));
  EXPECT_EQ(faults_of(job("{name: other}")),
            (Lines{kPod + ".volumes[0].configMap.name: ConfigMap 'other' is not in this file; add "
                          "it, or put its files into the image or a workspace"}));
}

TEST(KubernetesSecrets, HaveNamesOfVariables) {
  EXPECT_EQ(secret_name("hf-secret", "token"), "hf_secret_token");
  EXPECT_EQ(secret_name("aws.creds", "ID"), "aws_creds_ID");
  EXPECT_EQ(secret_name("1st", "x"), "_1st_x");
}

}  // namespace
}  // namespace muster::dialects::kubernetes
