#include "engine/container/container_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/container/labels.h"

namespace muster::engine {
namespace {

using job::Volume;
using launch::TaskPlan;
using workspace::ArchiveEntry;

const GangId kGang{"j1", 2};

ContainerSite site() {
  return {.owner = "me", .network = "muster-j1-2", .log_quota = 1000, .sampling = {}};
}

TaskPlan plan() {
  TaskPlan plan;
  plan.task = "worker-0";
  plan.hostname = "dist-worker-0";
  plan.reach = launch::Reach::kNames;
  plan.address = "dist-worker-0";
  plan.argv = {"train", "--fast"};
  plan.environment = {{"A", "1"}, {"B", "two words"}};
  plan.folder = "/work";
  plan.image = "sha256:abc";
  plan.account = {.uid = 1000, .gid = 100, .name = "user", .home = "/home/user"};
  plan.project = "team-a";
  return plan;
}

Volume volume(Volume::Kind kind, const std::string& source, const std::string& target,
              bool read_only = false) {
  return {.kind = kind, .source = source, .target = target, .read_only = read_only};
}

const DockerMount* mount_at(const ContainerConfig& config, const std::string& target) {
  const auto found = std::find_if(config.mounts.begin(), config.mounts.end(),
                                  [&](const DockerMount& mount) { return mount.target == target; });
  return found == config.mounts.end() ? nullptr : &*found;
}

const ArchiveEntry* entry_at(const std::vector<ArchiveEntry>& files, const std::string& path) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const ArchiveEntry& entry) { return entry.path == path; });
  return found == files.end() ? nullptr : &*found;
}

// --- the container

TEST(ContainerPlan, RunsTheShimAsTheTasksAccountInTheInspectedImage) {
  const ContainerConfig config = container_config(kGang, plan(), site());

  EXPECT_EQ(config.name, "muster-j1-2-worker-0");
  EXPECT_EQ(config.image, "sha256:abc");
  EXPECT_EQ(config.user, "1000:100");
  EXPECT_EQ(config.entrypoint,
            (std::vector<std::string>{"/muster/bin/muster-shim", "--container", "/muster/task"}));
  EXPECT_EQ(config.command, std::vector<std::string>());
  EXPECT_EQ(config.labels, labels_of_task("me", kGang, "worker-0"));
}

TEST(ContainerPlan, ShowsNoEnvironmentOfTheTaskInAnInspect) {
  EXPECT_EQ(container_config(kGang, plan(), site()).environment,
            std::vector<std::string>{"NVIDIA_VISIBLE_DEVICES=void"});
}

TEST(ContainerPlan, GivesNoGpuToATaskWithoutAClaim) {
  ContainerSite gpus = site();
  gpus.gives_gpus = true;
  TaskPlan task = plan();
  task.environment["NVIDIA_VISIBLE_DEVICES"] = "all";  // of the image
  EXPECT_EQ(container_config(kGang, task, gpus).environment, std::vector<std::string>{kNoGpus});
  const std::vector<std::string> inner = shim_plan(task, gpus).inner.environment;
  EXPECT_NE(std::find(inner.begin(), inner.end(), "NVIDIA_VISIBLE_DEVICES=all"), inner.end());

  task.gpus = {"0"};
  EXPECT_EQ(container_config(kGang, task, gpus).environment, std::vector<std::string>());
}

TEST(ContainerPlan, IsStrictUnlessTheJobRelaxesIt) {
  const ContainerConfig strict = container_config(kGang, plan(), site());
  EXPECT_TRUE(strict.read_only_root);
  EXPECT_TRUE(strict.no_new_privileges);
  EXPECT_TRUE(strict.drop_all_capabilities);
  EXPECT_EQ(strict.capabilities,
            (std::vector<std::string>{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID",
                                      "SETUID", "SYS_CHROOT"}));

  TaskPlan loose = plan();
  loose.container = {
      .writable_root = true, .new_privileges = true, .capabilities = {"SYS_PTRACE", "KILL"}};
  const ContainerConfig config = container_config(kGang, loose, site());
  EXPECT_FALSE(config.read_only_root);
  EXPECT_FALSE(config.no_new_privileges);
  EXPECT_TRUE(config.drop_all_capabilities);
  EXPECT_EQ(config.capabilities.size(), 9U);
  EXPECT_EQ(config.capabilities.back(), "SYS_PTRACE");
}

TEST(ContainerPlan, HidesTheKernelsSymbolsFromGangsOnOneHost) {
  TaskPlan task = plan();
  EXPECT_EQ(container_config(kGang, task, site()).hidden,
            std::vector<std::string>{"/proc/kallsyms"});
  task.reach = launch::Reach::kHosts;
  EXPECT_EQ(container_config(kGang, task, site()).hidden, std::vector<std::string>());
}

TEST(ContainerPlan, HasWritableFoldersIfTheRootIsReadOnly) {
  const ContainerConfig config = container_config(kGang, plan(), site());
  for (const char* place : {"/tmp", "/run", "/var/tmp"}) {
    const DockerMount* const mount = mount_at(config, place);
    ASSERT_NE(mount, nullptr) << place;
    EXPECT_EQ(mount->kind, DockerMount::Kind::kTmpfs);
  }

  TaskPlan writable = plan();
  writable.container.writable_root = true;
  EXPECT_EQ(mount_at(container_config(kGang, writable, site()), "/tmp"), nullptr);
}

TEST(ContainerPlan, LimitsTheContainerToTheClaimsOfTheTask) {
  TaskPlan claiming = plan();
  claiming.resources = {.cpu_milli = 2500, .memory_bytes = 1 << 30};
  claiming.container.shm_bytes = 64 << 20;

  const ContainerConfig config = container_config(kGang, claiming, site());

  EXPECT_EQ(config.cpu_milli, 2500);
  EXPECT_EQ(config.memory_bytes, 1 << 30);
  EXPECT_EQ(config.shm_bytes, 64 << 20);
}

TEST(ContainerPlan, TheEngineLimitsProcessesAndTheShimTheRest) {
  ContainerSite limited = site();
  limited.limits = {
      .processes = 40, .open_files = 50, .file_bytes = 60, .scratch_bytes = int64_t{1} << 20};
  TaskPlan claiming = plan();
  claiming.resources.memory_bytes = 1 << 30;

  const ContainerConfig config = container_config(kGang, claiming, limited);
  const TaskLimits limits = shim_plan(claiming, limited).inner.limits;

  EXPECT_EQ(config.processes, 40);
  EXPECT_EQ(mount_at(config, "/tmp")->tmpfs_bytes, int64_t{1} << 20);
  EXPECT_EQ(limits, (TaskLimits{.memory_bytes = 1 << 30,
                                .processes = 40,
                                .open_files = 50,
                                .file_bytes = 60,
                                .scratch_bytes = int64_t{1} << 20,
                                .scratch = {"/generated"},
                                .is_held_by_container = true}));
}

TEST(ContainerPlan, GetsItsGpusIfTheEngineSupportsThem) {
  TaskPlan gpus = plan();
  gpus.gpus = {"GPU-8f3", "GPU-9a1"};
  ContainerSite with = site();
  with.gives_gpus = true;

  EXPECT_EQ(container_config(kGang, gpus, with).gpus, gpus.gpus);
  EXPECT_EQ(container_config(kGang, gpus, site()).gpus, std::vector<std::string>());
}

TEST(ContainerPlan, HasItsHostNameOnTheGangsNetwork) {
  const ContainerConfig config = container_config(kGang, plan(), site());

  EXPECT_EQ(config.network, "muster-j1-2");
  EXPECT_EQ(config.hostname, "dist-worker-0");
  EXPECT_EQ(config.aliases, std::vector<std::string>{"dist-worker-0"});
  EXPECT_TRUE(config.extra_hosts.empty());
}

TEST(ContainerPlan, TakesNamesFromThePlanOnTheHostsNetwork) {
  TaskPlan on_host = plan();
  on_host.reach = launch::Reach::kHosts;
  on_host.hosts = {{"dist-worker-1", "10.0.0.2"}};
  ContainerSite host = site();
  host.network = "host";

  const ContainerConfig config = container_config(kGang, on_host, host);

  EXPECT_EQ(config.network, "host");
  EXPECT_TRUE(config.aliases.empty());
  EXPECT_EQ(config.extra_hosts, on_host.hosts);
}

// --- its volumes

TEST(ContainerPlan, MountsVolumesOfTheEngineAndPathsOfTheHost) {
  TaskPlan with = plan();
  with.volumes = {volume(Volume::Kind::kTree, "sha", "/work"),
                  volume(Volume::Kind::kStorage, "data", "/storage/"),
                  volume(Volume::Kind::kArtifacts, "", "/artifacts"),
                  volume(Volume::Kind::kHostPath, "/data", "/data", true)};

  const ContainerConfig config = container_config(kGang, with, site());

  using Kind = DockerMount::Kind;
  EXPECT_EQ(*mount_at(config, "/work"),
            (DockerMount{.kind = Kind::kVolume, .source = "muster-j1-tree-0", .target = "/work"}));
  EXPECT_EQ(*mount_at(config, "/storage"), (DockerMount{.kind = Kind::kVolume,
                                                        .source = "muster-storage-me.team-a.data",
                                                        .target = "/storage"}));
  EXPECT_EQ(mount_at(config, "/artifacts")->source, "muster-j1-artifacts");
  EXPECT_EQ(
      *mount_at(config, "/data"),
      (DockerMount{.kind = Kind::kBind, .source = "/data", .target = "/data", .read_only = true}));
}

TEST(ContainerPlan, MountsInnerVolumesAfterOuterOnes) {
  TaskPlan with = plan();
  with.volumes = {volume(Volume::Kind::kTree, "", "/x/deep/inner"),
                  volume(Volume::Kind::kArtifacts, "", "/x")};
  const ContainerConfig config = container_config(kGang, with, site());

  EXPECT_LT(mount_at(config, "/x"), mount_at(config, "/x/deep/inner"));
}

TEST(ContainerPlan, NeverCoversAVolumeOfTheUserWithScratch) {
  TaskPlan with = plan();
  with.volumes = {volume(Volume::Kind::kHostPath, "/fast", "/tmp")};

  const ContainerConfig config = container_config(kGang, with, site());

  EXPECT_EQ(mount_at(config, "/tmp")->kind, DockerMount::Kind::kBind);
  EXPECT_EQ(std::count_if(config.mounts.begin(), config.mounts.end(),
                          [](const DockerMount& mount) { return mount.target == "/tmp"; }),
            1);
}

TEST(ContainerPlan, ReportsAllVolumesInReservedPlacesAtOnce) {
  for (const char* place : {"/muster", "/muster/task", "/generated/x", "/proc", "/sys/fs", "/dev",
                            "/", "/x/../proc", "relative"}) {
    TaskPlan with = plan();
    with.volumes = {volume(Volume::Kind::kArtifacts, "", place)};
    EXPECT_FALSE(check_places(with)) << place;
  }
  TaskPlan fine = plan();
  fine.volumes = {volume(Volume::Kind::kArtifacts, "", "/musterfile"),
                  volume(Volume::Kind::kArtifacts, "", "/developers")};
  EXPECT_TRUE(check_places(fine));

  TaskPlan two = plan();
  two.volumes = {volume(Volume::Kind::kArtifacts, "", "/proc/x"),
                 volume(Volume::Kind::kArtifacts, "", "/dev/shm")};
  EXPECT_EQ(check_places(two).error().faults.size(), 2U);
}

TEST(ContainerPlan, RefusesAnInvalidNameOfStorage) {
  for (const char* name : {"", ".", "..", "a/b"}) {
    TaskPlan with = plan();
    with.volumes = {volume(Volume::Kind::kStorage, name, "/storage")};
    EXPECT_FALSE(check_places(with)) << name;
  }
}

TEST(ContainerPlan, CreatesTheFolderOfSshdOnlyForRoot) {
  TaskPlan ssh = plan();
  ssh.ssh = launch::SshService{.port = 22, .command = {"/usr/sbin/sshd", "-i"}, .bind = "0.0.0.0"};
  EXPECT_EQ(mount_at(container_config(kGang, ssh, site()), "/run/sshd"), nullptr);

  ssh.account = {};
  EXPECT_NE(mount_at(container_config(kGang, ssh, site()), "/run/sshd"), nullptr);

  ssh.ssh->command = {"/muster/bin/muster-rsh", "--serve"};
  EXPECT_EQ(mount_at(container_config(kGang, ssh, site()), "/run/sshd"), nullptr);
}

// --- the shim's plan

TEST(ContainerPlan, GivesTheShimTheProgramAndItsSettings) {
  TaskPlan task = plan();
  task.grace = std::chrono::seconds(7);
  task.own_rank_output = task.tags_ranks = task.takes_ranks = task.terminal = true;
  task.mpi = launch::MpiChoice{};
  task.gpus = {"0"};

  const ShimPlan shim = shim_plan(task, site());

  EXPECT_EQ(shim.wrapper, (std::vector<std::string>{"/muster/bin/muster-shim", "--inner"}));
  EXPECT_EQ(shim.inner.argv, task.argv);
  EXPECT_EQ(shim.inner.environment, (std::vector<std::string>{"A=1", "B=two words"}));
  EXPECT_EQ(shim.inner.folder, "/work");
  EXPECT_EQ(shim.inner.rank_output_folder, "/generated");
  EXPECT_EQ(shim.inner.generated, "/generated");
  EXPECT_EQ(shim.generated, "/generated");
  EXPECT_FALSE(shim.inner.own_process_tree);
  EXPECT_TRUE(shim.inner.terminal);
  EXPECT_TRUE(shim.inner.takes_ranks);
  EXPECT_TRUE(shim.inner.mpi);
  EXPECT_EQ(shim.grace, std::chrono::seconds(7));
  EXPECT_EQ(shim.log_quota, 1000U);
  EXPECT_EQ(shim.sampling.gpus, task.gpus);
  EXPECT_EQ(shim.port, 0);
}

TEST(ContainerPlan, TheShimBindsTheGivenAddressOrTheTasksAddress) {
  TaskPlan task = plan();
  task.address = "10.0.0.2";
  task.ssh = launch::SshService{.port = 2222, .command = {"sshd", "-i"}, .bind = ""};
  EXPECT_EQ(shim_plan(task, site()).address, "10.0.0.2");
  EXPECT_EQ(shim_plan(task, site()).port, 2222);

  task.ssh->bind = "0.0.0.0";
  EXPECT_EQ(shim_plan(task, site()).address, "0.0.0.0");
  EXPECT_EQ(shim_plan(task, site()).inner.ssh_command, task.ssh->command);
}

// --- files

TEST(ContainerPlan, FilesBelongToTheAccountAndProgramsAreReadOnly) {
  TaskPlan task = plan();
  task.files = {{.path = "ssh/keys/id", .content = "secret", .mode = 0600, .secret = true},
                {.path = "hostfile", .content = "w slots=1\n", .mode = 0644}};
  task.folders = {"ranks"};

  auto files =
      programs_of(task, {{.path = "muster-shim", .content = "ELF", .mode = 0755, .link = {}}});
  for (ArchiveEntry& file : files_of(task, shim_plan(task, site()))) {
    files.push_back(std::move(file));
  }

  EXPECT_EQ(files.back().path, "muster/task/complete");
  EXPECT_EQ(
      *entry_at(files, "muster/bin/muster-shim"),
      (ArchiveEntry{.path = "muster/bin/muster-shim", .content = "ELF", .mode = 0755, .link = {}}));
  const ArchiveEntry& folder = *entry_at(files, "muster/task");
  EXPECT_TRUE(folder.is_folder);
  EXPECT_EQ(folder.mode, 0700U);
  EXPECT_EQ(folder.uid, 1000U);
  EXPECT_EQ(entry_at(files, "muster/task/plan")->mode, 0600U);
  EXPECT_EQ(entry_at(files, "muster/task/plan")->gid, 100U);
  EXPECT_EQ(entry_at(files, "generated/ssh/keys/id")->content, "secret");
  EXPECT_EQ(entry_at(files, "generated/ssh/keys")->mode, 0700U);
  EXPECT_EQ(entry_at(files, "generated/hostfile")->mode, 0644U);
  EXPECT_TRUE(entry_at(files, "generated/ranks")->is_folder);
  for (const ArchiveEntry& entry : files) {
    const size_t slash = entry.path.rfind('/');
    if (slash == std::string::npos) continue;
    const ArchiveEntry* const above = entry_at(files, entry.path.substr(0, slash));
    ASSERT_NE(above, nullptr) << entry.path;
    EXPECT_LT(above, &entry) << entry.path;
  }
}

TEST(ContainerPlan, AddsTheRemoteShellOnlyWhereItIsUsed) {
  const std::vector<ArchiveEntry> programs{
      {.path = kRemoteShell, .content = "ELF", .mode = 0755, .link = {}}};
  const std::string place = std::string("muster/bin/") + kRemoteShell;
  TaskPlan task = plan();
  task.files = {{.path = "ssh/config", .content = "Host *", .mode = 0600}};
  EXPECT_EQ(entry_at(programs_of(task, programs), place), nullptr);

  task.files = {{.path = "rsh/key", .content = "key", .mode = 0600, .secret = true}};
  EXPECT_NE(entry_at(programs_of(task, programs), place), nullptr);
}

TEST(ContainerPlan, LinksAFileAtItsSecondPath) {
  TaskPlan task = plan();
  task.also_at = {{"hostfile", "/etc/mpi/hostfile"}};

  const auto files = files_of(task, shim_plan(task, site()));

  EXPECT_EQ(entry_at(files, "etc/mpi/hostfile")->link, "/generated/hostfile");
  EXPECT_EQ(mount_at(container_config(kGang, task, site()), "/etc/mpi")->kind,
            DockerMount::Kind::kVolume);
}

TEST(ContainerPlan, AVolumeOfTheUserOverridesALinkedFile) {
  TaskPlan task = plan();
  task.also_at = {{"hostfile", "/etc/mpi/hostfile"}};
  task.volumes = {volume(Volume::Kind::kHostPath, "/mine", "/etc/mpi")};

  EXPECT_EQ(entry_at(files_of(task, shim_plan(task, site())), "etc/mpi/hostfile"), nullptr);
  EXPECT_EQ(mount_at(container_config(kGang, task, site()), "/etc/mpi")->kind,
            DockerMount::Kind::kBind);
}

TEST(ContainerPlan, PutsFilesIntoTheirVolumes) {
  const auto entry = [](const std::string& path) {
    return ArchiveEntry{.path = path, .content = {}, .link = {}};
  };
  const std::vector<DockerMount> mounts{
      {.source = "", .target = "/muster"},
      {.source = "named", .target = "/muster/named"},
      {.source = "", .target = "/etc/mpi"},
      {.source = "", .target = "/run/sshd"},
      {.kind = DockerMount::Kind::kTmpfs, .source = "", .target = "/tmp"}};

  EXPECT_EQ(by_volume({entry("muster"), entry("muster/bin/x"), entry("musterfile"),
                       entry("etc/mpi/hostfile"), entry("tmp/x")},
                      mounts),
            (std::vector<VolumeFiles>{{"/etc/mpi", {entry("hostfile")}},
                                      {"/muster", {entry("."), entry("bin/x")}}}));
}

}  // namespace
}  // namespace muster::engine
