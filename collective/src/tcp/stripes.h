// How a message is spread over the connections between two ranks: in chunks, one connection after
// the other. A message of one chunk uses the first alone. Each connection keeps its order; across
// them bytes may overtake each other by some chunks, so what is in order is counted by prefix().
//
// Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace muster::collective::tcp {

inline constexpr std::uint64_t kChunkBytes = 512 * 1024;

class Stripes {
 public:
  Stripes(std::uint64_t total, std::size_t streams) : total_(total), next_(streams) {
    for (std::size_t i = 0; i < streams; ++i) next_[i] = i * kChunkBytes;
  }

  std::size_t streams() const { return next_.size(); }

  /// The next byte that goes over `stream`, and how many follow it there without a gap.
  std::uint64_t position(std::size_t stream) const { return next_[stream]; }
  std::uint64_t run(std::size_t stream) const {
    const std::uint64_t position = next_[stream];
    if (position >= total_) return 0;
    if (next_.size() == 1) return total_ - position;
    return std::min(total_ - position, kChunkBytes - position % kChunkBytes);
  }

  /// At most run().
  void advance(std::size_t stream, std::uint64_t bytes) {
    next_[stream] += bytes;
    const bool at_border = next_[stream] % kChunkBytes == 0;
    if (bytes > 0 && at_border) next_[stream] += (next_.size() - 1) * kChunkBytes;
  }

  /// All bytes before this one have been moved.
  std::uint64_t prefix() const { return std::min(total_, std::ranges::min(next_)); }
  bool done() const { return prefix() == total_; }

 private:
  std::uint64_t total_;
  std::vector<std::uint64_t> next_;
};

}  // namespace muster::collective::tcp
