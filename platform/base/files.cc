#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

namespace muster::base {

namespace fs = std::filesystem;

bool is_disk_full(const fs::path& folder) {
  constexpr uint64_t kLeastRoom = 1 << 20;
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) != 0) return false;
  const bool has_inodes = disk.f_files == 0 || disk.f_favail > 0;
  return disk.f_bavail * disk.f_frsize < kLeastRoom || !has_inodes;
}

Result<void> make_private_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0) {
    if (errno == ENOENT && path.has_parent_path() && path.parent_path() != path) {
      MUSTER_CHECK(make_private_folder(path.parent_path()));
      return make_private_folder(path);
    }
    if (errno != EEXIST) return system_error("cannot make folder '" + path.string() + "'", errno);
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return system_error("cannot look at folder '" + path.string() + "'", errno);
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
    return system_error("cannot close folder '" + path.string() + "' to others", errno);
  }
  return {};
}

Result<void> write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("cannot write", errno);
    content.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

namespace {

Result<void> write_through(const fs::path& path, std::string_view content, mode_t mode, int flags) {
  const UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | flags, mode));
  if (!fd) return system_error("cannot write '" + path.string() + "'", errno);
  // The umask may have taken bits away that were asked for.
  if (::fchmod(fd.get(), mode) != 0) {
    return system_error("cannot set the mode of '" + path.string() + "'", errno);
  }
  if (auto written = write_all(fd.get(), content); !written) {
    ::unlink(path.c_str());
    Error error = std::move(written).error();
    error.what = "cannot write '" + path.string() + "': " + error.what;
    return error;
  }
  return {};
}

}  // namespace

Result<void> write_new_file(const fs::path& path, std::string_view content, mode_t mode) {
  return write_through(path, content, mode, O_EXCL);
}

Result<void> write_file(const fs::path& path, std::string_view content, mode_t mode) {
  const std::string temporary = path.string() + ".new";
  MUSTER_CHECK(write_through(temporary, content, mode, O_TRUNC));
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return system_error("cannot rename to '" + path.string() + "'", errno);
  }
  return {};
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

}  // namespace muster::base
