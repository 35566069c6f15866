#include "workspace/beneath.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "workspace/path_text.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

base::Result<UniqueFd> open_root(const std::filesystem::path& folder) {
  UniqueFd root(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (root) return root;
  if (errno == ENOTDIR) {
    return Error{.code = ErrorCode::kInvalid, .what = shown(folder.native()) + " is not a folder"};
  }
  return base::system_error("cannot open folder " + shown(folder.native()), errno);
}

int Beneath::parent_of(std::string_view path) {
  size_t depth = 0;
  while (true) {
    const size_t slash = path.find('/');
    if (slash == std::string_view::npos) break;
    const std::string_view name = path.substr(0, slash);
    if (depth == levels_.size() || levels_[depth].name != name) {
      levels_.resize(depth);
      Level level{.name = std::string(name), .folder = {}};
      const int above = depth == 0 ? root_.get() : levels_.back().folder.get();
      level.folder.reset(
          ::openat(above, level.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!level.folder) return -1;
      levels_.push_back(std::move(level));
    }
    ++depth;
    path.remove_prefix(slash + 1);
  }
  return depth == 0 ? root_.get() : levels_[depth - 1].folder.get();
}

std::string name_of(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::optional<std::string> place_beneath(std::string_view name) {
  if (name.starts_with('/')) return std::nullopt;
  std::string place;
  while (!name.empty()) {
    const size_t end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") return std::nullopt;
    if (!place.empty()) place += '/';
    place += part;
  }
  return place;
}

FileState::FileState(const struct stat& status)
    : device(status.st_dev),
      inode(status.st_ino),
      bytes(status.st_size),
      changed(int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec) {}

}  // namespace muster::workspace
