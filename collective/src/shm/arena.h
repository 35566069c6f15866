// One rank's part of the arenas: memory that the other ranks of the host have mapped too, handed
// out in pieces. First fit; neighbours that are free become one again.
//
// What is handed out is set aside in the system's memory first, so that there is an answer when
// there is none, and not a signal when it is touched.
//
// Thread-safety: all methods, from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "world/shared_memory.h"

namespace muster::collective::shm {

class Arena {
 public:
  /// `bytes` bytes of `memory` from `offset` on; none of them for an Arena that has nothing to
  /// give.
  Arena(const SharedMemory& memory, std::uint64_t offset, std::uint64_t bytes);

  /// Aligned to 64 bytes. Null where there is no room.
  void* allocate(std::uint64_t bytes);

  /// Of what is not from here, or null, nothing happens.
  void free(void* place);

 private:
  bool set_aside(std::uint64_t end);

  const SharedMemory& memory_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> free_;  // offset -> bytes
  std::map<std::uint64_t, std::uint64_t> used_;
  std::uint64_t set_aside_until_;
};

}  // namespace muster::collective::shm
