// The files of a store of trees (tree_store.h): where they are, how they are written whole, and how
// they are checked when they are read. For the sources of TreeStore only.
//
// I/O; blocking. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "workspace/manifest.h"
#include "workspace/tree_store.h"

namespace muster::workspace {

/// The folder of one project. Files are named by their content; incomplete files are in `incoming`.
class ProjectFiles {
 public:
  /// kInvalid: `project` is not a valid name of a project, so it must not become a path.
  static Result<ProjectFiles> of(const std::filesystem::path& store, const std::string& project);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path chunks() const { return folder_ / "chunks"; }
  std::filesystem::path trees() const { return folder_ / "trees"; }
  std::filesystem::path incoming() const { return folder_ / "incoming"; }
  std::filesystem::path chunk(const ChunkId& id) const { return chunks() / id.substr(0, 2) / id; }
  std::filesystem::path tree(const std::string& id) const { return trees() / id; }

 private:
  explicit ProjectFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

/// The content of the file of a tree. The tree's manifest is itself stored as chunks.
struct TreeRecord {
  TreeInfo info;
  std::vector<ChunkId> manifest_chunks;
};

std::string encode_record(const TreeRecord& record);

/// kNotFound: the store has no such tree.
Result<TreeRecord> read_record(const ProjectFiles& files, const std::string& id);

/// The content of a chunk. kNotFound: the chunk is missing or damaged. A damaged chunk is removed,
/// so that missing() lists it and the client sends it again.
Result<std::string> read_checked(const ProjectFiles& files, const ChunkId& id);

/// The manifest in these chunks. Errors: as read_checked() and decode_manifest(); kInvalid: it is
/// the manifest of another tree.
Result<Manifest> read_manifest(const ProjectFiles& files, const std::string& id,
                               const std::vector<ChunkId>& chunks);

/// Creates `target` with all of `content`, or not at all. `durable`: the content and the name are
/// synced to disk before the return.
Result<void> put_whole(const ProjectFiles& files, const std::filesystem::path& target,
                       std::string_view content, bool durable);

/// Sets the file's time of use to now. False: the file does not exist.
Result<bool> touch(const std::filesystem::path& file);

enum class Hold { kShared, kAlone };

/// Locks the store: kShared for all uses, kAlone to remove files. An empty descriptor is returned
/// if the store does not exist yet.
Result<base::UniqueFd> hold_store(const std::filesystem::path& store, Hold hold);

/// Creates the store if necessary and takes the shared lock.
Result<base::UniqueFd> make_and_hold_store(const std::filesystem::path& store);

/// The error of a system call; for a full disk, with advice.
base::Error disk_error(const std::string& what, int number);

/// The advice for a full disk.
inline constexpr const char* kFreeSpace =
    "free space on that disk, then try again: no stored file is lost";

}  // namespace muster::workspace
