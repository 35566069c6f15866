#include "engine/process/disk_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"

namespace muster::engine {

namespace {

/// Each holds a descriptor.
constexpr int kMostDepth = 128;
constexpr int64_t kBlock = 512;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

base::UniqueFd open_folder(int parent, const char* name) {
  return base::UniqueFd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

int64_t use_of(base::UniqueFd fd, dev_t device, int depth) {
  const std::unique_ptr<DIR, CloseFolder> folder(::fdopendir(fd.get()));
  if (folder == nullptr) return 0;
  fd.release();
  int64_t sum = 0;
  while (const dirent* const entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat status{};
    const int here = ::dirfd(folder.get());
    if (::fstatat(here, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (status.st_dev != device) continue;
    sum += status.st_blocks * kBlock;
    if (!S_ISDIR(status.st_mode) || depth == kMostDepth) continue;
    if (auto inner = open_folder(here, entry->d_name)) {
      sum += use_of(std::move(inner), device, depth + 1);
    }
  }
  return sum;
}

}  // namespace

int64_t disk_use(const std::filesystem::path& folder) {
  base::UniqueFd fd = open_folder(AT_FDCWD, folder.c_str());
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) return 0;
  return use_of(std::move(fd), status.st_dev, 0);
}

}  // namespace muster::engine
