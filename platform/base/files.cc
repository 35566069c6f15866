#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

namespace muster::base {

namespace fs = std::filesystem;

bool is_disk_full(const fs::path& folder) {
  constexpr uint64_t kLeastRoom = 1 << 20;
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) != 0) return false;
  const bool has_inodes = disk.f_files == 0 || disk.f_favail > 0;
  return disk.f_bavail * disk.f_frsize < kLeastRoom || !has_inodes;
}

namespace {

/// Creates a folder and the missing folders above it, of which none is changed that exists. Returns
/// 0, or errno.
int make_with_parents(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return 0;
  const fs::path parent = path.parent_path();
  if (errno != ENOENT || parent.empty() || parent == path) return errno;
  const int error = make_with_parents(parent);
  if (error != 0 && error != EEXIST) return error;
  return ::mkdir(path.c_str(), 0700) == 0 ? 0 : errno;
}

}  // namespace

Result<void> make_private_folder(const fs::path& path) {
  const int error = make_with_parents(path);
  if (error != 0 && error != EEXIST) {
    return system_error("cannot create folder '" + path.string() + "'", error);
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return system_error("cannot examine folder '" + path.string() + "'", errno);
  }
  if (!S_ISDIR(status.st_mode)) {
    return Error{.code = ErrorCode::kConflict, .what = "'" + path.string() + "' is not a folder"};
  }
  if (status.st_uid != ::geteuid()) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "folder '" + path.string() + "' belongs to another user",
                 .advice = "set MUSTER_STATE_DIR to a folder of your own"};
  }
  if ((status.st_mode & 0077) != 0 && ::chmod(path.c_str(), 0700) != 0) {
    return system_error("cannot make folder '" + path.string() + "' private", errno);
  }
  return {};
}

namespace {

/// Returns 0, or errno of the failed write.
int write_bytes(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

Result<void> write_through(const fs::path& path, std::string_view content, mode_t mode, int flags) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, mode));
  if (!fd) return system_error("cannot write '" + path.string() + "'", errno);
  // The umask may have removed bits of the requested mode.
  if (::fchmod(fd.get(), mode) != 0) {
    return system_error("cannot set the mode of '" + path.string() + "'", errno);
  }
  int error = write_bytes(fd.get(), content);
  // NFS reports a full disk or an exceeded quota only now.
  if (error == 0 && ::close(fd.release()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(path.c_str());
  return system_error("cannot write '" + path.string() + "'", error);
}

}  // namespace

Result<void> write_all(int fd, std::string_view content) {
  if (const int error = write_bytes(fd, content); error != 0) {
    return system_error("cannot write", error);
  }
  return {};
}

Result<void> write_new_file(const fs::path& path, std::string_view content, mode_t mode) {
  return write_through(path, content, mode, O_EXCL);
}

Result<void> write_file(const fs::path& path, std::string_view content, mode_t mode) {
  const std::string temporary = path.string() + ".new";
  MUSTER_CHECK(write_through(temporary, content, mode, O_TRUNC));
  if (::rename(temporary.c_str(), path.c_str()) == 0) return {};
  const int error = errno;
  ::unlink(temporary.c_str());
  return system_error("cannot rename to '" + path.string() + "'", error);
}

Result<std::string> read_file(const fs::path& path, size_t limit) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return system_error("cannot read '" + path.string() + "'", errno);
  std::string content;
  constexpr size_t kStep = 64 << 10;
  while (true) {
    const size_t before = content.size();
    content.resize(before + kStep);
    const ssize_t count = ::read(fd.get(), content.data() + before, kStep);
    if (count < 0 && errno != EINTR) {
      return system_error("cannot read '" + path.string() + "'", errno);
    }
    content.resize(before + static_cast<size_t>(count > 0 ? count : 0));
    if (count == 0) return content;
    if (content.size() > limit) {
      return Error{
          .code = ErrorCode::kInvalid,
          .what = "'" + path.string() + "' is larger than " + std::to_string(limit) + " bytes"};
    }
  }
}

Result<UniqueFd> lock_file(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return system_error("cannot open lock '" + path.string() + "'", errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return Error{.code = ErrorCode::kConflict,
                   .what = "'" + path.string() + "' is held by another process"};
    }
    return system_error("cannot lock '" + path.string() + "'", errno);
  }
  return fd;
}

Result<UniqueFd> await_lock(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return system_error("cannot open lock '" + path.string() + "'", errno);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return system_error("cannot lock '" + path.string() + "'", errno);
  }
  return fd;
}

// The C++ library's remove_all() holds a descriptor for each folder on the way down, and resolves
// every path from the root: a deep tree uses up a program's descriptors, and takes minutes. Here,
// folders below a maximum depth are first moved up to the root of the tree.

namespace {

constexpr int kMostDepth = 32;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

/// Opens a folder, but no link and no mount point: mounted file systems are not part of the tree.
/// (If openat2() is missing or filtered, a mount point counts as a folder.)
int open_same_mount(int parent, const char* name, int flags) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  // The path to the root of the tree may cross a mount point.
  how.resolve = parent == AT_FDCWD ? 0 : RESOLVE_NO_XDEV;
  const auto opened = static_cast<int>(::syscall(SYS_openat2, parent, name, &how, sizeof how));
  if (opened >= 0 || (errno != ENOSYS && errno != EPERM)) return opened;
  return ::openat(parent, name, static_cast<int>(how.flags));
}

/// Opens a folder; if its mode denies access to its owner, changes the mode first.
UniqueFd open_folder(int parent, const char* name) {
  UniqueFd folder(open_same_mount(parent, name, O_RDONLY));
  if (folder || errno != EACCES) return folder;
  const UniqueFd closed(open_same_mount(parent, name, O_PATH));
  if (!closed) return {};
  // fchmod() does not accept such a descriptor.
  const std::string itself = "/proc/self/fd/" + std::to_string(closed.get());
  if (::chmod(itself.c_str(), 0700) != 0) return {};
  return UniqueFd(open_same_mount(parent, name, O_RDONLY));
}

/// Every function returns whether it succeeded; errno has the reason of a failure.
class Removal {
 public:
  explicit Removal(UniqueFd root) : root_(std::move(root)) {}

  bool empty_root() {
    do {
      moved_ = false;
      if (!empty(root_.get(), 0)) return false;
    } while (moved_);
    return true;
  }

 private:
  bool empty(int folder, int depth) {
    constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int listed = ::openat(folder, ".", kFolder);
    if (listed < 0 && errno == EACCES && ::fchmod(folder, 0700) == 0) {
      listed = ::openat(folder, ".", kFolder);
    }
    const std::unique_ptr<DIR, CloseFolder> entries(::fdopendir(listed));
    if (entries == nullptr) return false;
    while (true) {
      errno = 0;
      const dirent* const entry = ::readdir(entries.get());
      if (entry == nullptr) return errno == 0;
      const std::string name = entry->d_name;
      if (name != "." && name != ".." && !remove(folder, name, depth)) return false;
    }
  }

  bool remove(int folder, const std::string& name, int depth) {
    if (unlink(folder, name, 0)) return true;
    if (errno != EISDIR) return false;
    if (depth == kMostDepth) return move_up(folder, name);
    const UniqueFd inner = open_folder(folder, name.c_str());
    return inner && empty(inner.get(), depth + 1) && unlink(folder, name, AT_REMOVEDIR);
  }

  /// A file that does not exist counts as removed.
  static bool unlink(int folder, const std::string& name, int flags) {
    if (::unlinkat(folder, name.c_str(), flags) == 0 || errno == ENOENT) return true;
    if (errno != EACCES || ::fchmod(folder, 0700) != 0) return false;
    return ::unlinkat(folder, name.c_str(), flags) == 0;
  }

  bool move_up(int folder, const std::string& name) {
    while (true) {
      const std::string place = ".removed-" + std::to_string(++count_);
      if (::renameat(folder, name.c_str(), root_.get(), place.c_str()) == 0) break;
      const bool taken = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
      // A folder that denies access to its owner cannot be moved to another parent.
      const bool opened = errno == EACCES && open_folder(folder, name.c_str()) &&
                          ::fchmod(folder, 0700) == 0 && ::fchmod(root_.get(), 0700) == 0 &&
                          !std::exchange(opened_, true);
      if (!taken && !opened) return false;
    }
    opened_ = false;
    return moved_ = true;
  }

  UniqueFd root_;
  bool moved_ = false;   ///< the root has more entries than when it was listed
  bool opened_ = false;  ///< set for each folder that is moved
  size_t count_ = 0;
};

}  // namespace

Result<void> remove_tree(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
  if (errno == EISDIR) {
    UniqueFd root = open_folder(AT_FDCWD, path.c_str());
    const bool gone =
        root ? Removal(std::move(root)).empty_root() && ::rmdir(path.c_str()) == 0 : false;
    if (gone || errno == ENOENT) return {};
  }
  return system_error("cannot remove '" + path.string() + "'", errno);
}

}  // namespace muster::base
