#include "workspace/tar_unpack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "base/random.h"
#include "workspace/beneath.h"
#include "workspace/libarchive_handle.h"
#include "workspace/path_text.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

/// A file that gets its name only when it is complete, and then replaces the old file. Until then
/// the file has no name (O_TMPFILE), so nothing is left behind if this process dies. File systems
/// without O_TMPFILE get a temporary name instead, which the destructor removes.
class NewFile {
 public:
  /// Creates the file in the folder `parent`. nullopt with errno.
  static std::optional<NewFile> open(int parent);
  NewFile(NewFile&& other) noexcept
      : parent_(std::move(other.parent_)),
        file_(std::move(other.file_)),
        own_name_(std::exchange(other.own_name_, {})) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  int fd() const { return file_.get(); }
  /// Names the file. False with errno.
  bool publish(const std::string& name);

 private:
  NewFile() = default;

  base::UniqueFd parent_;
  base::UniqueFd file_;
  std::string own_name_;  ///< temporary name; empty: none
};

/// A random name for a file that is renamed immediately afterwards.
std::string passing_name();

std::string passing_name() {
  constexpr size_t kLength = 16;
  base::SystemRandom random;
  return ".muster-" + base::random_name(random, kLength);
}

std::optional<NewFile> NewFile::open(int parent) {
  NewFile made;
  made.parent_.reset(::fcntl(parent, F_DUPFD_CLOEXEC, 0));
  if (!made.parent_) return std::nullopt;
  made.file_.reset(::openat(parent, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (made.file_) return made;
  // Some file systems do not support O_TMPFILE. Any other error will occur again here.
  made.own_name_ = passing_name();
  made.file_.reset(::openat(parent, made.own_name_.c_str(),
                            O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (made.file_) return made;
  made.own_name_.clear();
  return std::nullopt;
}

NewFile::~NewFile() {
  if (!own_name_.empty()) ::unlinkat(parent_.get(), own_name_.c_str(), 0);
}

bool NewFile::publish(const std::string& name) {
  if (own_name_.empty()) {
    // linkat() cannot replace a file, so the new file first gets a temporary name.
    std::string own = passing_name();
    const std::string path = "/proc/self/fd/" + std::to_string(file_.get());
    if (::linkat(AT_FDCWD, path.c_str(), parent_.get(), own.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      return false;
    }
    own_name_ = std::move(own);
  }
  if (::renameat(parent_.get(), own_name_.c_str(), parent_.get(), name.c_str()) != 0) return false;
  own_name_.clear();
  return true;
}

/// Where the root of the tar goes, by the table in tar_unpack.h.
struct RootPlace {
  base::UniqueFd folder;
  std::string name;        ///< in `folder`; empty: the root is `folder` itself
  bool is_target = false;  ///< `name` is the last part of the target
};

/// Finds the place without creating anything. `name`: the root's name in the tar; empty: the tar
/// has the content of a folder. kNotFound, kConflict and others: about the target.
base::Result<RootPlace> find_root_place(const std::string& target, const std::string& name,
                                        bool is_folder);

std::string_view without_slashes(std::string_view path);

namespace {

class TargetRules {
 public:
  explicit TargetRules(const std::string& target)
      : target_(target), plain_(without_slashes(target)) {}

  Result<RootPlace> place(const std::string& name, bool is_folder) const {
    struct stat status{};
    const bool there = ::stat(target_.c_str(), &status) == 0;
    if (there && S_ISDIR(status.st_mode)) return in_folder(target_, name);
    if (!there && errno != ENOENT) return cannot_use(errno);
    if (there && is_folder) {
      return Error{.code = ErrorCode::kConflict,
                   .what = shown(target_) + " is not a folder, and a folder cannot be copied there",
                   .advice = "give a folder, or a path that does not exist"};
    }
    return as_new(is_folder);
  }

 private:
  Result<RootPlace> as_new(bool is_folder) const {
    const std::string last = plain_.substr(plain_.rfind('/') + 1);
    const bool needs_folder = target_ != plain_ && !is_folder;
    if (last.empty() || last == "." || last == ".." || needs_folder) {
      return Error{.code = ErrorCode::kNotFound,
                   .what = "there is no folder " + shown_target(),
                   .advice = "create it first, or give another folder"};
    }
    const size_t slash = plain_.rfind('/');
    MUSTER_TRY(RootPlace place,
               in_folder(slash == std::string::npos ? "." : plain_.substr(0, slash + 1), last));
    place.is_target = true;
    return place;
  }

  Result<RootPlace> in_folder(const std::string& folder, const std::string& name) const {
    UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd) return RootPlace{.folder = std::move(fd), .name = name};
    if (errno != ENOENT) return cannot_use(errno);
    return Error{.code = ErrorCode::kNotFound,
                 .what = "there is no folder " + shown(folder),
                 .advice = "create it first, or give another folder"};
  }

  Error cannot_use(int number) const {
    Error error = base::system_error("cannot copy to " + shown_target(), number);
    if (number == ENOTDIR) error.code = ErrorCode::kConflict;
    return error;
  }

  /// Without the "." of "x/.", which a copy of several files adds to the path that the user typed.
  std::string shown_target() const {
    return shown(target_.ends_with("/.") ? target_.substr(0, target_.size() - 1) : target_);
  }

  std::string target_;
  std::string plain_;
};

}  // namespace

std::string_view without_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

Result<RootPlace> find_root_place(const std::string& target, const std::string& name,
                                  bool is_folder) {
  return TargetRules(target).place(name, is_folder);
}

namespace {

constexpr mode_t kKeptModes = 0777;

bool is_below(std::string_view place, std::string_view folder) {
  return place.size() > folder.size() && place.starts_with(folder) && place[folder.size()] == '/';
}

bool is_no_room(int number) {
  return number == ENOSPC || number == EDQUOT;
}

Error no_room(const std::string& path, int number) {
  Error error = base::system_error("cannot write " + shown(path), number);
  error.code = ErrorCode::kExhausted;
  error.advice = "free disk space there, then copy again; the copied files are complete";
  return error;
}

class TarUnpacking {
 public:
  TarUnpacking(const ReadTar& read, const UnpackRequest& request, const UnpackHandlers& handlers)
      : read_(read), request_(request), handlers_(handlers) {}

  Result<CopyTotals> run() {
    ::archive_read_support_format_tar(tar_.get());
    ::archive_read_support_format_empty(tar_.get());
    const auto fetch = [](archive*, void* self, const void** bytes) {
      return static_cast<TarUnpacking*>(self)->fetch(bytes);
    };
    if (::archive_read_open(tar_.get(), this, nullptr, fetch, nullptr) != ARCHIVE_OK) {
      return broken();
    }
    while (true) {
      MUSTER_TRY(archive_entry* const entry, next_entry());
      if (entry == nullptr) break;
      MUSTER_CHECK(take(entry));
      report_progress();
    }
    finish_folders();
    return totals_;
  }

 private:
  struct MadeFolder {
    std::string place;
    mode_t mode = 0;
    timespec changed{};
  };

  // --- the tar

  la_ssize_t fetch(const void** bytes) {
    const auto piece = read_();
    if (!piece) {
      read_error_ = piece.error();
      ::archive_set_error(tar_.get(), EIO, "%s", "it is incomplete");
      return ARCHIVE_FATAL;
    }
    *bytes = piece->data();
    return static_cast<la_ssize_t>(piece->size());
  }

  Result<archive_entry*> next_entry() {
    archive_entry* entry = nullptr;
    const int status = ::archive_read_next_header(tar_.get(), &entry);
    if (status == ARCHIVE_EOF) return nullptr;
    if (status < ARCHIVE_WARN) return broken();
    return entry;
  }

  Error broken() const {
    if (read_error_) return *read_error_;
    // The library gives no message for a truncated header.
    const char* const words = ::archive_error_string(tar_.get());
    const bool cut = words == nullptr || std::strstr(words, "runcated") != nullptr;
    return {.code = cut ? ErrorCode::kUnavailable : ErrorCode::kInvalid,
            .what = cut ? "the copied data ended within a file"
                        : "the copied data is not a tar: " + shown(words),
            .advice = "copy again"};
  }

  // --- an entry

  Result<void> take(archive_entry* entry) {
    const char* const name = ::archive_entry_pathname(entry);
    const auto named = name == nullptr ? std::nullopt : place_beneath(name);
    if (!named) return leads_elsewhere(name == nullptr ? "" : name);
    if (!beneath_) MUSTER_CHECK(begin(*named, entry));
    const auto place = within_root(*named);
    if (!place) return leads_elsewhere(name);
    if (!blocked_.empty() && is_below(*place, blocked_)) return {};
    if (const char* const link = ::archive_entry_hardlink(entry)) {
      return add_hard_link(*place, link);
    }
    switch (::archive_entry_filetype(entry)) {
      case AE_IFDIR:
        return add_folder(*place, entry);
      case AE_IFREG:
        return add_file(*place, entry);
      case AE_IFLNK:
        return add_link(*place, entry);
      default:
        return fail(*place, "is neither a file nor a folder nor a link");
    }
  }

  /// The first entry is the root, a file or a folder. All other entries are below it.
  Result<void> begin(const std::string& named, archive_entry* entry) {
    const bool is_link = ::archive_entry_hardlink(entry) != nullptr;
    const bool is_folder = !is_link && ::archive_entry_filetype(entry) == AE_IFDIR;
    const bool is_file = !is_link && ::archive_entry_filetype(entry) == AE_IFREG;
    const bool right =
        request_.name ? named == *request_.name : named.find('/') == std::string::npos;
    if (!right || !(is_folder || (is_file && !named.empty()))) return leads_elsewhere(named);
    root_ = named;
    MUSTER_TRY(RootPlace place, find_root_place(request_.target, named, is_folder));
    root_place_ = std::move(place.name);
    root_is_target_ = place.is_target;
    beneath_.emplace(std::move(place.folder));
    return {};
  }

  /// The place of an entry relative to the target's folder; nullopt: not below the root.
  std::optional<std::string> within_root(const std::string& named) const {
    if (named == root_) return root_place_;
    if (root_.empty()) return root_place_.empty() ? named : root_place_ + "/" + named;
    if (!is_below(named, root_)) return std::nullopt;
    return root_place_ + named.substr(root_.size());
  }

  Result<void> add_folder(const std::string& place, archive_entry* entry) {
    if (place.empty()) return {};  // the target itself, which is there
    const int parent = beneath_->parent_of(place);
    if (parent < 0) return no_way_to(place, errno);
    if (::mkdirat(parent, name_of(place).c_str(), 0700) != 0) {
      const int number = errno;
      if (number == EEXIST && is_folder(parent, name_of(place))) return {};
      blocked_ = place;
      if (number == EEXIST) return fail(place, "exists, and is not a folder");
      return failed(place, number);
    }
    folders_.push_back({.place = place,
                        .mode = ::archive_entry_perm(entry) & kKeptModes,
                        .changed = changed(entry)});
    return {};
  }

  Result<void> add_file(const std::string& place, archive_entry* entry) {
    MUSTER_TRY(const int parent, parent_for_other(place));
    if (parent < 0) return {};
    auto file = NewFile::open(parent);
    if (!file) return failed(place, errno);
    MUSTER_CHECK(write_content(place, file->fd(), entry));
    const std::array<timespec, 2> times{timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                        changed(entry)};
    ::fchmod(file->fd(), ::archive_entry_perm(entry) & kKeptModes);
    ::futimens(file->fd(), times.data());
    if (!file->publish(name_of(place))) return failed(place, errno);
    ++totals_.files;
    return {};
  }

  Result<void> write_content(const std::string& place, int fd, archive_entry* entry) {
    const int64_t before = totals_.bytes;
    while (true) {
      const void* block = nullptr;
      size_t size = 0;
      la_int64_t offset = 0;
      const int status = ::archive_read_data_block(tar_.get(), &block, &size, &offset);
      if (status == ARCHIVE_EOF) break;
      if (status < ARCHIVE_WARN) return broken();
      MUSTER_CHECK(write_at(place, fd, {static_cast<const char*>(block), size}, offset));
      totals_.bytes = before + offset + static_cast<int64_t>(size);
      report_progress();
    }
    const int64_t size = ::archive_entry_size(entry);  // a hole may come last
    if (::ftruncate(fd, size) != 0) return cannot_write(place, errno);
    totals_.bytes = before + size;
    return {};
  }

  Result<void> write_at(const std::string& place, int fd, std::string_view bytes, off_t at) const {
    while (!bytes.empty()) {
      const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), at);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return cannot_write(place, errno);
      bytes.remove_prefix(static_cast<size_t>(count));
      at += count;
    }
    return {};
  }

  Result<void> add_link(const std::string& place, archive_entry* entry) {
    MUSTER_TRY(const int parent, parent_for_other(place));
    const char* const target = ::archive_entry_symlink(entry);
    if (parent < 0) return {};
    if (target == nullptr) return fail(place, "is a link without a target");
    const std::string passing = passing_name();
    if (::symlinkat(target, parent, passing.c_str()) != 0) return failed(place, errno);
    const std::array<timespec, 2> times{timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                        changed(entry)};
    ::utimensat(parent, passing.c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
    return put_in_place(parent, passing, place);
  }

  Result<void> add_hard_link(const std::string& place, const char* target) {
    const auto named = place_beneath(target);
    const auto other = named ? within_root(*named) : std::nullopt;
    if (!other) return leads_elsewhere(target);
    const int found = beneath_->parent_of(*other);
    if (found < 0) return no_way_to(*other, errno);
    const UniqueFd folder(::fcntl(found, F_DUPFD_CLOEXEC, 0));
    MUSTER_TRY(const int parent, parent_for_other(place));
    if (parent < 0) return {};
    const std::string passing = passing_name();
    if (::linkat(folder.get(), name_of(*other).c_str(), parent, passing.c_str(), 0) != 0) {
      return failed(place, errno);
    }
    return put_in_place(parent, passing, place);
  }

  Result<void> put_in_place(int parent, const std::string& passing, const std::string& place) {
    const bool moved = ::renameat(parent, passing.c_str(), parent, name_of(place).c_str()) == 0;
    const int number = errno;
    ::unlinkat(parent, passing.c_str(), 0);  // of two names of one file, rename() leaves both
    if (!moved) return failed(place, number);
    ++totals_.files;
    return {};
  }

  /// The parent folder for a file or link; -1: there is none, or a folder is in the way.
  Result<int> parent_for_other(const std::string& place) {
    const int parent = beneath_->parent_of(place);
    if (parent < 0) {
      MUSTER_CHECK(no_way_to(place, errno));
    } else if (is_folder(parent, name_of(place))) {
      MUSTER_CHECK(fail(place, "is a folder there"));
      return -1;
    }
    return parent;
  }

  static bool is_folder(int parent, const std::string& name) {
    struct stat status{};
    return ::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode);
  }

  static timespec changed(archive_entry* entry) {
    if (::archive_entry_mtime_is_set(entry) == 0) return {.tv_sec = 0, .tv_nsec = UTIME_NOW};
    return {.tv_sec = ::archive_entry_mtime(entry), .tv_nsec = ::archive_entry_mtime_nsec(entry)};
  }

  /// Sets modes and times of folders last, and from the deepest up: a mode may close a folder to
  /// its owner, and every change in a folder updates its time.
  void finish_folders() {
    std::reverse(folders_.begin(), folders_.end());
    for (const MadeFolder& made : folders_) {
      const int folder = beneath_->parent_of(made.place + "/");
      if (folder < 0) continue;  // another process has removed it meanwhile
      const std::array<timespec, 2> times{timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                          made.changed};
      ::futimens(folder, times.data());
      ::fchmod(folder, made.mode);
    }
  }

  // --- errors

  Result<void> no_way_to(const std::string& place, int number) {
    if (number == ELOOP || number == ENOTDIR) {
      return fail(place, "is below a path that is not a folder");
    }
    return failed(place, number);
  }

  Result<void> failed(const std::string& place, int number) {
    if (is_no_room(number)) return no_room(path_of(place), number);
    return fail(place, std::string("cannot be created: ") + std::strerror(number));
  }

  Error cannot_write(const std::string& place, int number) const {
    if (is_no_room(number)) return no_room(path_of(place), number);
    return base::system_error("cannot write " + shown(path_of(place)), number);
  }

  Result<void> fail(const std::string& place, const std::string& what) {
    ++totals_.failed;
    handlers_.on_note({CopyNote::Kind::kFailed, shown(path_of(place)) + " " + what});
    return {};
  }

  static Error leads_elsewhere(std::string_view name) {
    return {.code = ErrorCode::kInvalid,
            .what = "the copied data contains " + shown(name) + ", which was not requested",
            .advice = "the copy was stopped; check the source of the data"};
  }

  /// The path of an entry as the user would write it.
  std::string path_of(const std::string& place) const {
    const std::string target(without_slashes(request_.target));
    if (root_is_target_) return target + place.substr(root_place_.size());
    return place.empty() ? target : (target == "/" ? "" : target) + "/" + place;
  }

  void report_progress() const {
    if (handlers_.on_progress) handlers_.on_progress(totals_);
  }

  const ReadTar& read_;
  const UnpackRequest& request_;
  const UnpackHandlers& handlers_;
  std::optional<Error> read_error_;
  std::string root_;        ///< its name in the tar
  std::string root_place_;  ///< and here
  bool root_is_target_ = false;
  std::optional<Beneath> beneath_;
  std::string blocked_;  ///< a folder that could not be made: what is in it goes with it
  std::vector<MadeFolder> folders_;
  CopyTotals totals_;
  ArchiveHandle tar_{::archive_read_new()};
};

}  // namespace

Result<CopyTotals> unpack_tar(const ReadTar& read, const UnpackRequest& request,
                              const UnpackHandlers& handlers) {
  return TarUnpacking(read, request, handlers).run();
}

}  // namespace muster::workspace
