// What a tree of files consists of: every entry with its name, kind and mode, and of each file the
// chunks that its content is cut into, by their SHA-256. The id of a tree is the hash of that list:
// two folders that hold the same have one id.
//
// The text of a manifest is "muster-tree 1\n", then a line for each entry, its path ended by a NUL,
// which no path holds (but newlines, some do):
//
//   d src<NUL>                          a folder
//   f src/a.py<NUL>12 3a7b..            a file: its size, then its chunks
//   x run.sh<NUL>1048600 90cd.. 11ef..  one that can be executed
//   l latest<NUL>src/a.py               a link
//
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::workspace {

using base::Result;

/// The longest piece of a file that is kept and sent as one. All pieces but a file's last have it.
inline constexpr size_t kChunkBytes = 1 << 20;
/// The longest text of a manifest: 200,000 entries have 30 MiB where their paths are of usual
/// length.
inline constexpr size_t kMostManifestBytes = size_t{128} << 20;
/// How many entries a tree has at most: each is an inode of the disk for every job that has it.
inline constexpr size_t kMostEntries = 200'000;
/// Of the path of an entry. A folder to unpack it in needs room before it in the system's 4096.
inline constexpr size_t kMostPathBytes = 3500;
/// How many folders may lie in one another: each holds a descriptor while its files are read.
inline constexpr size_t kMostDepth = 200;

/// 64 digits of hexadecimal, of what a chunk holds.
using ChunkId = std::string;

ChunkId chunk_id(std::string_view content);
/// Whether the text is such an id, or one of a tree.
bool is_id(std::string_view text);

struct Entry {
  enum class Kind { kFile, kFolder, kLink };
  Kind kind = Kind::kFile;
  std::string path;         ///< relative, '/' between names, any other bytes; no "." or ".."
  bool executable = false;  ///< of a file: 0755, else 0644
  int64_t bytes = 0;        ///< of a file
  std::vector<ChunkId> chunks;
  std::string link;  ///< where it points; never out of the tree

  bool operator==(const Entry&) const = default;
};

struct Manifest {
  std::vector<Entry> entries;  ///< by path, bytewise; a folder before what is in it

  int64_t bytes() const;
  size_t files() const;
  bool operator==(const Manifest&) const = default;
};

/// How many chunks a file of so many bytes is cut into.
size_t chunk_count(int64_t bytes);
/// How long the chunk `index` of such a file is.
size_t chunk_bytes(int64_t bytes, size_t index);
/// `content` as it is cut: views into it.
std::vector<std::string_view> cut_into_chunks(std::string_view content);

/// One text for one tree.
std::string encode(const Manifest& manifest);
/// kInvalid for whatever encode() would not have written: unordered or doubled entries, paths and
/// links that lead out of the tree, a file below a file, chunks that do not fit the size.
Result<Manifest> decode_manifest(std::string_view text);
/// The id of the tree: the SHA-256 of encode().
std::string tree_id(std::string_view encoded);

/// Whether `path` can be that of an entry: relative, without empty names, "." and "..", and no
/// longer or deeper than it may be.
bool is_tree_path(std::string_view path);

/// Where a link at `path` leads stays within the tree. Pure text: links in between are not
/// followed, for none of them leads out either. That holds because a ".." behind a name is refused:
/// the name may be a link, and what is above its target is not what the text says.
bool link_stays_inside(std::string_view path, std::string_view link);

}  // namespace muster::workspace
