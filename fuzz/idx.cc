// The files of a data set: an invalid IDX file is an error that names the file.
#include "idx.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace {

/// A file in memory with `size` bytes, and a path by which it can be opened.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size) : fd_(::memfd_create("idx", MFD_CLOEXEC)) {
    while (size > 0) {
      const ssize_t written = ::write(fd_, data, size);
      if (written <= 0) break;
      data += written;
      size -= static_cast<size_t>(written);
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const size_t images = std::min<size_t>(data[0] * size_t{8}, size - 1);
  const MemoryFile image_file(data + 1, images);
  const MemoryFile label_file(data + 1 + images, size - 1 - images);
  const auto set = muster::digits::load_images(image_file.path(), label_file.path());
  if (set && set->pixels.size() != set->size() * set->pixels_per_image()) __builtin_trap();
  return 0;
}
