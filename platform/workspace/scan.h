// Reads a folder as a tree to send: its entries, its size, and the chunks that it consists of.
//
// Two passes. walk_folder() looks at every entry by stat alone and reads only the .gitignore files.
// scan_folder() refuses a folder that is too large or has entries that cannot be sent, and then
// reads each file.
//
// I/O; blocking. No link is followed: a link is sent as a link. Links that lead out of the folder,
// devices, sockets and pipes are errors that name the path. So are files that change while they are
// read.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "workspace/beneath.h"
#include "workspace/manifest.h"
#include "workspace/sources.h"

namespace muster::workspace {

inline constexpr int64_t kUsualLimit = int64_t{1} << 30;

struct ScanOptions {
  std::vector<std::string> ignore;  ///< patterns for IgnoreRules
  bool use_gitignore = true;
  FlagNames flags;  ///< the flags that advice names
  int64_t most_bytes = kUsualLimit;
  size_t most_entries = kMostEntries;
};

/// Where the content of a chunk can be read again.
struct ChunkSource {
  ChunkId id;
  std::filesystem::path file;  ///< absolute
  int64_t offset = 0;
  size_t bytes = 0;
};

struct Scan {
  Manifest manifest;
  std::string encoded;              ///< encode(manifest)
  std::string id;                   ///< id of the tree
  std::vector<ChunkSource> chunks;  ///< each distinct chunk once
};

/// `on_progress`: bytes read so far, and bytes in all.
///
/// Errors, with all faults at once: kInvalid: some entries cannot be sent, or the folder is over a
/// limit (then no file is read; the error names the largest folders and how to leave them out).
/// kNotFound: the folder does not exist. kConflict: files changed while they were read.
Result<Scan> scan_folder(const std::filesystem::path& folder, const ScanOptions& options,
                         const std::function<void(int64_t, int64_t)>& on_progress = {});

/// The content of a chunk. kConflict: the file has changed since the scan.
Result<std::string> read_chunk(const ChunkSource& source);

// --- the first pass

/// An entry that the walk found.
struct ScannedEntry {
  ManifestEntry entry;  ///< a file's chunks are not filled in
  FileState state;
};

struct Amount {
  int64_t bytes = 0;
  size_t entries = 0;
};

/// Keeps the first twenty faults and counts the rest.
class FaultList {
 public:
  void add(const std::string& path, std::string what);
  bool empty() const { return faults_.empty(); }
  std::vector<base::Fault> to_vector() const;

 private:
  std::vector<base::Fault> faults_;
  size_t more_ = 0;
};

struct Walk {
  std::vector<ScannedEntry>
      found;  ///< in the order of a manifest; empty if there are too many entries
  Amount all;
  /// The total of each folder ("src/lib/") with everything below it, and of each file of the root.
  std::map<std::string, Amount> amounts;
  bool whole = true;  ///< false: the walk stopped early, far above the limit
  FaultList faults;   ///< entries that cannot be sent
};

/// Errors: the folder itself cannot be read.
base::Result<Walk> walk_folder(const std::filesystem::path& folder, const ScanOptions& options);

/// The error for a folder that cannot be sent: entries of the wrong kind, or too much content.
/// nullopt: all of it can be sent. Pure.
std::optional<base::Error> refusal_of(const std::filesystem::path& folder, const Walk& walk,
                                      const ScanOptions& options);

}  // namespace muster::workspace
