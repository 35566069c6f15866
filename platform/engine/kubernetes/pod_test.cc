#include "engine/kubernetes/pod.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/kubernetes/api_client.h"
namespace muster::engine::kubernetes {

namespace {

using job::Volume;

PodSite site_for_tests() {
  PodSite site;
  site.owner = "0123456789abcdef";
  site.space = "training";
  site.node_image = "muster-node:1";
  site.port = 7447;
  return site;
}

PodJob job_for_tests() {
  return {.gang = {"j7", 2},
          .name = "dist",
          .project = "vision",
          .owner = "ada",
          .container = {},
          .options = {},
          .volumes = {},
          .logins = {},
          .grace = std::chrono::seconds(10)};
}

PodTask task_for_tests() {
  return {.task = "worker-0",
          .index = 1,
          .hostname = "dist-worker-0",
          .node = "n1",
          .mounts_programs = false,
          .image = "pytorch:2",
          .user = "",
          .resources = {},
          .gpus = 0,
          .gpu_model = "",
          .folders = {}};
}

Json pod_of(const PodJob& job, const PodTask& task, const PodSite& site = site_for_tests()) {
  auto pod = pod_object(job, task, site, "uid-1");
  EXPECT_TRUE(pod) << pod.error().to_string();
  return pod ? *std::move(pod) : Json();
}

const Json& main_container(const Json& pod) {
  return pod.at("spec").at("containers").at(0);
}

/// The volume that is mounted there.
Json volume_at(const Json& pod, const std::string& path) {
  for (const Json& mount : main_container(pod).at("volumeMounts")) {
    if (mount.at("mountPath") != path) continue;
    for (const Json& volume : pod.at("spec").at("volumes")) {
      if (volume.at("name") == mount.at("name")) return volume;
    }
  }
  return nullptr;
}

TEST(GangNames, AreLegalAndDiffer) {
  const std::string owner = "0123456789abcdef";
  const std::string name = gang_name(owner, {"j7", 2});
  EXPECT_TRUE(name.starts_with("muster-")) << name;
  EXPECT_TRUE(name.ends_with("-j7-2")) << name;
  EXPECT_NE(name, gang_name("another", {"j7", 2}));
  EXPECT_NE(gang_name(owner, {"J7", 2}), name);
  EXPECT_NE(gang_name(owner, {"J_7", 2}), gang_name(owner, {"j-7", 2}));
  const std::string longest = gang_name(owner, {std::string(200, 'x'), 1'000'000});
  EXPECT_LE(longest.size(), 63U);
  EXPECT_NE(longest, gang_name(owner, {std::string(201, 'x'), 1'000'000}));
}

TEST(Pod, MeetsTheLevelRestricted) {
  const Json pod = pod_of(job_for_tests(), task_for_tests());
  const Json& spec = pod.at("spec");
  EXPECT_EQ(spec.at("securityContext").at("runAsNonRoot"), true);
  EXPECT_EQ(spec.at("securityContext").at("runAsUser"), 1000);
  EXPECT_EQ(spec.at("securityContext").at("seccompProfile").at("type"), "RuntimeDefault");
  for (const char* const which : {"initContainers", "containers"}) {
    const Json& security = spec.at(which).at(0).at("securityContext");
    EXPECT_EQ(security.at("allowPrivilegeEscalation"), false);
    EXPECT_EQ(security.at("readOnlyRootFilesystem"), true);
    EXPECT_EQ(security.at("capabilities"), Json({{"drop", {"ALL"}}}));
  }
  EXPECT_EQ(spec.at("automountServiceAccountToken"), false);
  EXPECT_FALSE(spec.contains("hostNetwork"));
  for (const Json& volume : spec.at("volumes")) EXPECT_FALSE(volume.contains("hostPath"));
}

TEST(Pod, RunsMusterNodeInTheImageOfTheUser) {
  const Json pod = pod_of(job_for_tests(), task_for_tests());
  EXPECT_EQ(main_container(pod).at("image"), "pytorch:2");
  EXPECT_EQ(main_container(pod).at("command"), Json({"/muster/bin/muster-node"}));
  const Json& install = pod.at("spec").at("initContainers").at(0);
  EXPECT_EQ(install.at("image"), "muster-node:1");
  EXPECT_EQ(install.at("args"), Json({"--install", "/pod", "/brief/brief"}));
  EXPECT_EQ(main_container(pod).at("args"), Json({"--pod", "/muster/brief"}));
  for (const Json& mount : main_container(pod).at("volumeMounts")) {
    EXPECT_NE(mount.at("name"), "brief") << "the task could read the key";
  }
  EXPECT_EQ(pod.at("spec").at("restartPolicy"), "Never");
  EXPECT_EQ(pod.at("spec").at("hostname"), "dist-worker-0");
  const std::string gang = gang_name("0123456789abcdef", {"j7", 2});
  EXPECT_EQ(pod.at("spec").at("subdomain"), gang);
  EXPECT_EQ(pod.at("spec").at("dnsConfig").at("searches"),
            Json({gang + ".training.svc.cluster.local"}));
  EXPECT_EQ(pod.at("spec").at("terminationGracePeriodSeconds"), 40);
  EXPECT_EQ(pod.at("metadata").at("ownerReferences").at(0).at("uid"), "uid-1");
  EXPECT_EQ(pod.at("metadata").at("labels").at(kTaskKey), "worker-0");
}

TEST(Pod, MountsTheImageWithTheProgramsIfItsNodeCan) {
  PodTask task = task_for_tests();
  task.mounts_programs = true;
  PodSite site = site_for_tests();
  site.node_image_pull = job::PullPolicy::kAlways;
  const Json pod = pod_of(job_for_tests(), task, site);
  EXPECT_FALSE(pod.at("spec").contains("initContainers"));
  EXPECT_EQ(volume_at(pod, "/muster/bin").at("image"),
            Json({{"reference", "muster-node:1"}, {"pullPolicy", "Always"}}));
  EXPECT_EQ(main_container(pod).at("command"), Json({"/muster/bin/muster-node"}));
  EXPECT_EQ(main_container(pod).at("args"), Json({"--pod"}));
  const std::string gang = gang_name("0123456789abcdef", {"j7", 2});
  const Json brief{{"name", "MUSTER_POD_BRIEF"},
                   {"valueFrom", {{"secretKeyRef", {{"name", gang}, {"key", "brief"}}}}}};
  EXPECT_EQ(main_container(pod).at("env").back(), brief);
  for (const Json& volume : pod.at("spec").at("volumes")) EXPECT_FALSE(volume.contains("secret"));
}

TEST(Pod, OfAJobThatRequestsRootRelaxesThatAlone) {
  PodTask task = task_for_tests();
  task.user = "0";
  const Json pod = pod_of(job_for_tests(), task);
  EXPECT_EQ(pod.at("spec").at("securityContext").at("runAsNonRoot"), false);
  EXPECT_EQ(pod.at("spec").at("securityContext").at("runAsUser"), 0);
  const Json& security = main_container(pod).at("securityContext");
  EXPECT_EQ(security.at("allowPrivilegeEscalation"), false);
  EXPECT_EQ(security.at("capabilities").at("drop"), Json({"ALL"}));
  EXPECT_EQ(security.at("capabilities").at("add").size(), 8U);
}

TEST(Pod, ClaimsItsResourcesAsRequestsAndLimits) {
  PodTask task = task_for_tests();
  task.resources = {.gpus = 2, .cpu_milli = 1500, .memory_bytes = int64_t{1} << 30};
  task.gpus = 2;
  task.gpu_model = "MI300";
  PodJob job = job_for_tests();
  job.options.devices = {{"rdma/hca", "1"}};
  PodSite site = site_for_tests();
  site.gpu_resources["MI300"] = "amd.com/gpu";

  const Json pod = pod_of(job, task, site);

  const Json claims{
      {"cpu", "1500m"}, {"memory", "1073741824"}, {"amd.com/gpu", "2"}, {"rdma/hca", "1"}};
  EXPECT_EQ(main_container(pod).at("resources"), Json({{"requests", claims}, {"limits", claims}}));
  const Json plain{{"cpu", "1500m"}, {"memory", "1073741824"}};
  EXPECT_EQ(pod.at("spec").at("initContainers").at(0).at("resources"),
            Json({{"requests", plain}, {"limits", plain}}));
}

TEST(Pod, IsBoundToItsNodeByAffinityAndHasTheJobsOptions) {
  PodJob job = job_for_tests();
  job.options = {.node_selector = {{"zone", "a"}},
                 .tolerations = {"for=train:NoSchedule", "*"},
                 .priority_class = "high",
                 .service_account = "trainer",
                 .runtime_class = "nvidia",
                 .image_pull_secrets = {"pull"},
                 .claims = {},
                 .devices = {},
                 .labels = {{"team", "blue"}},
                 .annotations = {{"note", "a b"}}};
  const Json pod = pod_of(job, task_for_tests());
  const Json& spec = pod.at("spec");
  const Json field{{"key", "metadata.name"}, {"operator", "In"}, {"values", {"n1"}}};
  EXPECT_EQ(spec.at("affinity")
                .at("nodeAffinity")
                .at("requiredDuringSchedulingIgnoredDuringExecution")
                .at("nodeSelectorTerms")
                .at(0)
                .at("matchFields"),
            Json::array({field}));
  EXPECT_EQ(
      spec.at("tolerations"),
      Json::array(
          {{{"key", "for"}, {"operator", "Equal"}, {"value", "train"}, {"effect", "NoSchedule"}},
           {{"operator", "Exists"}}}));
  EXPECT_EQ(spec.at("nodeSelector"), Json({{"zone", "a"}}));
  EXPECT_EQ(spec.at("priorityClassName"), "high");
  EXPECT_EQ(spec.at("serviceAccountName"), "trainer");
  EXPECT_EQ(spec.at("automountServiceAccountToken"), true);
  EXPECT_EQ(spec.at("runtimeClassName"), "nvidia");
  EXPECT_EQ(spec.at("imagePullSecrets"), Json::array({{{"name", "pull"}}}));
  EXPECT_EQ(pod.at("metadata").at("labels").at("team"), "blue");
  EXPECT_EQ(pod.at("metadata").at("annotations").at("note"), "a b");
}

TEST(Pod, HasItsVolumesClaimsAndSharedMemory) {
  PodJob job = job_for_tests();
  job.volumes = {{.kind = Volume::Kind::kTree, .source = "t", .target = "/data/"},
                 {.kind = Volume::Kind::kArtifacts, .target = "/artifacts"},
                 {.kind = Volume::Kind::kStorage, .source = "sets", .target = "/sets"},
                 {.kind = Volume::Kind::kHostPath, .source = "/mnt", .target = "/mnt"}};
  job.options.claims = {"models:/models:ro", "models/new:/out"};
  job.container.shm_bytes = 1024;
  PodSite site = site_for_tests();
  site.storage_claim = "storage";
  PodTask task = task_for_tests();
  task.folders = {"/etc/mpi"};

  const Json pod = pod_of(job, task, site);

  EXPECT_TRUE(volume_at(pod, "/data").contains("emptyDir"));
  EXPECT_TRUE(volume_at(pod, "/artifacts").contains("emptyDir"));
  EXPECT_EQ(volume_at(pod, "/sets").at("persistentVolumeClaim").at("claimName"), "storage");
  EXPECT_EQ(volume_at(pod, "/mnt").at("hostPath").at("path"), "/mnt");
  EXPECT_EQ(volume_at(pod, "/models").at("persistentVolumeClaim").at("claimName"), "models");
  EXPECT_EQ(volume_at(pod, "/models"), volume_at(pod, "/out"));
  EXPECT_EQ(volume_at(pod, "/dev/shm").at("emptyDir"),
            Json({{"medium", "Memory"}, {"sizeLimit", "1024"}}));
  EXPECT_TRUE(volume_at(pod, "/etc/mpi").contains("emptyDir"));
  EXPECT_TRUE(volume_at(pod, "/tmp").contains("emptyDir"));
  job.container.writable_root = true;
  EXPECT_TRUE(volume_at(pod_of(job, task, site), "/tmp").is_null());
}

TEST(Pod, MountsSecretsAndConfigMaps) {
  PodJob job = job_for_tests();
  job.options.claims = {"secret:hf/token:/etc/token", "secret:hf:/etc/hf", "configmap:code:/code"};
  const Json pod = pod_of(job, task_for_tests());
  EXPECT_EQ(volume_at(pod, "/etc/hf").at("secret"), Json({{"secretName", "hf"}}));
  EXPECT_EQ(volume_at(pod, "/etc/token"), volume_at(pod, "/etc/hf"));
  EXPECT_EQ(volume_at(pod, "/code").at("configMap"), Json({{"name", "code"}}));
  for (const Json& mount : main_container(pod).at("volumeMounts")) {
    if (mount.at("mountPath") != "/etc/token") continue;
    EXPECT_EQ(mount.at("subPath"), "token");
    EXPECT_EQ(mount.at("readOnly"), true);
  }
}

TEST(OwnerObject, HoldsTheBriefAndFactsThatAreNoLabelsAsAnnotations) {
  PodJob job = job_for_tests();
  job.owner = "ada@example.com";
  const Json owner = owner_object(job, site_for_tests(), "the brief");
  EXPECT_EQ(owner.at("kind"), "Secret");
  EXPECT_EQ(owner.at("stringData"), Json({{"brief", "the brief"}}));
  EXPECT_EQ(owner.at("metadata").at("annotations"), Json({{kUserKey, "ada@example.com"}}));
  EXPECT_EQ(owner.at("metadata").at("labels").at(kProjectKey), "vision");
  EXPECT_FALSE(owner.at("metadata").contains("ownerReferences"));
}

TEST(RegistryObject, HoldsTheLoginsByRegistry) {
  PodJob job = job_for_tests();
  job.logins = {{.registry = "", .image = "nvcr.io/nvidia/x:1", .username = "u", .password = "p"},
                {.registry = "", .image = "library/y", .username = "v", .password = "q"}};
  const Json object = registry_object(job, site_for_tests(), "uid-1");
  const Json config =
      Json::parse(object.at("stringData").at(".dockerconfigjson").get<std::string>());
  EXPECT_EQ(config.at("auths").at("nvcr.io").at("auth"), "dTpw");
  EXPECT_TRUE(config.at("auths").contains("https://index.docker.io/v1/"));
  EXPECT_EQ(pod_of(job, task_for_tests()).at("spec").at("imagePullSecrets").at(0).at("name"),
            object.at("metadata").at("name"));
}

TEST(NetworkPolicy, AdmitsOnlyThePodsOfTheGang) {
  const Json policy = network_policy_object(job_for_tests(), site_for_tests(), "uid-1");
  EXPECT_EQ(policy.at("spec").at("ingress").at(0).at("from").at(0).at("podSelector"),
            policy.at("spec").at("podSelector"));
  EXPECT_EQ(policy.at("spec").at("policyTypes"), Json({"Ingress"}));
}

TEST(CheckPods, ReportsAllFaultsOfAJob) {
  job::JobSpec spec{.name = "x"};
  spec.user = "ada";
  spec.sandbox = job::Sandbox::kNone;
  spec.launch = job::LaunchBy::kSrun;
  spec.resources.gpu_share_milli = 500;
  spec.leader.resources.gpu_memory_bytes = 1;
  spec.volumes = {{.kind = Volume::Kind::kStorage, .source = "s", .target = "/s"},
                  {.kind = Volume::Kind::kTree, .source = "", .target = "/generated/x"}};

  const auto checked = check_pods(spec, site_for_tests());

  ASSERT_FALSE(checked);
  std::vector<std::string> fields;
  for (const base::Fault& fault : checked.error().faults) fields.push_back(fault.field);
  EXPECT_EQ(fields, (std::vector<std::string>{"user", "command", "sandbox", "launch", "resources",
                                              "leader.resources", "volumes[0]", "volumes[1]"}));
}

TEST(CheckPods, RefusesTwoVolumesAtOnePath) {
  job::JobSpec spec{.name = "x"};
  spec.command = {"true"};
  spec.volumes = {{.kind = Volume::Kind::kTree, .source = "", .target = "/data/"}};
  spec.kubernetes.claims = {"sets:/data", "sets/a:/a", "secret:hf:/a", "sets:/dev/shm",
                            "sets:/tmp"};
  spec.kubernetes.containers = {
      {.name = "fetch", .image = "curl", .mounts = {"/data:/in", "/a:/in:ro", "/a"}}};

  const auto checked = check_pods(spec, site_for_tests());

  ASSERT_FALSE(checked);
  std::vector<std::string> faults;
  for (const base::Fault& fault : checked.error().faults) {
    faults.push_back(fault.field + ": " + fault.what);
  }
  EXPECT_EQ(faults, (std::vector<std::string>{
                        "kubernetes.claims[0]: another volume is mounted at /data",
                        "kubernetes.claims[2]: another volume is mounted at /a",
                        "kubernetes.claims[3]: /dev/shm is reserved in pods",
                        "kubernetes.containers[0].mounts[1]: another volume is mounted at /in"}));
}

TEST(CheckPods, RefusesGpusThatAreRequestedAsDevices) {
  PodSite site = site_for_tests();
  site.gpu_resources = {{"", "nvidia.com/gpu"}, {"MI300X", "amd.com/gpu"}};
  job::JobSpec spec{.name = "x"};
  spec.command = {"true"};
  spec.kubernetes.devices = {{"amd.com/gpu", "8"}, {"nvidia.com/gpu", "8"}, {"rdma/hca", "1"}};

  const auto checked = check_pods(spec, site);

  ASSERT_FALSE(checked);
  ASSERT_EQ(checked.error().faults.size(), 2U);
  EXPECT_EQ(checked.error().faults[0].field, "kubernetes.devices.amd.com/gpu");
  EXPECT_EQ(checked.error().faults[1].field, "kubernetes.devices.nvidia.com/gpu");
  EXPECT_NE(checked.error().faults[1].what.find("use --gpus"), std::string::npos);

  site.gpu_resources = {{"MI300X", "amd.com/gpu"}};
  EXPECT_EQ(check_pods(spec, site).error().faults.size(), 2U) << "other models have the default";
}

TEST(CheckPods, AcceptsAPlainJob) {
  job::JobSpec spec{.name = "x"};
  spec.command = {"true"};
  spec.user = "1000:100";
  EXPECT_TRUE(check_pods(spec, site_for_tests()));
}

// --- queues of the cluster

TEST(QueuedPods, AreOneGroupInTheLocalQueueOfTheirProject) {
  PodSite site = site_for_tests();
  site.queue = PodQueue::kKueue;
  site.local_queue = "team-{project}";
  PodJob job = job_for_tests();
  job.pods = 3;
  job.options.labels[kKueueGroup] = "another";

  const Json metadata = pod_of(job, task_for_tests(), site).at("metadata");

  EXPECT_EQ(metadata.at("labels").at(kKueueQueue), "team-vision");
  EXPECT_EQ(metadata.at("labels").at(kKueueGroup), gang_name(site.owner, job.gang));
  EXPECT_EQ(metadata.at("annotations").at(kKueueCount), "3");
  EXPECT_FALSE(
      pod_of(job_for_tests(), task_for_tests()).at("metadata").at("labels").contains(kKueueQueue));
}

TEST(QueuedPods, GoToNodesOfTheRequestedPoolsAndModels) {
  PodSite site = site_for_tests();
  site.pool_label = "muster.dev/pool";
  PodTask task = task_for_tests();
  task.node.clear();
  PodJob job = job_for_tests();
  EXPECT_FALSE(pod_of(job, task, site).at("spec").contains("affinity"));

  task.gpus = 1;
  job.choice = {.pools = {"fast", "default"}, .gpu_models = {"A100"}, .avoided_nodes = {"n7"}};
  const Json terms = pod_of(job, task, site)
                         .at("spec")
                         .at("affinity")
                         .at("nodeAffinity")
                         .at("requiredDuringSchedulingIgnoredDuringExecution")
                         .at("nodeSelectorTerms");

  const Json model{{"key", "nvidia.com/gpu.product"}, {"operator", "In"}, {"values", {"A100"}}};
  const Json labelled{
      {"key", "muster.dev/pool"}, {"operator", "In"}, {"values", {"fast", "default"}}};
  const Json unlabelled{{"key", "muster.dev/pool"}, {"operator", "DoesNotExist"}};
  const Json field{{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {"n7"}}};
  ASSERT_EQ(terms.size(), 2U);
  EXPECT_EQ(terms[0].at("matchExpressions"), Json::array({model, labelled}));
  EXPECT_EQ(terms[1].at("matchExpressions"), Json::array({model, unlabelled}));
  EXPECT_EQ(terms[0].at("matchFields"), Json::array({field}));
}

TEST(QueuedPods, LabelsOfKueueAreNotTheJobsToSet) {
  PodSite site = site_for_tests();
  job::JobSpec spec;
  spec.command = {"true"};
  spec.kubernetes.labels[kKueueQueue] = "other";
  EXPECT_TRUE(check_pods(spec, site));

  site.queue = PodQueue::kKueue;
  EXPECT_FALSE(check_pods(spec, site));
}

}  // namespace

}  // namespace muster::engine::kubernetes
