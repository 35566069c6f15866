#include "engine/disk_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <memory>
#include <string_view>

#include "base/unique_fd.h"

namespace muster::engine {

namespace {

/// Each level of the recursion holds a descriptor.
constexpr int kMostDepth = 256;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

base::UniqueFd open_folder(int parent, const char* name) {
  return base::UniqueFd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// A subvolume of btrfs has a device of its own and is no mount. The kernel reports the root of a
/// mount since Linux 5.8; before, each folder with another device counts as a mount.
bool is_mount(int parent, const char* name) {
  struct statx facts{};
  constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
  if (::statx(parent, name, kFlags, STATX_TYPE, &facts) != 0) return true;
  if ((facts.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0) return true;
  return (facts.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

void add_content(base::UniqueFd fd, dev_t device, int depth,
                 const std::function<void(const FileId&)>& met, DiskUse& use) {
  const std::unique_ptr<DIR, CloseFolder> folder(::fdopendir(fd.get()));
  if (folder == nullptr) return;
  fd.release();
  while (const dirent* const entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    struct stat facts{};
    const int here = ::dirfd(folder.get());
    if (::fstatat(here, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
    // On overlay file systems, files may have another device than their folder.
    const bool has_other_device = S_ISDIR(facts.st_mode) && facts.st_dev != device;
    if (has_other_device && is_mount(here, entry->d_name)) continue;
    use.bytes += int64_t{512} * facts.st_blocks;
    if (met) met({facts.st_dev, facts.st_ino});
    if (!S_ISDIR(facts.st_mode)) continue;
    if (depth == kMostDepth) {
      use.is_too_deep = true;
    } else if (auto inner = open_folder(here, entry->d_name)) {
      add_content(std::move(inner), facts.st_dev, depth + 1, met, use);
    }
  }
}

}  // namespace

DiskUse disk_use(const std::string& folder, const std::function<void(const FileId&)>& met) {
  DiskUse use;
  base::UniqueFd fd = open_folder(AT_FDCWD, folder.c_str());
  struct stat facts{};
  if (!fd || ::fstat(fd.get(), &facts) != 0) return use;
  add_content(std::move(fd), facts.st_dev, 0, met, use);
  return use;
}

}  // namespace muster::engine
