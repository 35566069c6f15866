#include "base/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <limits>

namespace muster::base {

Descriptors count_descriptors() {
  Descriptors counted{.open = 0, .limit = descriptor_limit()};
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return counted;
  constexpr int64_t kNotCounted = 3;  // ".", "..", and the descriptor of this listing
  counted.open = -kNotCounted;
  while (::readdir(folder) != nullptr) ++counted.open;
  ::closedir(folder);
  return counted;
}

int64_t descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<int64_t>::max()
                                         : static_cast<int64_t>(limit.rlim_cur);
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void open_standard_streams() {
  int fd = 0;
  while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDWR);
  if (fd > STDERR_FILENO) ::close(fd);
}

}  // namespace muster::base
