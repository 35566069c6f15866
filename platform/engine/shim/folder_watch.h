// Tells which files of a few folders have changed, for one who waits for that.
//
// The kernel lets a user have few watches (fs.inotify.max_user_instances, 128 for all containers of
// root together). Where it has none left, all is said to have changed a few times a second.
//
// Not thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "base/unique_fd.h"

namespace muster::engine {

class FolderWatch {
 public:
  /// What has changed in a folder.
  struct Changes {
    bool all = false;  ///< or more than names tell
    std::set<std::string> names;

    bool has(const std::string& name) const { return all || names.count(name) > 0; }
  };

  /// `asks_kernel`: false in tests of the other way.
  explicit FolderWatch(bool asks_kernel = true);

  /// Readable when something has changed since the last take() of any folder. Before a wait for it,
  /// ask has_changes(): take() of one folder also reads the changes of the others, and after that
  /// the descriptor is silent about them.
  int descriptor() const { return inotify_ ? inotify_.get() : timer_.get(); }

  /// False: it is not there (yet). At first, all in it has changed.
  bool add(const std::filesystem::path& folder);

  /// Since the last call; nothing of a folder that was not added.
  Changes take(const std::filesystem::path& folder);

  /// Whether there are changes that were read from the kernel and not taken.
  bool has_changes() const;

 private:
  void read();
  void take_turns();

  base::UniqueFd inotify_;
  base::UniqueFd timer_;  ///< in its place
  std::map<int, std::filesystem::path> folders_;
  std::map<std::filesystem::path, Changes> changes_;
};

}  // namespace muster::engine
