// The files that programs have left in a folder to which they may still write: listed, opened, and
// summed up. Nothing there is trusted: no link is followed, and nothing is opened that is no file,
// for a pipe may never answer and a device may act on being opened.
//
// I/O; blocking. Thread-safe (no state), but for Summing, which has one owner.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "workspace/file_state.h"
#include "workspace/sha256.h"

namespace muster::workspace {

struct LeftFile {
  /// kFolder: one that cannot be looked into, its path with a '/' behind it; those that can are not
  /// listed, what is in them is.
  enum class Kind { kFile, kLink, kFolder, kPipe, kSocket, kDevice };
  std::string path;  ///< relative, '/' between names, any other bytes
  Kind kind = Kind::kFile;
  int64_t bytes = 0;  ///< of a file
  base::Time modified;
  FileState state;
};

struct LeftFiles {
  std::vector<LeftFile> files;  ///< by path, bytewise
  bool whole = true;            ///< false: more follow the last, or its folders hold too much
};

struct LookFor {
  std::string prefix;  ///< only paths that begin so
  std::string after;   ///< only paths behind this one
  size_t most = 5000;
};

/// A folder that is not there holds nothing. Errors: it cannot be read.
base::Result<LeftFiles> list_left(const std::filesystem::path& folder, const LookFor& wanted);

struct OpenedFile {
  base::UniqueFd fd;
  FileState state;
  base::Time modified;
};

/// kInvalid: `path` is none within a folder. kNotFound: nothing is there. kConflict: it is no file.
base::Result<OpenedFile> open_left(const std::filesystem::path& folder, std::string_view path);

/// The SHA-256 of a file, so many bytes at a time.
class Summing {
 public:
  explicit Summing(OpenedFile file) : file_(std::move(file)) {}

  /// Reads on, `most` bytes at most. Whether that was the end.
  bool go_on(size_t most);
  /// Once it has come to the end: the sum; nothing where the file was changed meanwhile, or could
  /// not be read.
  std::optional<std::string> sum();

 private:
  OpenedFile file_;
  Sha256 sha_;
  int64_t taken_ = 0;
  bool broken_ = false;
};

/// So many bytes from there, fewer only at the end of the file.
base::Result<std::string> read_at(const base::UniqueFd& file, int64_t offset, size_t most);

}  // namespace muster::workspace
