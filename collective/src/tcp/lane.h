// The two directions of a dialogue, on their way: what may be sent now, where the next received
// bytes belong. Neither does I/O: Exchange moves the bytes.
//
// A lane that stages bytes has a window: a ring of memory, small enough for the cache, in which
// byte x of the message lies at x modulo its size until a merge has consumed it.
//
// Ownership: refers to the program and the tracks. Thread-safety: one thread.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "call/call.h"
#include "tcp/memory.h"
#include "tcp/program.h"
#include "tcp/stripes.h"

namespace muster::collective::tcp {

/// What one system call moves. Bounded, so that sending and receiving take turns.
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

/// By Space.
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

class Receiver {
 public:
  /// `window` may be empty where nothing is staged; else its length is a multiple of 8.
  Receiver(const Dialogue& dialogue, std::span<std::byte> window, std::size_t streams);

  /// Room for what comes next on `stream`; none where it has to wait for a merge.
  Batch room(std::size_t stream, const Memories& memories);
  void received(std::size_t stream, std::uint64_t bytes, Tracks& tracks);

  /// Once it is complete: until then nothing is read from the other streams.
  const CallHeader* header() const { return header_left_ == 0 ? &header_ : nullptr; }

  std::uint64_t prefix() const { return stripes_.prefix(); }
  bool done() const { return header_left_ == 0 && stripes_.done(); }

  /// Staged bytes from byte `position` of the message on, as far as the window does not wrap.
  Stretch staged(std::uint64_t position) const;

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
