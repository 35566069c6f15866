// The list of a tree's entries: name, kind and mode of each entry, and the SHA-256 of each chunk of
// each file. The id of a tree is the hash of this list, so two folders with the same content have
// the same id.
//
// The text of a manifest is "muster-tree 1\n", then a line for each entry. A path ends with a NUL,
// because paths may contain newlines but never a NUL:
//
//   d src<NUL>                          a folder
//   f src/a.py<NUL>12 3a7b..            a file: its size, then its chunks
//   x run.sh<NUL>1048600 90cd.. 11ef..  an executable file
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

/// The size of every chunk of a file except the last, which may be shorter.
inline constexpr size_t kChunkBytes = 1 << 20;
/// The longest text of a manifest. 200,000 entries with paths of usual length have 30 MiB.
inline constexpr size_t kMostManifestBytes = size_t{128} << 20;
/// The largest number of entries of a tree: each takes an inode for every job that uses the tree.
inline constexpr size_t kMostEntries = 200'000;
/// The longest path of an entry. The system's limit of 4096 must also hold the folder before it.
inline constexpr size_t kMostPathBytes = 3500;
/// The deepest nesting of folders: each level holds a descriptor while its files are read.
inline constexpr size_t kMostDepth = 200;

/// The SHA-256 of a chunk's content: 64 hexadecimal digits.
using ChunkId = std::string;

ChunkId chunk_id(std::string_view content);
/// Whether `text` has the form of the id of a chunk or a tree.
bool is_id(std::string_view text);

struct ManifestEntry {
  enum class Kind { kFile, kFolder, kLink };
  Kind kind = Kind::kFile;
  std::string path;         ///< relative, '/' between names, any other bytes; no "." or ".."
  bool executable = false;  ///< of a file: 0755, else 0644
  int64_t bytes = 0;        ///< of a file
  std::vector<ChunkId> chunks;
  std::string link;  ///< target of a link; never outside the tree

  bool operator==(const ManifestEntry&) const = default;
};

struct Manifest {
  std::vector<ManifestEntry> entries;  ///< by path, bytewise; a folder before what is in it

  int64_t bytes() const;
  size_t files() const;
  bool operator==(const Manifest&) const = default;
};

/// The number of chunks of a file of `bytes` bytes.
size_t chunk_count(int64_t bytes);
/// The size of chunk `index` of a file of `bytes` bytes.
size_t chunk_bytes(int64_t bytes, size_t index);
/// The chunks of `content`, as views into it.
std::vector<std::string_view> cut_into_chunks(std::string_view content);

/// The text of a manifest. Equal trees have equal texts.
std::string encode(const Manifest& manifest);
/// kInvalid for every text that encode() cannot produce: unordered or duplicate entries, paths and
/// links that lead out of the tree, a file below a file, chunks that do not match the size.
Result<Manifest> decode_manifest(std::string_view text);
/// The id of the tree: the SHA-256 of encode().
std::string tree_id(std::string_view encoded);

/// Whether `path` is valid for an entry: relative, without empty names, "." and "..", and within
/// the limits of length and depth.
bool is_tree_path(std::string_view path);

/// Whether the target of a link at `path` is within the tree. This compares text only; links on the
/// way need not be followed, because none of them leads out either. A ".." after a name is
/// therefore refused: the name may be a link, and the parent of its target is elsewhere.
bool link_stays_inside(std::string_view path, std::string_view link);

}  // namespace muster::workspace
