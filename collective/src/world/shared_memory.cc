#include "world/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "transport/socket.h"

namespace muster::collective {

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::move(other.file_)),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

Result<Descriptor> SharedMemory::create(std::uint64_t bytes) {
  Descriptor file(::memfd_create("muster-collective", MFD_CLOEXEC));
  if (!file) return system_error("cannot create shared memory", errno);
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    return system_error("cannot size shared memory", errno);
  }
  return file;
}

Result<SharedMemory> SharedMemory::map(Descriptor file) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return system_error("cannot size shared memory", errno);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  void* const base =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (base == MAP_FAILED) return system_error("cannot map shared memory", errno);
  // Fewer misses of the address cache on large tensors; a system without it says no, and is right.
  ::madvise(base, bytes, MADV_HUGEPAGE);
  SharedMemory memory;
  memory.file_ = std::move(file);
  memory.base_ = static_cast<std::byte*>(base);
  memory.bytes_ = bytes;
  return memory;
}

Status SharedMemory::reserve(std::uint64_t offset, std::uint64_t bytes) const {
  if (::fallocate(file_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) {
    return {};
  }
  return system_error("cannot set aside " + std::to_string(bytes) + " bytes of shared memory",
                      errno);
}

}  // namespace muster::collective
