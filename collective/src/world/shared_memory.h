// Memory that all ranks of a host map, and which processes can share it. The memory is an anonymous
// file (memfd_create): it needs no space in /dev/shm, leaves nothing in a file system, and
// disappears with the last process that maps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "muster/collective/result.h"
#include "transport/socket.h"

namespace muster::collective {

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  /// Creates a file of `bytes` zeros. It occupies memory only once it is written.
  ///
  /// Errors: kSystem.
  static Result<Descriptor> create(std::uint64_t bytes);

  /// Maps the whole file. Errors: kSystem.
  static Result<SharedMemory> map(Descriptor file);

  explicit operator bool() const { return base_ != nullptr; }
  std::byte* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }

  /// Allocates memory for the range, so that a later write cannot fail.
  ///
  /// Errors: kSystem, if there is not enough memory; a part of the range may then be allocated.
  Status reserve(std::uint64_t offset, std::uint64_t bytes) const;

  /// Frees the memory of a range that no rank uses.
  void release(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  Descriptor file_;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// A hash in hex that is equal for two processes if they run on one system, in one network
/// namespace and for one user, and can therefore pass memory to each other over an abstract socket.
std::string find_host_id();

/// Half of the system's memory, at most 64 GiB, at most 16 TiB for all ranks of a world of `size`
/// ranks together (with more than 1,024 ranks: 16 GiB for each), and at most what this process may
/// map for them.
std::uint64_t default_arena_bytes(int size);

/// The default of a group of some of the ranks is smaller: a process may be in many such groups. A
/// group of all ranks has the default of its world: the Python modules use it for process set 0.
inline constexpr std::uint64_t kMostOfGroupArena = std::uint64_t{4} << 30;

/// The host name of the system.
std::string host_name();

}  // namespace muster::collective
