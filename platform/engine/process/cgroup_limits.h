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

namespace muster::engine {

struct CgroupLimits {
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> cpu_milli;  ///< thousandths of a CPU

  bool operator==(const CgroupLimits&) const = default;
};

/// The smallest along the way from this process's group up to the one that is mounted at the top.
/// `root`: where proc and the mounts lie, for tests.
CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace muster::engine
