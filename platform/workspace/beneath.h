// Opens files below a folder, name by name from the folder's descriptor on, and follows no link on
// the way. If someone replaces a folder by a link meanwhile, the result is an error and never a
// file from elsewhere.
//
// One owner, one thread. A Beneath holds a descriptor for each folder between the root and the
// latest place.
#pragma once

#include <dirent.h>
#include <sys/stat.h>

#include <compare>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::workspace {

/// Opens the folder itself; a link to a folder is followed. kNotFound; kInvalid: it is not a
/// folder.
base::Result<base::UniqueFd> open_root(const std::filesystem::path& folder);

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

class Beneath {
 public:
  explicit Beneath(base::UniqueFd root) : root_(std::move(root)) {}

  /// The descriptor of the folder that contains `path`, or -1 with errno. Valid until the next
  /// call: neighbouring places share open folders.
  int parent_of(std::string_view path);

 private:
  struct Level {
    std::string name;
    base::UniqueFd folder;
  };

  base::UniqueFd root_;
  std::vector<Level> levels_;
};

/// The part of `path` after the last '/', as a string for system calls.
std::string name_of(std::string_view path);

/// The relative place that an archive's entry name means: "./a//b/" is "a/b", "./" is "". nullopt
/// for a name that leads out of the archive.
std::optional<std::string> place_beneath(std::string_view name);

/// Identifies a version of a file: two equal states mean that the file was not changed in between.
struct FileState {
  dev_t device = 0;
  ino_t inode = 0;
  int64_t bytes = 0;
  int64_t changed = 0;  ///< ctime in nanoseconds: every write moves it, and no program can set it

  FileState() = default;
  explicit FileState(const struct stat& status);
  auto operator<=>(const FileState&) const = default;
};

}  // namespace muster::workspace
