// What the control groups of this process leave it of the machine: a container or a systemd unit
// may be given less memory and less time on the CPUs than the machine has, which neither sysconf
// nor an affinity mask shows.
//
// Control groups of version 1 and 2, and both side by side. Reads /proc and /sys; a file that is
// missing or says something else stands for "no limit".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/shim/task_limits.h"

namespace muster::engine {

struct CgroupLimits {
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> cpu_milli;  ///< thousandths of a CPU

  bool operator==(const CgroupLimits&) const = default;
};

/// The smallest along the way from this process's group up to the one that is mounted at the top.
/// `root`: where proc and the mounts lie, for tests.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

/// A hierarchy of control groups in which this process may make groups for tasks.
struct GroupPlace {
  std::filesystem::path folder;       ///< in which there is a folder for each task
  std::filesystem::path home;         ///< the group of this process
  std::set<std::string> controllers;  ///< "memory", "pids", "cpu", "cpuset"
  bool is_version_2 = false;
  // Of version 1, with "cpuset": what the group of this process may use. A new group has neither.
  std::string cpus;
  std::string memory_nodes;

  bool operator==(const GroupPlace&) const = default;
};

/// Of version 1: below the group of this process in each hierarchy, where this account may write
/// there. Of version 2: at the top, for root alone; an account has no right to move processes out
/// of the group that a service manager made for it.
std::vector<GroupPlace> group_places(const std::filesystem::path& root = "/");

/// The groups that hold the task `name` to its limits and its CPUs, and give it CPU time in
/// proportion to `cpu_milli` (0: as one CPU) while others compete for it.
std::vector<TaskGroup> groups_of(const std::vector<GroupPlace>& places, const std::string& name,
                                 const TaskLimits& limits, int64_t cpu_milli);

}  // namespace muster::engine
