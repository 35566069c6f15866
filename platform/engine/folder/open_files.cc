#include "engine/folder/open_files.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/descriptors.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;
using base::UniqueFd;

struct OpenFiles::File {
  std::shared_ptr<OpenFiles> files;
  fs::path path;
  std::shared_ptr<const UniqueFd> open;  ///< guarded by files->mutex_, like the next member
  std::optional<Order::iterator> place;  ///< in open_, if it is open

  File(std::shared_ptr<OpenFiles> its_files, fs::path its_path)
      : files(std::move(its_files)), path(std::move(its_path)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { files->forget(*this); }
};

namespace {

constexpr int kSeldomFlags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW;

base::Error not_writable(const fs::path& path) {
  return base::system_error("cannot write '" + path.string() + "'", errno);
}

}  // namespace

const std::shared_ptr<OpenFiles>& OpenFiles::of_process() {
  constexpr int64_t kPart = 32;
  constexpr int64_t kFewest = 16;
  constexpr int64_t kMost = 4096;
  static const auto files = std::make_shared<OpenFiles>(
      static_cast<size_t>(std::clamp(base::descriptor_limit() / kPart, kFewest, kMost)));
  return files;
}

Result<std::shared_ptr<const UniqueFd>> OpenFiles::use(File& file) {
  const std::lock_guard lock(mutex_);
  if (file.place) {
    open_.splice(open_.begin(), open_, *file.place);
    return file.open;
  }
  UniqueFd opened = open_path(file.path, kSeldomFlags);
  if (!opened) return not_writable(file.path);
  keep(file, std::move(opened));
  return file.open;
}

/// If this process has no descriptor left, it gets one by closing another of these files.
///
/// REQUIRES: mutex_ is locked.
UniqueFd OpenFiles::open_path(const fs::path& path, int flags) {
  UniqueFd opened(::open(path.c_str(), flags, 0600));
  const bool is_full = !opened && errno == EMFILE && !open_.empty();
  if (!is_full) return opened;
  close_oldest();
  return UniqueFd(::open(path.c_str(), flags, 0600));
}

/// REQUIRES: mutex_ is locked.
void OpenFiles::keep(File& file, UniqueFd opened) {
  if (open_.size() >= most_) close_oldest();
  file.open = std::make_shared<const UniqueFd>(std::move(opened));
  open_.push_front(&file);
  file.place = open_.begin();
}

/// REQUIRES: mutex_ is locked, and a file is open.
void OpenFiles::close_oldest() {
  File& oldest = *open_.back();
  open_.pop_back();
  oldest.place.reset();
  oldest.open.reset();
}

void OpenFiles::forget(File& file) {
  const std::lock_guard lock(mutex_);
  if (file.place) open_.erase(*file.place);
  file.place.reset();
  file.open.reset();
}

Result<SeldomFile> SeldomFile::open(std::shared_ptr<OpenFiles> files, fs::path path,
                                    int more_flags) {
  SeldomFile made;
  made.file_ = std::make_shared<OpenFiles::File>(std::move(files), std::move(path));
  OpenFiles::File& file = *made.file_;
  const std::lock_guard lock(file.files->mutex_);
  UniqueFd opened = file.files->open_path(file.path, kSeldomFlags | O_CREAT | more_flags);
  if (!opened) return not_writable(file.path);
  file.files->keep(file, std::move(opened));
  return made;
}

Result<std::shared_ptr<const UniqueFd>> SeldomFile::descriptor() const {
  return file_->files->use(*file_);
}

void SeldomFile::renamed(fs::path path) {
  const std::lock_guard lock(file_->files->mutex_);
  file_->path = std::move(path);
}

}  // namespace muster::engine
