#include "workspace/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/random.h"

namespace muster::workspace {

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
  // Not every file system has files without a name. Whatever else is wrong is met again.
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
    // A link never takes the place of what is there: it gets a name of its own first.
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

}  // namespace muster::workspace
