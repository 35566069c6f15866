// How much room of the disk a folder takes with all that is in it.
//
// I/O; blocking; thread-safe (no state). Follows no link, and no mount.
#pragma once

#include <cstdint>
#include <filesystem>

namespace muster::engine {

/// In bytes. What cannot be looked at is not counted, nor what lies more than some hundred folders
/// deep; a file with two names is counted twice.
int64_t disk_use(const std::filesystem::path& folder);

}  // namespace muster::engine
