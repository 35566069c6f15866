// Memory for flat gradients: of the session's shared arena, where ranks of one host reduce each
// other's gradients without copying them, and of this process where the arena has no more.
#pragma once

#include <cstdint>
#include <memory>

#include "muster/collective/session.h"

namespace muster::training {

class FlatMemory {
 public:
  /// `bytes` bytes of zeros, aligned to 64. The session outlives it.
  FlatMemory(collective::Session& session, std::uint64_t bytes);
  ~FlatMemory();
  FlatMemory(const FlatMemory&) = delete;
  FlatMemory& operator=(const FlatMemory&) = delete;

  void* data() const { return data_; }

  /// Gives the memory up while operations on it are under way: the session keeps its arena until it
  /// ends, and memory of the process stays allocated.
  void abandon() { abandoned_ = true; }

 private:
  collective::Session& session_;
  void* data_;
  bool shared_;
  bool abandoned_ = false;
};

}  // namespace muster::training
