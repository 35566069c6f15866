// Who holds a lock on a file.
//
// I/O: reads /proc.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace muster::store {

/// "process 4711 (sqlite3)": one other than this that holds a write lock on any part of `file`, as
/// far as the kernel tells. Looks it up in /proc/locks: fcntl(F_GETLK) would need the file opened,
/// and closing it would drop the locks that this process itself has on it.
std::optional<std::string> lock_holder(const std::filesystem::path& file);

}  // namespace muster::store
