#include "job/pod_container.h"

#include <gtest/gtest.h>

#include "base/test_faults.h"
#include "job/validate.h"

namespace muster::job {

namespace {

using Of = PodContainer::Of;
using Runs = PodContainer::Runs;

JobSpec spec_with(std::vector<PodContainer> containers) {
  JobSpec spec;
  spec.name = "dist";
  spec.project = "default";
  spec.kind = Kind::kTorch;
  spec.folder = "/tmp";
  spec.image = "torch:2";
  spec.command = {"train"};
  spec.workers = 2;
  spec.volumes = {{.kind = Volume::Kind::kTree, .source = "", .target = "/data"},
                  {.kind = Volume::Kind::kTree, .source = std::string(64, 'a'), .target = "/code"}};
  spec.kubernetes.claims = {"sets/raw:/claim"};
  spec.kubernetes.containers = std::move(containers);
  return spec;
}

std::vector<std::string> names_of(const std::vector<PodContainer>& containers) {
  std::vector<std::string> names;
  for (const PodContainer& each : containers) names.push_back(each.name);
  return names;
}

TEST(PodContainers, AreInThePodsOfTheirTasks) {
  const JobSpec spec = spec_with({{.name = "a", .image = "a"},
                                  {.name = "b", .of = Of::kLeader, .image = "b"},
                                  {.name = "c", .of = Of::kWorkers, .image = "c"},
                                  {.name = "d", .of = Of::kEvaluators, .image = "d"}});

  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(pod_containers_of(spec, TaskRole::kMaster)), (Names{"a", "b"}));
  EXPECT_EQ(names_of(pod_containers_of(spec, TaskRole::kSingle)), (Names{"a", "b"}));
  EXPECT_EQ(names_of(pod_containers_of(spec, TaskRole::kWorker)), (Names{"a", "c"}));
  EXPECT_EQ(names_of(pod_containers_of(spec, TaskRole::kParameterServer)), (Names{"a"}));
  EXPECT_EQ(names_of(pod_containers_of(spec, TaskRole::kEvaluator)), (Names{"a", "d"}));
}

// As the cluster's scheduler counts, https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers
TEST(PodContainers, AreClaimedAsKubernetesReservesThem) {
  const PodContainer before{.name = "i", .image = "i", .cpu_milli = 500, .memory_bytes = 10};
  PodContainer beside{.name = "s", .runs = Runs::kBeside, .image = "s", .cpu_milli = 100};
  beside.memory_bytes = 7;
  JobSpec spec = spec_with({beside, before});
  spec.resources = {.gpus = 1, .cpu_milli = 300, .memory_bytes = 20};

  const Resources claim = claimed_by(spec, TaskRole::kWorker);

  EXPECT_EQ(claim.gpus, 1);
  EXPECT_EQ(claim.cpu_milli, 600) << "the sidecar and the init container beside it";
  EXPECT_EQ(claim.memory_bytes, 27) << "the task and the sidecar";
  spec.kubernetes.containers = {before, beside};
  EXPECT_EQ(claimed_by(spec, TaskRole::kWorker).cpu_milli, 500);
  spec.kubernetes.containers.clear();
  EXPECT_EQ(claimed_by(spec, TaskRole::kWorker), spec.resources);
}

TEST(PodContainers, MountPartsOfTheTasksVolumes) {
  EXPECT_EQ(pod_container_mount_of("/data"),
            (PodContainerMount{.path = "/data", .own_path = "/data"}));
  EXPECT_EQ(pod_container_mount_of("/data/raw:/in:ro"),
            (PodContainerMount{.path = "/data/raw", .own_path = "/in", .read_only = true}));
  for (const char* const wrong : {"", "data", "/", "/data:in", "/../x", "/data:/a/../b", ":ro"}) {
    EXPECT_FALSE(pod_container_mount_of(wrong)) << wrong;
  }
  const JobSpec spec = spec_with({});
  const auto target = [&](const char* path) {
    return volume_target_of(path, spec.volumes, spec.kubernetes.claims);
  };
  EXPECT_EQ(target("/data"), "/data");
  EXPECT_EQ(target("/claim/a/b"), "/claim");
  EXPECT_EQ(target("/dev/shm"), "/dev/shm");
  EXPECT_EQ(target("/database"), "");
}

TEST(PodContainers, AreCheckedOneByOne) {
  struct Case {
    PodContainer container;
    std::string fault;  ///< "FIELD: begin of the sentence"; empty: none
  };
  const PodContainer good{.name = "fetch", .image = "curl:8", .mounts = {"/data", "/claim/x:/in"}};
  const auto with = [&](auto change) {
    PodContainer changed = good;
    change(changed);
    return changed;
  };
  const std::vector<Case> cases{
      {good, ""},
      {with([](PodContainer& c) { c.name = "A"; }), "name: 'A' is not a name"},
      {with([](PodContainer& c) { c.name = "task"; }), "name: 'task' is a container of Muster"},
      {with([](PodContainer& c) { c.image = ""; }), "image: is missing"},
      {with([](PodContainer& c) { c.image = "A b"; }), "image: 'A b' has"},
      {with([](PodContainer& c) { c.folder = "tmp"; }), "folder: 'tmp' is not an absolute path"},
      {with([](PodContainer& c) { c.user = "ada"; }), "user: 'ada' is not UID[:GID]"},
      {with([](PodContainer& c) { c.cpu_milli = -1; }), "cpus: -0.001 is out of range"},
      {with([](PodContainer& c) { c.cpu_milli = 65'536'001; }), "cpus: 65536.001 is out of range"},
      {with([](PodContainer& c) { c.memory_bytes = -1; }), "memory: is negative"},
      {with([](PodContainer& c) { c.arguments = {std::string(131'072, 'x')}; }),
       "arguments: has a word of 131072 bytes; an argument of a program has at most 131071: put"},
      {with([](PodContainer& c) { c.environment["A"] = std::string(131'070, 'x'); }),
       "environment.A: is 131072 bytes long with its name; a variable has at most 131071: put"},
      {with([](PodContainer& c) { c.environment["A=B"] = ""; }), "environment: 'A=B' is not the"},
      {with([](PodContainer& c) { c.command = {std::string("a\0b", 3)}; }), "command: has a word"},
      {with([](PodContainer& c) { c.mounts = {"data"}; }), "mounts[0]: 'data' is not PATH"},
      {with([](PodContainer& c) { c.mounts = {"/elsewhere"}; }),
       "mounts[0]: '/elsewhere' is not in a volume of the task"},
      {with([](PodContainer& c) { c.mounts = {"/code"}; }),
       "mounts[0]: '/code' has files that the job brings along"}};

  for (const Case& each : cases) {
    const auto faults = validate(spec_with({each.container}));
    std::string text;
    if (!faults.empty()) text = faults.front().field + ": " + faults.front().what;
    const std::string expected = each.fault.empty() ? "" : "kubernetes.containers[0]." + each.fault;
    EXPECT_EQ(text.substr(0, expected.size()), expected);
    EXPECT_EQ(faults.empty(), each.fault.empty()) << text;
  }
}

// The tasks of a job are up to 1002, and the scheduler adds up their claims in 64 bits.
TEST(PodContainers, HaveABoundedMemoryTogether) {
  constexpr int64_t kMost = int64_t{1} << 50;
  std::vector<PodContainer> containers{{.name = "a", .image = "a", .memory_bytes = kMost / 2},
                                       {.name = "b", .image = "a", .memory_bytes = kMost / 2}};
  EXPECT_TRUE(validate(spec_with(containers)).empty());

  containers[0].memory_bytes = kMost;
  EXPECT_EQ(base::texts_of(validate(spec_with(containers))),
            (base::Texts{"kubernetes.containers have 1536Ti of memory together; give at most "
                         "1024Ti"}));
  containers = {{.name = "a", .image = "a", .memory_bytes = INT64_MAX}};
  EXPECT_EQ(base::texts_of(validate(spec_with(containers))),
            (base::Texts{"kubernetes.containers[0].memory 8388607.9Ti is out of range; give 0 to "
                         "1024Ti"}));
}

TEST(PodContainers, OfOnePodHaveDifferentNames) {
  const auto faults_of = [](Of one, Of other) {
    return validate(spec_with(
        {{.name = "a", .of = one, .image = "a"}, {.name = "a", .of = other, .image = "a"}}));
  };
  EXPECT_TRUE(faults_of(Of::kLeader, Of::kWorkers).empty());
  const auto faults = faults_of(Of::kLeader, Of::kAll);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults.front().field, "kubernetes.containers[1].name");
}

}  // namespace

}  // namespace muster::job
