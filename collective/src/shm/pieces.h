// Walks over a list of tensors as if they lay side by side.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend.h"

namespace muster::collective::shm {

inline bool is_in_place(Pieces pieces) {
  return std::ranges::all_of(pieces, [](const Piece& piece) { return piece.in == piece.out; });
}

class PieceCursor {
 public:
  PieceCursor(Pieces pieces, std::size_t element_bytes)
      : pieces_(pieces), element_bytes_(element_bytes) {}

  /// Calls `use(in, out, count)` for each run of the next `count` elements that lies in one tensor.
  template <typename Use>
  void take(std::uint64_t count, Use use) {
    while (count > 0) {
      const Piece& piece = pieces_[index_];
      const std::uint64_t run = std::min(count, piece.count - done_);
      if (run > 0) {
        const std::uint64_t offset = done_ * element_bytes_;
        use(piece.in + offset, piece.out + offset, run);
      }
      advance(run);
      count -= run;
    }
  }

  void skip(std::uint64_t count) {
    take(count, [](const std::byte*, std::byte*, std::uint64_t) {});
  }

 private:
  void advance(std::uint64_t run) {
    done_ += run;
    if (done_ == pieces_[index_].count) {
      ++index_;
      done_ = 0;
    }
  }

  Pieces pieces_;
  std::size_t element_bytes_;
  std::size_t index_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace muster::collective::shm
