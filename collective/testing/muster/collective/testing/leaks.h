// Counts of a process's resources, for tests that detect leaks.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace muster::collective::testing {

/// The number of entries of a folder: in /proc/self/fd the open descriptors, in /proc/self/task the
/// threads.
inline std::ptrdiff_t entries_in(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::distance(begin(entries), end(entries));
}

}  // namespace muster::collective::testing
