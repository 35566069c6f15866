// The sending and receiving side of one message between two ranks, which may use several
// connections. Neither does I/O: they determine which bytes to send and where received bytes
// belong; Exchange moves them.
//
// Ownership: refers to the program and the tracks. Thread-safety: one thread.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "call/call.h"
#include "tcp/program.h"

namespace muster::collective::tcp {

inline constexpr std::uint64_t kChunkBytes = 512 * 1024;

/// The distribution of a message over the connections between two ranks: chunk by chunk, one
/// connection after the other. A message of one chunk uses the first connection alone. Each
/// connection keeps its order; bytes of different connections may overtake each other by some
/// chunks, so prefix() counts what is complete.
class Stripes {
 public:
  Stripes(std::uint64_t total, std::size_t streams) : total_(total), next_(streams) {
    for (std::size_t i = 0; i < streams; ++i) next_[i] = i * kChunkBytes;
  }

  std::size_t streams() const { return next_.size(); }

  /// The position of the next byte on `stream`, and the number of contiguous bytes there.
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

/// The bytes of one system call. Bounded, so that sending and receiving alternate.
class Batch {
 public:
  bool add(std::byte* data, std::uint64_t bytes);  // false: full
  std::uint64_t room() const { return kMost - bytes_; }
  std::uint64_t bytes() const { return bytes_; }
  bool is_full() const { return count_ == vectors_.size() || bytes_ == kMost; }
  iovec* vectors() { return vectors_.data(); }
  std::size_t count() const { return count_; }

 private:
  static constexpr std::uint64_t kMost = 2 * kChunkBytes;

  std::array<iovec, 64> vectors_;
  std::size_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

/// The memories of a call, indexed by Space.
using Memories = std::array<Memory, 3>;
using Tracks = std::vector<std::uint64_t>;

class Sender {
 public:
  Sender(const Dialogue& dialogue, const CallHeader& header, std::size_t streams);

  /// The bytes that may go out on `stream` now.
  Batch ready(std::size_t stream, const Memories& memories, const Tracks& tracks);
  void sent(std::size_t stream, std::uint64_t bytes);

  std::uint64_t prefix() const { return stripes_.prefix(); }
  bool done() const { return header_left_ == 0 && stripes_.done(); }

 private:
  void add_payload(Batch& batch, std::size_t stream, const Memories& memories,
                   const Tracks& tracks) const;

  const Dialogue& dialogue_;
  CallHeader header_;
  std::size_t header_left_;
  Stripes stripes_;
};

/// Staged bytes go to a window: a ring of memory, small enough for the cache, in which byte x of
/// the message is at x modulo its size until a merge has consumed it.
class Receiver {
 public:
  /// `window` may be empty if nothing is staged; otherwise its length is a multiple of 8.
  Receiver(const Dialogue& dialogue, std::span<std::byte> window, std::size_t streams);

  /// Where the next bytes of `stream` belong; empty while the window waits for a merge.
  Batch room(std::size_t stream, const Memories& memories);
  void received(std::size_t stream, std::uint64_t bytes, Tracks& tracks);

  /// Null until the header is complete; until then nothing is read from the other streams.
  const CallHeader* header() const { return header_left_ == 0 ? &header_ : nullptr; }

  std::uint64_t prefix() const { return stripes_.prefix(); }
  bool done() const { return header_left_ == 0 && stripes_.done(); }

  /// The staged bytes from `position` of the message on, up to the end of the window.
  Segment staged(std::uint64_t position) const;

  /// Bytes before `position` are not needed any more.
  void consumed(std::uint64_t position) { consumed_ = position; }

 private:
  void add_payload(Batch& batch, std::size_t stream, const Memories& memories) const;
  void count_landed(Tracks& tracks);

  const Dialogue& dialogue_;
  std::span<std::byte> window_;
  CallHeader header_ = {};
  std::size_t header_left_;
  Stripes stripes_;
  std::uint64_t consumed_ = 0;
  std::size_t landing_ = 0;  // the first part that is not complete
};

}  // namespace muster::collective::tcp
