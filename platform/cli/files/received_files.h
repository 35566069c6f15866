// Files that come from a server, into a folder of this machine. What the server calls them is not
// trusted: none gets out of the folder, whatever its name, and whatever links lie there.
//
// A file comes in under a name of its own and is renamed when it is whole. What was cut off stays
// under that name, and is gone on with where the same content is to come again.
//
// I/O; blocking. One owner, one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "workspace/left_files.h"

namespace muster::cli::files {

using base::Result;

struct ExpectedFile {
  std::string path;  ///< relative, as the server has it
  int64_t bytes = 0;
  base::Time modified;
  std::string sha256;  ///< empty: not known
};

class ReceivedFiles;

/// One on its way.
class ReceivedFile {
 public:
  /// What is here already.
  int64_t bytes() const { return bytes_; }
  Result<void> put(std::string_view bytes);
  /// Forgets what has come.
  Result<void> begin_anew();
  /// Checks it and gives it its name. kInternal: it is not what was expected; begun anew.
  Result<void> keep();

 private:
  friend class ReceivedFiles;

  ExpectedFile expected_;
  int root_ = -1;          ///< of the ReceivedFiles, which must outlive it
  base::UniqueFd parent_;  ///< the folder that it belongs in
  std::string part_;       ///< its name in the root while it is not whole
  base::UniqueFd fd_;
  int64_t bytes_ = 0;
  workspace::Sha256 sha_;
};

class ReceivedFiles {
 public:
  /// Makes the folder where it is missing.
  static Result<ReceivedFiles> open(const std::filesystem::path& folder);

  /// Whether the very same is here under its name already. False where its sum is not known.
  bool has(const ExpectedFile& file) const;

  /// kInvalid: its path would lead out of the folder. kConflict: something is in its way.
  Result<ReceivedFile> receive(const ExpectedFile& file);

 private:
  explicit ReceivedFiles(base::UniqueFd root) : root_(std::move(root)) {}

  base::UniqueFd root_;
};

}  // namespace muster::cli::files
