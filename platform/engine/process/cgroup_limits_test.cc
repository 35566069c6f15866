#include "engine/process/cgroup_limits.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/fake_machine.h"

namespace muster::engine {
namespace {

constexpr const char* kV2Mount = "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
constexpr const char* kV1Mounts =
    "40 25 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 25 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

TEST(CgroupLimits, AreTheSmallestUpToTheTop) {
  const FakeMachine machine(
      {{"proc/self/mountinfo", kV2Mount},
       {"proc/self/cgroup", "0::/system.slice/muster.service\n"},
       {"sys/fs/cgroup/system.slice/memory.max", "1073741824\n"},
       {"sys/fs/cgroup/system.slice/cpu.max", "max 100000\n"},
       {"sys/fs/cgroup/system.slice/muster.service/memory.max", "max\n"},
       {"sys/fs/cgroup/system.slice/muster.service/cpu.max", "250000 100000\n"}});

  EXPECT_EQ(cgroup_limits(machine.root()),
            (CgroupLimits{.memory_bytes = 1 << 30, .cpu_milli = 2500}));
}

TEST(CgroupLimits, OfVersionOneAreReadFromEachHierarchy) {
  const FakeMachine machine({{"proc/self/mountinfo", kV1Mounts},
                             {"proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/b\n0::/\n"},
                             {"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n"},
                             {"sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_quota_us", "50000\n"},
                             {"sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_period_us", "100000\n"}});

  EXPECT_EQ(cgroup_limits(machine.root()), (CgroupLimits{.memory_bytes = 4096, .cpu_milli = 500}));
}

TEST(CgroupLimits, MinusOneInVersionOneIsNoLimit) {
  const FakeMachine machine({{"proc/self/mountinfo", kV1Mounts},
                             {"proc/self/cgroup", "4:cpu,cpuacct:/\n"},
                             {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
                             {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}});

  EXPECT_EQ(cgroup_limits(machine.root()), CgroupLimits{});
}

TEST(CgroupLimits, OfAContainerAreReadAtTheTopOfTheMount) {
  const FakeMachine machine(
      {{"proc/self/mountinfo",
        "30 25 0:26 /docker/c1 /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n"},
       {"proc/self/cgroup", "0::/docker/c1\n"},
       {"sys/fs/cgroup/memory.max", "8192\n"}});

  EXPECT_EQ(cgroup_limits(machine.root()).memory_bytes, 8192);
}

TEST(CgroupLimits, AMachineWithoutControlGroupsHasNone) {
  EXPECT_EQ(cgroup_limits(FakeMachine({}).root()), CgroupLimits{});
}

TEST(CgroupLimits, UnreadableFilesMeanNoLimit) {
  const FakeMachine machine(
      {{"proc/self/mountinfo", std::string("nonsense\n1 2 - cgroup2\n") + kV2Mount},
       {"proc/self/cgroup", "x\n0::\n"},
       {"sys/fs/cgroup/memory.max", "much\n"},
       {"sys/fs/cgroup/cpu.max", "100000"}});

  EXPECT_EQ(cgroup_limits(machine.root()), CgroupLimits{});
}

TEST(GroupPlaces, OfVersionOneAreBelowThisProcessesGroups) {
  const FakeMachine machine({{"proc/self/mountinfo", kV1Mounts},
                             {"proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/b\n0::/\n"},
                             {"sys/fs/cgroup/memory/a/cgroup.procs", ""},
                             {"sys/fs/cgroup/cpu,cpuacct/cgroup.procs", ""}});
  const std::filesystem::path groups = std::filesystem::path(machine.root()) / "sys/fs/cgroup";

  // The kernel gives the path of a group that the container does not see.
  EXPECT_EQ(group_places(machine.root()),
            (std::vector<GroupPlace>{{.folder = groups / "memory/a/muster",
                                      .home = groups / "memory/a",
                                      .controllers = {"memory"}},
                                     {.folder = groups / "cpu,cpuacct/muster",
                                      .home = groups / "cpu,cpuacct",
                                      .controllers = {"cpu"}}}));
}

TEST(GroupPlaces, OfCpusHaveThoseOfTheGroupOfThisProcess) {
  const FakeMachine machine(
      {{"proc/self/mountinfo", "42 25 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"},
       {"proc/self/cgroup", "3:cpuset:/a\n"},
       {"sys/fs/cgroup/cpuset/a/cgroup.procs", ""},
       {"sys/fs/cgroup/cpuset/a/cpuset.cpus", "0-3\n"},
       {"sys/fs/cgroup/cpuset/a/cpuset.mems", "0\n"}});
  const std::filesystem::path home =
      std::filesystem::path(machine.root()) / "sys/fs/cgroup/cpuset/a";

  const std::vector<GroupPlace> places = group_places(machine.root());

  EXPECT_EQ(places, (std::vector<GroupPlace>{{.folder = home / "muster",
                                              .home = home,
                                              .controllers = {"cpuset"},
                                              .cpus = "0-3",
                                              .memory_nodes = "0"}}));
  const auto groups = groups_of(places, "j", {.cpus = {1, 2}}, 2000);
  ASSERT_EQ(groups.size(), 1);
  using Settings = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(groups.front().settings, (Settings{{"../cpuset.cpus", "0-3"},
                                               {"../cpuset.mems", "0"},
                                               {"cpuset.mems", "0"},
                                               {"cpuset.cpus", "1-2"}}));
  EXPECT_TRUE(groups_of(places, "j", {}, 2000).empty()) << "a task that is not bound";
}

TEST(GroupPlaces, AMachineWithoutControlGroupsHasNone) {
  EXPECT_TRUE(group_places(FakeMachine({}).root()).empty());
}

TEST(TaskGroups, HoldATaskToItsLimitsInEachHierarchy) {
  const std::vector<GroupPlace> places{
      {.folder = "/m/muster", .home = "/m", .controllers = {"memory"}},
      {.folder = "/p/muster", .home = "/p", .controllers = {"pids"}},
      {.folder = "/c/muster", .home = "/c", .controllers = {"cpu"}}};

  const auto groups = groups_of(places, "j-1-main", {.memory_bytes = 4096, .processes = 7}, 500);

  ASSERT_EQ(groups.size(), 3);
  EXPECT_EQ(groups[0], (TaskGroup{.folder = "/m/muster/j-1-main",
                                  .home = "/m",
                                  .settings = {{"memory.limit_in_bytes", "4096"}}}));
  EXPECT_EQ(groups[1].settings,
            (std::vector<std::pair<std::string, std::string>>{{"pids.max", "7"}}));
  EXPECT_EQ(groups[2].folder, "/c/muster/j-1-main/task");
  EXPECT_EQ(groups[2].holder, "/c/muster/j-1-main");
  EXPECT_EQ(groups[2].home, "/c");
  const auto& shares = groups[2].settings;
  ASSERT_EQ(shares.size(), 3);
  EXPECT_EQ(shares[0].first, "../../cpu.shares");
  EXPECT_EQ(shares[1], (std::pair<std::string, std::string>("../cpu.shares", "512")));
  EXPECT_EQ(shares[2], (std::pair<std::string, std::string>("cpu.shares", "1024")));
}

TEST(TaskGroups, OfVersionTwoAreOneGroupWithAllControllers) {
  const auto groups = groups_of({{.folder = "/u/muster",
                                  .home = "/u/system.slice",
                                  .controllers = {"cpu", "memory", "pids"},
                                  .is_version_2 = true}},
                                "j-1-main", {.memory_bytes = 4096, .processes = 7}, 2000);

  ASSERT_EQ(groups.size(), 1);
  const auto& settings = groups.front().settings;
  EXPECT_EQ(settings.front(), (std::pair<std::string, std::string>("../cgroup.subtree_control",
                                                                   "+cpu +memory +pids")));
  EXPECT_EQ(settings[1].first, "memory.max");
  EXPECT_EQ(settings[2].first, "pids.max");
  EXPECT_EQ(settings.back(), (std::pair<std::string, std::string>("cpu.weight", "200")));
}

TEST(TaskGroups, OfVersionTwoBindToCpusWhereTheyCan) {
  const auto groups = groups_of({{.folder = "/u/muster",
                                  .home = "/u/system.slice",
                                  .controllers = {"cpuset", "memory"},
                                  .is_version_2 = true}},
                                "j-1-main", {.memory_bytes = 4096, .cpus = {0, 4}}, 2000);

  ASSERT_EQ(groups.size(), 1);
  EXPECT_EQ(groups.front().settings.back(),
            (std::pair<std::string, std::string>("cpuset.cpus", "0,4")));
}

TEST(TaskGroups, AllowMoreProcessesThanTheNamespaceOfTheTask) {
  const auto groups = groups_of({{.folder = "/p/muster", .home = "/p", .controllers = {"pids"}}},
                                "j", {.processes = 7, .user_processes = 7}, 0);

  ASSERT_EQ(groups.size(), 1);
  EXPECT_EQ(groups[0].settings, (std::vector<std::pair<std::string, std::string>>{
                                    {"pids.max", std::to_string(7 + kProcessesBeside)}}));
}

TEST(TaskGroups, AreNotMadeWithoutLimits) {
  EXPECT_TRUE(
      groups_of({{.folder = "/m/muster", .home = "/m", .controllers = {"memory"}}}, "j", {}, 0)
          .empty());
}

}  // namespace
}  // namespace muster::engine
