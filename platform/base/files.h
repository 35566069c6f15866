// The files and folders of Muster: folders have mode 0700, files 0600; a file is written completely
// or not at all.
//
// Blocking; thread-safe (no state). Errors contain the path.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::base {

/// Creates `path` and its missing parents with mode 0700. If `path` exists, it must belong to this
/// user and is made private (chmod 0700), because it will contain keys and logs. Folders above it
/// that exist are not changed.
Result<void> make_private_folder(const std::filesystem::path& path);

/// Writes `content` to a temporary neighbour and renames it over `path`: a reader sees either the
/// old or the new content.
Result<void> write_file(const std::filesystem::path& path, std::string_view content,
                        mode_t mode = 0600);

/// Creates a file that must not exist yet. Cheaper than write_file(), for folders without readers.
Result<void> write_new_file(const std::filesystem::path& path, std::string_view content,
                            mode_t mode = 0600);

/// The whole content of a file. kInvalid: it is larger than `limit` bytes.
Result<std::string> read_file(const std::filesystem::path& path, size_t limit = 64 << 20);

/// Whether the disk of `folder` has no room for a few small files (1 MiB), or no free inode.
bool is_disk_full(const std::filesystem::path& folder);

/// Removes a tree of any depth, including folders that deny access to their owner; a missing tree
/// is not an error.
Result<void> remove_tree(const std::filesystem::path& path);

/// Repeats write(2) until everything is written.
Result<void> write_all(int fd, std::string_view content);

/// Locks a file (flock; created with mode 0600 if it is missing). kConflict: another process holds
/// the lock. Held until the descriptor and every inherited copy of it are closed.
Result<UniqueFd> lock_file(const std::filesystem::path& path);

/// The same, but waits until the lock is free.
Result<UniqueFd> await_lock(const std::filesystem::path& path);

}  // namespace muster::base
