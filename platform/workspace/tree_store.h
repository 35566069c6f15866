// The trees of files that clients sent to a server, by project: FOLDER/PROJECT/chunks/AB/ABCD...
// and FOLDER/PROJECT/trees/ID. Each project has its own chunks: if projects shared chunks, a
// member of one project could learn by a hash which files another project has.
//
// Files appear complete, named by their content; removing files takes an exclusive lock (flock).
// Several servers may therefore share the folder. keep() checks everything and syncs it to disk. A
// chunk that no tree uses yet may be lost or truncated by a crash, which is detected when it is
// used. A damaged chunk is removed, together with the tree that could not be unpacked; sending the
// tree again repairs it.
//
// What a project has sent and no job uses is limited. It is counted by collect(), and the chunks
// that arrive later are added: a chunk counts as unused until the next collect().
//
// I/O; blocking. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "workspace/manifest.h"

namespace muster::workspace {

struct TreeInfo {
  std::string id;
  int64_t bytes = 0;
  size_t files = 0;

  bool operator==(const TreeInfo&) const = default;
};

struct TreeLimits {
  int64_t tree_bytes = int64_t{4} << 30;     ///< of one tree
  int64_t unused_bytes = int64_t{16} << 30;  ///< of one project, on the disk; of no job
};

class TreeStore {
 public:
  /// The projects and trees that jobs use: {project, id}.
  using Used = std::set<std::pair<std::string, std::string>>;

  /// `folder` is created with mode 0700 when the first file is stored. Copies share what they have
  /// counted.
  explicit TreeStore(std::filesystem::path folder, TreeLimits limits = {});

  /// The chunks of `chunks` that the store lacks. kInvalid: one of them is not a valid id.
  Result<std::vector<ChunkId>> missing(const std::string& project,
                                       const std::vector<ChunkId>& chunks) const;
  /// Stores one chunk. kExhausted: the disk is full, or nearly so (less than 1 GiB and a twentieth
  /// of the disk are free), or the project is over its limit for unused files; older content stays.
  /// kInvalid: longer than kChunkBytes.
  Result<ChunkId> put_chunk(const std::string& project, std::string_view content);
  /// Stores a tree whose chunks are all in the store: those of its (encoded) manifest and those of
  /// its files. Storing the same tree again succeeds.
  ///
  /// Errors: kNotFound: a chunk is missing or damaged. kInvalid: the manifest is malformed, is the
  /// manifest of another tree, or the tree is over the limit. kExhausted: the disk is full. kConflict:
  /// the project was deleted meanwhile.
  Result<TreeInfo> keep(const std::string& project, const std::string& id,
                        const std::vector<ChunkId>& manifest_chunks);
  /// kNotFound: the tree was never stored, or has been collected.
  Result<TreeInfo> info(const std::string& project, const std::string& id) const;
  /// Writes the files into `folder`, which must be empty, and nothing outside it. After an error
  /// some files may be left there: the caller removes the folder.
  ///
  /// Errors: kNotFound: the tree does not exist, or one of its chunks, which the error names, is
  /// damaged. kExhausted: the disk is full. kConflict: `folder` was not empty.
  Result<void> unpack(const std::string& project, const std::string& id,
                      const std::filesystem::path& folder) const;

  /// Removes trees that are not in `used` and were last stored, looked up or unpacked before
  /// `before`, and equally old chunks without a tree. Counts what remains and is unused. Returns the
  /// number of bytes removed. Also deletes the files of forgotten projects.
  Result<int64_t> collect(const Used& used, base::Time before);
  /// The same in one project.
  Result<int64_t> collect(const std::string& project, const Used& used, base::Time before);
  /// Whether put_chunk() refuses chunks of the project soon, because of its unused files. Does not
  /// wait for the disk.
  bool is_nearly_full(const std::string& project) const;
  /// Sets the files of a project that was deleted aside, and does not wait for the disk or for other
  /// uses of the store: from now on, a new project of this name has no files. remove_forgotten() deletes
  /// them.
  Result<void> forget_project(const std::string& project);
  /// Deletes the files of all forgotten projects, as collect() does: they may be many.
  Result<void> remove_forgotten();

 private:
  class Counts;

  Result<void> check_unused(const std::string& project) const;

  std::filesystem::path folder_;
  TreeLimits limits_;
  std::shared_ptr<Counts> unused_;
};

}  // namespace muster::workspace
