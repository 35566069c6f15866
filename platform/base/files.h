// Files and folders as Muster keeps them: folders 0700, files 0600, written whole or not at all.
//
// Blocking; thread-safe (no state). Errors name the path.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::base {

/// Makes `path` and its parents, those it makes with mode 0700. An existing folder must belong to
/// this user and is closed to others (chmod 0700), for keys and logs will lie in it.
Result<void> make_private_folder(const std::filesystem::path& path);

/// Writes `content` to a temporary neighbour and renames it over `path`: a reader sees the old
/// content or the new, never half of it.
Result<void> write_file(const std::filesystem::path& path, std::string_view content,
                        mode_t mode = 0600);

/// Makes a file that must not exist yet. Cheaper than write_file(), for folders nobody reads yet.
Result<void> write_new_file(const std::filesystem::path& path, std::string_view content,
                            mode_t mode = 0600);

/// The whole of a file. kInvalid where it is larger than `limit` bytes.
Result<std::string> read_file(const std::filesystem::path& path, size_t limit = 64 << 20);

/// Whether the disk under `folder` lacks room for a few small files (1 MiB), or has no inode left.
bool is_disk_full(const std::filesystem::path& folder);

/// Removes a tree of any depth, with folders in it that their owner has closed; what is already
/// gone is no error.
Result<void> remove_tree(const std::filesystem::path& path);

/// write(2) until all is written.
Result<void> write_all(int fd, std::string_view content);

/// Takes the lock of a file (flock, made 0600 where missing), or fails with kConflict at once
/// when somebody holds it. Held until the descriptor and every inherited copy of it is closed.
Result<UniqueFd> lock_file(const std::filesystem::path& path);

/// The same, but waits for whoever holds it.
Result<UniqueFd> await_lock(const std::filesystem::path& path);

}  // namespace muster::base
