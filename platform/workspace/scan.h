// Looks at a folder as a tree to send: what is in it, how large it is, which chunks it consists of.
//
// I/O; blocking. Follows no link: a link is sent as a link, and one that leads out of the folder is
// an error that names it, as are devices, sockets and pipes. A file that changes while it is read
// is an error, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "workspace/flag_names.h"
#include "workspace/manifest.h"

namespace muster::workspace {

inline constexpr int64_t kUsualLimit = int64_t{1} << 30;

struct ScanOptions {
  std::vector<std::string> ignore;  ///< patterns, as IgnoreRules has them
  bool use_gitignore = true;
  FlagNames flags;  ///< which advice names
  int64_t most_bytes = kUsualLimit;
  size_t most_entries = kMostEntries;
};

/// What stands where the content of a chunk can be read again.
struct ChunkSource {
  ChunkId id;
  std::filesystem::path file;  ///< absolute
  int64_t offset = 0;
  size_t bytes = 0;
};

struct Scan {
  Manifest manifest;
  std::string encoded;              ///< of the manifest
  std::string id;                   ///< of the tree
  std::vector<ChunkSource> chunks;  ///< each once
};

/// `on_progress`: bytes read so far, and in all.
///
/// Errors, all faults at once: kInvalid where something in it cannot be sent; where it is larger
/// than it may be (nothing is read then), with its largest folders and how to leave them out.
/// kNotFound: there is no such folder.
Result<Scan> scan_folder(const std::filesystem::path& folder, const ScanOptions& options,
                         const std::function<void(int64_t, int64_t)>& on_progress = {});

/// The content of a chunk. kConflict: the file has changed since.
Result<std::string> read_chunk(const ChunkSource& source);

}  // namespace muster::workspace
