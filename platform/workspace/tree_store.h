// The trees that were sent to a server, by project: FOLDER/PROJECT/chunks/AB/ABCD... and
// FOLDER/PROJECT/trees/ID. What a project has of chunks is known to its members alone, for who
// names a hash must not learn from that what others have.
//
// I/O; blocking. Thread-safe, and safe between servers that share a folder: files appear whole,
// under names that say what they hold, and whatever removes some holds the store alone (flock).
// What has been kept was checked, and is on disk when keep() returns; a chunk that no tree was kept
// with may be lost or cut short by a crash, which is found when it is to be used. A chunk that is
// damaged is taken away, and with it the tree that could not be unpacked: sending it again mends
// it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
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

class TreeStore {
 public:
  /// `folder` is made 0700 when something is kept. `most_bytes`: of one tree.
  explicit TreeStore(std::filesystem::path folder, int64_t most_bytes = int64_t{4} << 30);

  /// Those of `chunks` that are not here. kInvalid: one of them is no id.
  Result<std::vector<ChunkId>> missing(const std::string& project,
                                       const std::vector<ChunkId>& chunks) const;
  /// kExhausted: the disk is full; what was there stays. kInvalid: longer than kChunkBytes.
  Result<ChunkId> put_chunk(const std::string& project, std::string_view content);
  /// Makes a tree of a manifest (encoded) whose chunks are all here: its own as well as those of
  /// its files. Again is no error.
  ///
  /// Errors: kNotFound: a chunk is missing, or was damaged. kInvalid: the manifest is none, is that
  /// of another tree, or of a larger one than may be. kExhausted: the disk is full.
  Result<TreeInfo> keep(const std::string& project, const std::string& id,
                        const std::vector<ChunkId>& manifest_chunks);
  /// kNotFound where it was never kept, or was collected since.
  Result<TreeInfo> info(const std::string& project, const std::string& id) const;
  /// Writes the files into `folder`, which is there and empty. Nothing is written outside it. After
  /// an error what was written so far is left in it: the folder is the caller's to remove.
  ///
  /// Errors: kNotFound: there is no such tree, or a chunk of it (named) is damaged. kExhausted: the
  /// disk is full. kConflict: something was in the way.
  Result<void> unpack(const std::string& project, const std::string& id,
                      const std::filesystem::path& folder) const;

  /// Removes trees that are not in `used` ({project, id}) and were last kept, asked for or unpacked
  /// before `before`, and chunks as old that no tree has. The number of bytes that went.
  Result<int64_t> collect(const std::set<std::pair<std::string, std::string>>& used,
                          base::Time before);
  /// Everything of a project that is gone.
  Result<void> forget_project(const std::string& project);

 private:
  std::filesystem::path folder_;
  int64_t most_bytes_;
};

}  // namespace muster::workspace
