#include "workspace/tar_pack.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "workspace/libarchive_handle.h"
#include "workspace/path_text.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

/// A part of a file with data, between holes.
struct DataExtent {
  int64_t begin = 0;
  int64_t end = 0;
};

namespace {

constexpr size_t kTarPiece = 64 << 10;
/// In a file with more holes, the rest is treated as data.
constexpr size_t kMostExtents = 4096;
/// Opening must not wait for a pipe, acquire a controlling terminal, or follow a link.
constexpr int kReading = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

/// The kind of an entry that cannot be copied; empty: it can be.
std::string uncopyable(mode_t mode) {
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "is a device";
  if (S_ISSOCK(mode)) return "is a socket";
  if (S_ISFIFO(mode)) return "is a fifo";
  return "";
}

Error cannot_read(const std::string& path, int number) {
  if (number == ENOENT || number == ENOTDIR) {
    return {.code = ErrorCode::kNotFound, .what = "there is no " + shown(path)};
  }
  return base::system_error(shown(path) + " cannot be read", number);
}

/// The parts of a file of `size` bytes that contain data.
std::vector<DataExtent> extents_of(int fd, int64_t size) {
  std::vector<DataExtent> extents;
  int64_t at = 0;
  while (at < size && extents.size() < kMostExtents) {
    const off_t begin = ::lseek(fd, at, SEEK_DATA);
    if (begin < 0 && errno == ENXIO) return extents;  // the rest of the file is a hole
    const off_t end = begin < 0 ? -1 : ::lseek(fd, begin, SEEK_HOLE);
    if (begin < 0 || end <= begin) break;
    extents.push_back({begin, std::min<int64_t>(end, size)});
    at = end;
  }
  if (at < size) extents.push_back({at, size});
  return extents;
}

bool has_holes(const struct stat& status) {
  constexpr int64_t kBlock = 512;
  return status.st_blocks * kBlock < status.st_size;
}

/// Whether the kernel makes the content when the file is read: then the stated size is not true.
bool is_generated(int fd) {
  struct statfs system{};
  if (::fstatfs(fd, &system) != 0) return false;
  constexpr std::array<decltype(system.f_type), 4> kSystems{
      PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC};
  return std::find(kSystems.begin(), kSystems.end(), system.f_type) != kSystems.end();
}

/// A copy in memory of a generated file. Empty with errno: it cannot be read, or is too large.
UniqueFd copy_of_generated(int fd) {
  constexpr ssize_t kMostGenerated = 16 << 20;
  UniqueFd copy(::memfd_create("generated", MFD_CLOEXEC));
  std::array<char, kTarPiece> buffer;
  ssize_t size = 0;
  while (copy) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) return copy;
    if (count > 0) errno = EFBIG;
    if (count < 0 || size + count > kMostGenerated) break;
    if (::pwrite(copy.get(), buffer.data(), static_cast<size_t>(count), size) != count) break;
    size += count;
  }
  return {};
}

/// The errno of a file that can be opened but not read, as an NFS server may check the rights only
/// when a file is read. 0: its first byte can be read, or it is empty.
int first_error(int fd, const struct stat& status) {
  if (status.st_size <= 0) return 0;
  char byte = 0;
  ssize_t count = 0;
  do {
    count = ::pread(fd, &byte, 1, 0);
  } while (count < 0 && errno == EINTR);
  return count < 0 ? errno : 0;
}

/// Sorted, so that the order does not depend on the file system.
Result<std::vector<std::string>> names_in(int folder) {
  const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = own < 0 ? nullptr : ::fdopendir(own);
  if (stream == nullptr) return base::system_error("cannot be read", errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  const int failed = errno;
  ::closedir(stream);
  if (failed != 0) return base::system_error("cannot be read", failed);
  std::sort(names.begin(), names.end());
  return names;
}

std::string link_at(int folder, const std::string& name) {
  std::array<char, 4096> target;
  const ssize_t count = ::readlinkat(folder, name.c_str(), target.data(), target.size());
  return count < 0 ? "" : std::string(target.data(), static_cast<size_t>(count));
}

}  // namespace

std::string copied_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view last = path.substr(path.rfind('/') + 1);
  return last == "." || last == ".." ? "" : std::string(last);
}

class TarPacker::Packing {
 public:
  Packing(std::string path, OnCopyNote on_note)
      : path_(std::move(path)), on_note_(std::move(on_note)) {
    while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  }
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;
  /// If dropped early, the library would first pad the current file, unless it is marked as failed.
  /// A failed archive leaks its buffers unless it is closed.
  ~Packing() {
    if (!is_open_ || done_) return;
    ::archive_write_fail(tar_.get());
    ::archive_write_close(tar_.get());
  }

  Result<void> open() {
    struct stat status{};
    UniqueFd root(::open(path_.c_str(), O_PATH | O_CLOEXEC));
    if (!root || ::fstat(root.get(), &status) != 0) return cannot_read(path_, errno);
    if (const std::string what = uncopyable(status.st_mode); !what.empty()) {
      return Error{.code = ErrorCode::kInvalid,
                   .what = shown(path_) + " " + what + ": only files and folders are copied"};
    }
    // Through the descriptor, because the path may lead to another file by now.
    const std::string same = "/proc/self/fd/" + std::to_string(root.get());
    root.reset(::open(same.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!root) return cannot_read(path_, errno);
    MUSTER_CHECK(begin_tar());
    const std::string name = copied_name(path_);
    if (S_ISDIR(status.st_mode))
      return begin_folder(std::move(root), name.empty() ? "." : name, status);
    return begin_file(std::move(root), name, status);
  }

  Result<std::string_view> next() {
    if (std::exchange(handed_over_, true)) out_.clear();  // open() has begun
    while (out_.size() < kTarPiece && !done_) MUSTER_CHECK(step());
    return std::string_view(out_);
  }

  const CopyTotals& totals() const { return totals_; }

  void set_owner(uid_t user, gid_t group) {
    user_ = user;
    group_ = group;
  }

  void pad_failed_files() { pads_failed_ = true; }

 private:
  struct Level {
    UniqueFd folder;
    std::string place;  ///< of the entry
    std::vector<std::string> names;
    size_t next = 0;
  };
  struct File {
    UniqueFd fd;
    std::string place;
    std::vector<DataExtent> extents;  ///< those not yet copied
    int64_t at = 0;
    int64_t size = 0;
    bool ended = false;  ///< before its time
  };

  Result<void> begin_tar() {
    archive* const handle = tar_.get();
    ::archive_write_set_format_pax(handle);
    // Names are bytes, and must not be converted.
    ::archive_write_set_format_option(handle, "pax", "hdrcharset", "BINARY");
    ::archive_write_set_bytes_per_block(handle, 0);
    const auto take = [](archive*, void* self, const void* bytes, size_t size) -> la_ssize_t {
      static_cast<Packing*>(self)->out_.append(static_cast<const char*>(bytes), size);
      return static_cast<la_ssize_t>(size);
    };
    if (::archive_write_open(handle, this, nullptr, take, nullptr) != ARCHIVE_OK) return broken();
    is_open_ = true;
    return {};
  }

  Result<void> step() {
    if (file_.fd) return go_on_with_file();
    if (levels_.empty()) {
      done_ = true;
      return ::archive_write_close(tar_.get()) == ARCHIVE_OK ? Result<void>() : broken();
    }
    Level& level = levels_.back();
    if (level.next == level.names.size()) {
      levels_.pop_back();
      return {};
    }
    return begin_entry(level, level.names[level.next++]);
  }

  Result<void> begin_entry(const Level& level, const std::string& name) {
    const std::string place = level.place + "/" + name;
    struct stat status{};
    const int folder = level.folder.get();
    if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      // A file that was removed meanwhile counts as never present.
      return errno == ENOENT ? Result<void>() : failed(place, errno);
    }
    if (S_ISLNK(status.st_mode)) return add_link(place, link_at(folder, name), status);
    if (const std::string what = uncopyable(status.st_mode); !what.empty()) {
      on_note_({CopyNote::Kind::kSkipped, shown(path_of(place)) + " " + what});
      return {};
    }
    UniqueFd fd(::openat(folder, name.c_str(), kReading));
    if (!fd || ::fstat(fd.get(), &status) != 0) return failed(place, errno);
    if (S_ISDIR(status.st_mode)) return begin_folder(std::move(fd), place, status);
    if (S_ISREG(status.st_mode)) return begin_file(std::move(fd), place, status);
    return {};  // it was replaced a moment ago
  }

  Result<void> begin_folder(UniqueFd folder, const std::string& place, const struct stat& status) {
    const EntryHandle entry = entry_of(place + "/", status);
    MUSTER_CHECK(write(entry));
    auto names = names_in(folder.get());
    if (!names) {
      note(place, " " + names.error().what);
      return {};
    }
    levels_.push_back({.folder = std::move(folder), .place = place, .names = *std::move(names)});
    return {};
  }

  Result<void> begin_file(UniqueFd fd, const std::string& place, struct stat status) {
    // Generated files have no blocks. On NFS, is_generated() would ask the file server for each
    // file.
    if (status.st_blocks == 0 && is_generated(fd.get())) {
      UniqueFd copy = copy_of_generated(fd.get());
      struct stat of_copy{};
      if (!copy || ::fstat(copy.get(), &of_copy) != 0) return left_out(place, errno);
      status.st_size = of_copy.st_size;
      status.st_blocks = of_copy.st_blocks;
      fd = std::move(copy);
    }
    if (const int number = first_error(fd.get(), status); number != 0) {
      return left_out(place, number);
    }
    const EntryHandle entry = entry_of(place, status);
    ++totals_.files;
    if (const std::string* const first = first_name_of(status, place)) {
      ::archive_entry_set_size(entry.get(), 0);
      ::archive_entry_copy_hardlink(entry.get(), first->c_str());
      return write(entry);
    }
    File file{.fd = std::move(fd), .place = place, .size = status.st_size};
    file.extents = has_holes(status) ? extents_of(file.fd.get(), file.size)
                                     : std::vector<DataExtent>{{0, file.size}};
    if (has_holes(status)) add_holes(entry, file.extents);
    MUSTER_CHECK(write(entry));
    std::reverse(file.extents.begin(), file.extents.end());
    file_ = std::move(file);
    return {};
  }

  Result<void> add_link(const std::string& place, const std::string& target,
                        const struct stat& status) {
    if (target.empty()) return failed(place, errno);
    const EntryHandle entry = entry_of(place, status);
    ::archive_entry_copy_symlink(entry.get(), target.c_str());
    ::archive_entry_set_size(entry.get(), 0);
    ++totals_.files;
    return write(entry);
  }

  /// The place at which another name of the same file was packed.
  const std::string* first_name_of(const struct stat& status, const std::string& place) {
    if (status.st_nlink < 2) return nullptr;
    const auto [found, is_new] = first_names_.try_emplace({status.st_dev, status.st_ino}, place);
    return is_new ? nullptr : &found->second;
  }

  static void add_holes(const EntryHandle& entry, const std::vector<DataExtent>& extents) {
    for (const DataExtent& extent : extents) {
      ::archive_entry_sparse_add_entry(entry.get(), extent.begin, extent.end - extent.begin);
    }
    if (extents.empty()) ::archive_entry_sparse_add_entry(entry.get(), 0, 0);
  }

  EntryHandle entry_of(const std::string& place, const struct stat& status) const {
    EntryHandle entry(::archive_entry_new());
    ::archive_entry_copy_pathname(entry.get(), place.c_str());
    ::archive_entry_set_uid(entry.get(), user_);
    ::archive_entry_set_gid(entry.get(), group_);
    ::archive_entry_set_filetype(entry.get(), status.st_mode & S_IFMT);
    ::archive_entry_set_perm(entry.get(), status.st_mode & 07777);
    ::archive_entry_set_mtime(entry.get(), status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    if (S_ISREG(status.st_mode)) ::archive_entry_set_size(entry.get(), status.st_size);
    return entry;
  }

  Result<void> write(const EntryHandle& entry) {
    if (::archive_write_header(tar_.get(), entry.get()) < ARCHIVE_WARN) return broken();
    return {};
  }

  Result<void> go_on_with_file() {
    while (!file_.extents.empty() && file_.extents.back().end <= file_.at) file_.extents.pop_back();
    if (file_.at == file_.size) return end_file();
    // The library expects the zeros of a hole as data, and omits them itself.
    static constexpr std::array<char, kTarPiece> kZeros{};
    const int64_t data = file_.extents.empty() ? file_.size : file_.extents.back().begin;
    if (file_.ended || file_.at < data) {
      const int64_t end = file_.ended ? file_.size : data;
      return write(kZeros.data(), std::min<int64_t>(kTarPiece, end - file_.at));
    }
    std::array<char, kTarPiece> buffer;
    const int64_t most = std::min<int64_t>(kTarPiece, file_.extents.back().end - file_.at);
    const ssize_t count =
        ::pread(file_.fd.get(), buffer.data(), static_cast<size_t>(most), file_.at);
    if (count < 0 && errno == EINTR) return {};
    if (count > 0) return write(buffer.data(), count);
    const int number = errno;
    if (count < 0 && !pads_failed_) {
      Error error = base::system_error(shown(path_of(file_.place)) + " cannot be read", number);
      // The callers of next() take kNotFound for a missing target.
      if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kInternal;
      return error;
    }
    file_.ended = true;
    const std::string cause =
        count < 0 ? std::string(" cannot be read further (") + std::strerror(number) + ")"
                  : " became shorter while it was copied";
    note(file_.place, cause + ": the rest of the copy is filled with zeros");
    return {};
  }

  Result<void> write(const char* bytes, int64_t count) {
    if (::archive_write_data(tar_.get(), bytes, static_cast<size_t>(count)) != count) {
      return broken();
    }
    file_.at += count;
    totals_.bytes += count;
    return {};
  }

  Result<void> end_file() {
    file_ = {};
    return ::archive_write_finish_entry(tar_.get()) < ARCHIVE_WARN ? broken() : Result<void>();
  }

  /// A file that cannot be read has no entry. Without the named file, there would be no copy.
  Result<void> left_out(const std::string& place, int number) {
    if (place.find('/') == std::string::npos) return cannot_read(path_, number);
    return failed(place, number);
  }

  Result<void> failed(const std::string& place, int number) {
    note(place, std::string(" cannot be read: ") + std::strerror(number));
    return {};
  }

  void note(const std::string& place, const std::string& what) {
    ++totals_.failed;
    on_note_({CopyNote::Kind::kFailed, shown(path_of(place)) + what});
  }

  /// The path of an entry as the user would write it.
  std::string path_of(const std::string& place) const {
    const size_t slash = place.find('/');
    if (slash == std::string::npos) return path_;
    return (path_ == "/" ? "" : path_) + place.substr(slash);
  }

  Error broken() const {
    return {.code = ErrorCode::kInternal,
            .what = "cannot pack " + shown(path_) + ": " + last_words(tar_.get())};
  }

  std::string path_;
  OnCopyNote on_note_;
  std::string out_;
  bool handed_over_ = false;  ///< what is in it
  std::vector<Level> levels_;
  File file_;
  std::map<std::pair<dev_t, ino_t>, std::string> first_names_;
  CopyTotals totals_;
  uid_t user_ = 0;
  gid_t group_ = 0;
  bool pads_failed_ = false;
  bool is_open_ = false;
  bool done_ = false;
  ArchiveHandle tar_{::archive_write_new()};  // last: as it goes, it still writes to out_
};

TarPacker::TarPacker(std::unique_ptr<Packing> packing) : packing_(std::move(packing)) {}
TarPacker::TarPacker(TarPacker&&) noexcept = default;
TarPacker::~TarPacker() = default;

Result<TarPacker> TarPacker::open(const std::string& path, OnCopyNote on_note) {
  auto packing = std::make_unique<Packing>(path, std::move(on_note));
  MUSTER_CHECK(packing->open());
  return TarPacker(std::move(packing));
}

Result<std::string_view> TarPacker::next() {
  return packing_->next();
}

void TarPacker::set_owner(uid_t user, gid_t group) {
  packing_->set_owner(user, group);
}

void TarPacker::pad_failed_files() {
  packing_->pad_failed_files();
}

const CopyTotals& TarPacker::totals() const {
  return packing_->totals();
}

}  // namespace muster::workspace
