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

TEST(CgroupLimits, AreTheSmallestAlongTheWayUp) {
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

TEST(CgroupLimits, OfVersionOneStandInHierarchiesOfTheirOwn) {
  const FakeMachine machine({{"proc/self/mountinfo", kV1Mounts},
                             {"proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/b\n0::/\n"},
                             {"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n"},
                             {"sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_quota_us", "50000\n"},
                             {"sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_period_us", "100000\n"}});

  EXPECT_EQ(cgroup_limits(machine.root()), (CgroupLimits{.memory_bytes = 4096, .cpu_milli = 500}));
}

TEST(CgroupLimits, AMinusOneOfVersionOneIsNoLimit) {
  const FakeMachine machine({{"proc/self/mountinfo", kV1Mounts},
                             {"proc/self/cgroup", "4:cpu,cpuacct:/\n"},
                             {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
                             {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}});

  EXPECT_EQ(cgroup_limits(machine.root()), CgroupLimits{});
}

TEST(CgroupLimits, OfAContainerThatSeesItsOwnGroupAtTheTopAreFound) {
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

TEST(CgroupLimits, WhatCannotBeReadIsNoLimit) {
  const FakeMachine machine(
      {{"proc/self/mountinfo", std::string("nonsense\n1 2 - cgroup2\n") + kV2Mount},
       {"proc/self/cgroup", "x\n0::\n"},
       {"sys/fs/cgroup/memory.max", "much\n"},
       {"sys/fs/cgroup/cpu.max", "100000"}});

  EXPECT_EQ(cgroup_limits(machine.root()), CgroupLimits{});
}

}  // namespace
}  // namespace muster::engine
