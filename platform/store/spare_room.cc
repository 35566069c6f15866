#include "store/spare_room.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/unique_fd.h"

namespace muster::store {

namespace fs = std::filesystem;

void SpareRoom::reserve() const {
  // The room must not be what fills a small disk.
  constexpr uint64_t kLeastFree = 8 * uint64_t{kBytes};
  struct statvfs disk{};
  if (::statvfs(file_.parent_path().c_str(), &disk) != 0) return;
  if (disk.f_bavail * disk.f_frsize < kLeastFree) return;
  const base::UniqueFd fd(
      ::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return;
  if (::posix_fallocate(fd.get(), 0, kBytes) != 0) release();
}

bool SpareRoom::release() const {
  return ::unlink(file_.c_str()) == 0;
}

}  // namespace muster::store
