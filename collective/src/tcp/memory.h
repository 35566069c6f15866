// Memory that does not lie in one place, read and written as if it did: the tensors of a list, one
// after the other, are one buffer to the algorithms, and nothing is copied to make them one.
//
// Ownership: points into the caller's buffers. Thread-safety: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend.h"

namespace muster::collective::tcp {

/// Bytes that do lie in one place.
struct Stretch {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

class Memory {
 public:
  Memory() = default;

  /// What is only read may be given as const and is never written.
  Memory(const std::byte* data, std::uint64_t bytes);

  static Memory inputs_of(Pieces pieces, std::size_t element);
  static Memory outputs_of(Pieces pieces, std::size_t element);

  std::uint64_t bytes() const { return bytes_; }

  /// From `offset` on, as far as it is contiguous. `offset` is below bytes().
  Stretch at(std::uint64_t offset) const;

 private:
  void append(const std::byte* data, std::uint64_t bytes);

  std::vector<Stretch> stretches_;     // none of them empty
  std::vector<std::uint64_t> starts_;  // of each stretch
  std::uint64_t bytes_ = 0;
};

}  // namespace muster::collective::tcp
