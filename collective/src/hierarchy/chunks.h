// A list of tensors cut into chunks: parts of one tensor where it is long, several tensors together
// where they are short.
//
// Pure: points into the caller's buffers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tcp/memory.h"

namespace muster::collective {

/// Elements from `begin` on. Where they lie in one place, `in` and `out` are it; otherwise both are
/// null, and the chunk is packed before and unpacked afterwards.
struct Chunk {
  std::uint64_t begin = 0;  // in bytes
  std::uint64_t bytes = 0;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

class Chunks {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{4} << 20;

  Chunks(Pieces pieces, std::size_t element)
      : in_(tcp::Memory::inputs_of(pieces, element)),
        out_(tcp::Memory::outputs_of(pieces, element)) {}

  std::uint64_t bytes() const { return in_.bytes(); }

  /// The chunk that begins at `begin`, which is below bytes().
  Chunk at(std::uint64_t begin) const {
    const tcp::Stretch in = in_.at(begin);
    const std::uint64_t rest = std::min(kBytes, in_.bytes() - begin);
    const bool is_worth_it = in.bytes >= kBytes / 16 || in.bytes >= rest;
    if (!is_worth_it) return {begin, rest};
    return {begin, std::min(kBytes, in.bytes), in.data, out_.at(begin).data};
  }

  const tcp::Memory& in() const { return in_; }
  const tcp::Memory& out() const { return out_; }

 private:
  tcp::Memory in_;
  tcp::Memory out_;
};

}  // namespace muster::collective
