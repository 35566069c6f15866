// Reaches what lies below a folder, name by name from its descriptor on, and follows no link on the
// way: whoever swaps a folder for a link meanwhile gets an error, not a file from elsewhere.
//
// One owner, one thread. Holds a descriptor for each folder between the root and the last place.
#pragma once

#include <dirent.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::workspace {

/// The folder itself; a link to one is followed. kNotFound, and kInvalid where it is no folder.
base::Result<base::UniqueFd> open_root(const std::filesystem::path& folder);

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

class Beneath {
 public:
  explicit Beneath(base::UniqueFd root) : root_(std::move(root)) {}

  /// The descriptor of the folder that `path` lies in, or -1 with errno. Good until the next call:
  /// places near each other share what is open.
  int parent_of(std::string_view path);

 private:
  struct Level {
    std::string name;
    base::UniqueFd folder;
  };

  base::UniqueFd root_;
  std::vector<Level> levels_;
};

/// What comes behind the last '/', as a text that system calls take.
std::string name_of(std::string_view path);

/// Where an entry of an archive lies by its name: "./a//b/" is "a/b", "./" is "". Nothing for a
/// name that leads elsewhere.
std::optional<std::string> place_beneath(std::string_view name);

}  // namespace muster::workspace
