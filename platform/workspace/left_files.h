// The files that programs left in a folder to which they may still write, such as a job's
// artifacts: listing, opening and checksums. Nothing in the folder is trusted: no link is followed,
// and only regular files are opened, because a pipe may never answer and opening a device may have
// effects.
//
// I/O; blocking. Thread-safe (no state), except for Summing and Sha256, which have one owner.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "workspace/beneath.h"

namespace muster::workspace {

struct LeftFile {
  /// kFolder: a folder that cannot be read; its path ends with '/'. A readable folder is not listed
  /// itself, but its content is.
  enum class Kind { kFile, kLink, kFolder, kPipe, kSocket, kDevice };
  std::string path;  ///< relative, '/' between names, any other bytes
  Kind kind = Kind::kFile;
  int64_t bytes = 0;  ///< size of a regular file
  base::Time modified;
  FileState state;
};

struct LeftFiles {
  std::vector<LeftFile> files;  ///< by path, bytewise
  /// False: more files follow, or a folder has too many entries. In the second case, the list ends
  /// before the content of that folder.
  bool whole = true;
};

/// Which part of a listing to return.
struct LookFor {
  std::string prefix;  ///< only paths that begin with it
  std::string after;   ///< only paths that sort after it
  size_t most = 5000;
  /// The limit of entries for one listing, because their names are sorted in memory. An entry that
  /// cannot match the prefix is only read, and counts a tenth.
  size_t most_entries = 1'000'000;
};

/// A folder that does not exist has no files. Errors: it cannot be read.
base::Result<LeftFiles> list_left(const std::filesystem::path& folder, const LookFor& query);

struct OpenedFile {
  base::UniqueFd fd;
  FileState state;
  base::Time modified;
};

/// kInvalid: `path` is not a relative path within a folder. kNotFound: no such file. kConflict: it
/// is not a regular file.
base::Result<OpenedFile> open_left(const std::filesystem::path& folder, std::string_view path);

/// Up to `most` bytes from `offset`; fewer only at the end of the file.
base::Result<std::string> read_at(const base::UniqueFd& file, int64_t offset, size_t most);

/// An incremental SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void put(std::string_view bytes);
  /// 64 hexadecimal digits. Call once, last.
  std::string digest();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The SHA-256 of a file, computed in steps so that other work can run in between.
class Summing {
 public:
  explicit Summing(OpenedFile file) : file_(std::move(file)) {}

  /// Whether the file has changed since it was opened: there will be no checksum.
  bool has_changed() const;
  /// Reads `most` more bytes. Returns true at the end of the file.
  bool go_on(size_t most);
  /// REQUIRES: go_on() returned true. nullopt: the file changed meanwhile, or could not be read.
  std::optional<std::string> sum();

  const OpenedFile& file() const { return file_; }
  OpenedFile take_file() && { return std::move(file_); }

 private:
  OpenedFile file_;
  Sha256 sha_;
  int64_t taken_ = 0;
  bool broken_ = false;
};

}  // namespace muster::workspace
