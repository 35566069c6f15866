// Control groups: the limits that hold for this process, and the places where it can make groups
// for tasks.
//
// In a container or a systemd unit, a process may use less memory and CPU time than the machine
// has. Neither sysconf() nor the affinity mask shows that; the control group does.
//
// Supports version 1, version 2, and both side by side. Reads /proc and /sys; a file that is
// missing or malformed means "no limit".
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

/// The smallest limits on the path from this process's group up to the topmost group that is
/// mounted. `root`: the folder with proc and the mounts, for tests.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

/// A hierarchy of control groups in which this process may make groups for tasks.
struct GroupPlace {
  std::filesystem::path folder;       ///< gets one folder for each task
  std::filesystem::path home;         ///< the group of this process
  std::set<std::string> controllers;  ///< "memory", "pids", "cpu", "cpuset"
  bool is_version_2 = false;
  // Of version 1, with "cpuset": what the group of this process may use. A new group has neither.
  std::string cpus;
  std::string memory_nodes;

  bool operator==(const GroupPlace&) const = default;
};

/// Version 1: below the group of this process, in each hierarchy where this account may write.
/// Version 2: at the top, only for root: another account may not move processes out of the group
/// that the service manager has made for it.
std::vector<GroupPlace> group_places(const std::filesystem::path& root = "/");

/// The groups that hold the task `name` to its limits and its CPUs. While tasks compete for CPU
/// time, each gets a share in proportion to its `cpu_milli`; 0 counts as one CPU. With version 1, the
/// share contains the CPU time of the process that holds the task.
std::vector<TaskGroup> groups_of(const std::vector<GroupPlace>& places, const std::string& name,
                                 const TaskLimits& limits, int64_t cpu_milli);

}  // namespace muster::engine
