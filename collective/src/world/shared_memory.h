// Memory that all ranks of a host have mapped. It is an anonymous file (memfd_create), so that
// nothing of it is seen in a file system, a full or small /dev/shm does not matter, and it goes
// when the last rank has ended, however it ended.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/collective/result.h"
#include "transport/descriptor.h"

namespace muster::collective {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  /// A new file of `bytes` bytes that are zero, which cost nothing until they are touched.
  ///
  /// Errors: kSystem.
  static Result<Descriptor> create(std::uint64_t bytes);

  /// Maps all of it. Errors: kSystem.
  static Result<SharedMemory> map(Descriptor file);

  explicit operator bool() const { return base_ != nullptr; }
  std::byte* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }

  /// Sets room aside in the system's memory, so that touching it cannot fail later on.
  ///
  /// Errors: kSystem, when there is not enough of it.
  Status reserve(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  Descriptor file_;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace muster::collective
