// Files that are written now and then, of which only the latest are open. A server copies the logs
// of ten thousand tasks, most of which print nothing for a long time, and each open file takes one
// of the descriptors that its connections need.
//
// A file that was closed is opened again when it is next used: less than 10 us, on a local disk.
//
// Thread-safe, but for the use of one SeldomFile by two threads.
#pragma once

#include <cstddef>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

class OpenFiles {
 public:
  /// `most`: how many are open at the same time. REQUIRES: at least one.
  explicit OpenFiles(size_t most) : most_(most) {}

  /// Those of this process: at most a part of its limit of open files.
  static const std::shared_ptr<OpenFiles>& of_process();

 private:
  friend class SeldomFile;
  struct File;
  using Order = std::list<File*>;

  base::Result<std::shared_ptr<const base::UniqueFd>> use(File& file);
  base::UniqueFd open_path(const std::filesystem::path& path, int flags);
  void keep(File& file, base::UniqueFd open);
  void forget(File& file);
  void close_oldest();

  const size_t most_;
  std::mutex mutex_;
  Order open_;  ///< the latest one first
};

/// One of these files. Movable; names no file until it is opened.
class SeldomFile {
 public:
  SeldomFile() = default;

  /// Opens a file for writing, and makes it if it does not exist. `more_flags`: of open(2).
  static base::Result<SeldomFile> open(std::shared_ptr<OpenFiles> files, std::filesystem::path path,
                                       int more_flags = 0);

  /// Whether it names a file.
  explicit operator bool() const { return file_ != nullptr; }

  /// Opens the file again if it was closed. The descriptor is open as long as the result lives.
  /// Errors: those of open(2).
  base::Result<std::shared_ptr<const base::UniqueFd>> descriptor() const;

  /// The file was renamed.
  void renamed(std::filesystem::path path);

 private:
  std::shared_ptr<OpenFiles::File> file_;
};

}  // namespace muster::engine
