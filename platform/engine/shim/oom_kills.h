// How often the kernel's out-of-memory killer struck: two looks tell whether it did in between.
//
// Reads /proc and /sys. `root`: where they lie, for tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace muster::engine {

/// On this machine (/proc/vmstat).
uint64_t kills_on_machine(const std::filesystem::path& root = "/");

/// In the control group of this process: version 2's memory.events, or the
/// memory.oom_control of version 1. nullopt: it cannot be read there.
std::optional<uint64_t> kills_in_group(const std::filesystem::path& root = "/");

/// In a container the machine's count would tell of its neighbours, too.
inline uint64_t kills_in_container(const std::filesystem::path& root = "/") {
  const auto in_group = kills_in_group(root);
  return in_group ? *in_group : kills_on_machine(root);
}

}  // namespace muster::engine
