// How a TreeStore lies on the disk: the places of a project's files, how one gets there whole, how
// it is read back and checked. Private to the store.
//
// I/O; blocking. Thread-safe, as the store is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "workspace/manifest.h"
#include "workspace/tree_store.h"

namespace muster::workspace {

/// Everything of one project. Files are named by what they hold; `incoming` has those that are not
/// whole yet.
class ProjectFiles {
 public:
  /// kInvalid: the name is not one that a project can have, so it must not become a path.
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

/// What the file of a kept tree says. Its manifest is as many chunks as any other file.
struct TreeRecord {
  TreeInfo info;
  std::vector<ChunkId> manifest_chunks;
};

std::string encode_record(const TreeRecord& record);

/// kNotFound: no such tree is kept.
Result<TreeRecord> read_record(const ProjectFiles& files, const std::string& id);

/// What the chunk holds. kNotFound where there is none, or was one that was damaged: that is taken
/// away, so that whoever asks what is missing sends it again.
Result<std::string> read_checked(const ProjectFiles& files, const ChunkId& id);

/// The manifest of these chunks; errors as read_checked() and decode_manifest(), and kInvalid where
/// it is that of another tree.
Result<Manifest> read_manifest(const ProjectFiles& files, const std::string& id,
                               const std::vector<ChunkId>& chunks);

/// Makes `target` appear with all of `content`, or not at all. `durable`: it is on the disk then,
/// and so is its name.
Result<void> put_whole(const ProjectFiles& files, const std::filesystem::path& target,
                       std::string_view content, bool durable);

/// Marks that a file was used now. Whether it is there.
Result<bool> touch(const std::filesystem::path& file);

enum class Hold { kShared, kAlone };

/// Holds the store: many share it, but nothing is removed meanwhile. Where nothing was ever kept
/// there is nothing to hold.
Result<base::UniqueFd> hold_store(const std::filesystem::path& store, Hold hold);

/// The same of one that something will be kept in: makes it.
Result<base::UniqueFd> make_and_hold_store(const std::filesystem::path& store);

/// The error of a system call: a full disk says what to do.
base::Error disk_error(const std::string& what, int number);

}  // namespace muster::workspace
