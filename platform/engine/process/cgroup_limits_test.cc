#include "engine/process/cgroup_limits.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <map>
#include <string>

namespace muster::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kV2Mount = "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
constexpr const char* kV1Mounts =
    "40 25 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 25 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

/// A folder that stands for /, with these files in it.
class Machine {
 public:
  explicit Machine(const std::map<std::string, std::string>& files) {
    std::string pattern = testing::TempDir() + "cgroupXXXXXX";
    root_ = ::mkdtemp(pattern.data());
    for (const auto& [path, content] : files) {
      fs::create_directories((root_ / path).parent_path());
      std::ofstream(root_ / path) << content;
    }
  }
  ~Machine() { fs::remove_all(root_); }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  CgroupLimits limits() const { return cgroup_limits(root_); }

 private:
  fs::path root_;
};

TEST(CgroupLimits, AreTheSmallestAlongTheWayUp) {
  const Machine machine({{"proc/self/mountinfo", kV2Mount},
                         {"proc/self/cgroup", "0::/system.slice/muster.service\n"},
                         {"sys/fs/cgroup/system.slice/memory.max", "1073741824\n"},
                         {"sys/fs/cgroup/system.slice/cpu.max", "max 100000\n"},
                         {"sys/fs/cgroup/system.slice/muster.service/memory.max", "max\n"},
                         {"sys/fs/cgroup/system.slice/muster.service/cpu.max", "250000 100000\n"}});

  EXPECT_EQ(machine.limits(), (CgroupLimits{.memory_bytes = 1 << 30, .cpu_milli = 2500}));
}

TEST(CgroupLimits, OfVersionOneStandInHierarchiesOfTheirOwn) {
  const Machine machine({{"proc/self/mountinfo", kV1Mounts},
                         {"proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/b\n0::/\n"},
                         {"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n"},
                         {"sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_quota_us", "50000\n"},
                         {"sys/fs/cgroup/cpu,cpuacct/b/cpu.cfs_period_us", "100000\n"}});

  EXPECT_EQ(machine.limits(), (CgroupLimits{.memory_bytes = 4096, .cpu_milli = 500}));
}

TEST(CgroupLimits, AMinusOneOfVersionOneIsNoLimit) {
  const Machine machine({{"proc/self/mountinfo", kV1Mounts},
                         {"proc/self/cgroup", "4:cpu,cpuacct:/\n"},
                         {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"},
                         {"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"}});

  EXPECT_EQ(machine.limits(), CgroupLimits{});
}

TEST(CgroupLimits, OfAContainerThatSeesItsOwnGroupAtTheTopAreFound) {
  const Machine machine(
      {{"proc/self/mountinfo",
        "30 25 0:26 /docker/c1 /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n"},
       {"proc/self/cgroup", "0::/docker/c1\n"},
       {"sys/fs/cgroup/memory.max", "8192\n"}});

  EXPECT_EQ(machine.limits().memory_bytes, 8192);
}

TEST(CgroupLimits, AMachineWithoutControlGroupsHasNone) {
  EXPECT_EQ(Machine({}).limits(), CgroupLimits{});
}

TEST(CgroupLimits, WhatCannotBeReadIsNoLimit) {
  const Machine machine(
      {{"proc/self/mountinfo", std::string("nonsense\n1 2 - cgroup2\n") + kV2Mount},
       {"proc/self/cgroup", "x\n0::\n"},
       {"sys/fs/cgroup/memory.max", "much\n"},
       {"sys/fs/cgroup/cpu.max", "100000"}});

  EXPECT_EQ(machine.limits(), CgroupLimits{});
}

}  // namespace
}  // namespace muster::engine
