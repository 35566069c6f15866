// Programs: what one rank sends, receives and reduces in a collective, and in which order. The
// algorithms (plan.h) write programs, Exchange executes them; neither depends on the other.
//
// Two ranks exchange one message in each direction: the header of the call, then the parts in the
// order in which they were added. Both sides add parts of the same lengths in the same order, so
// the wire carries payload only. A byte that has been reduced or received may be sent at once, so
// all algorithms are pipelines as deep as the buffers of the sockets (cut-through instead of
// store-and-forward).
//
// Pure: a program refers to ranges of three memories, and does not access them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "backend.h"
#include "kernels/kernel.h"

namespace muster::collective::tcp {

/// The caller's input and output, and the scratch memory of the collective.
enum class Space : std::uint8_t { kIn, kOut, kSpare };

struct Range {
  Space space = Space::kIn;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// A track counts the available bytes of a part, from its beginning.
using Track = int;
inline constexpr Track kReady = -1;  // available from the start

/// Byte x waits until the track has reached offset + x.
struct After {
  Track track = kReady;
  std::uint64_t offset = 0;
};

struct Outgoing {
  Range range;
  After after;
  std::uint64_t begin = 0;  // in the message
};

/// A received part: stored at `range`, or staged for a merge. In a message, staged parts precede
/// stored parts.
struct Incoming {
  bool staged = false;
  Range range;              // staged: only its length is used
  Track track = kReady;     // stored: counts the received bytes
  std::uint64_t begin = 0;  // in the message
};

/// The messages between this rank and one other rank.
struct Dialogue {
  int peer = 0;
  bool sends = false;
  bool receives = false;
  std::vector<Outgoing> out = {};
  std::vector<Incoming> in = {};
  std::uint64_t out_bytes = 0;
  std::uint64_t in_bytes = 0;
  std::uint64_t staged_bytes = 0;
};

/// An input of a merge: a range in memory, or staged bytes of another rank.
struct Source {
  int dialogue = -1;        // staged: from this dialogue
  std::uint64_t begin = 0;  // staged: position in its message
  Range range;              // in memory: its range
  After after;              // in memory: when it is available

  bool staged() const { return dialogue >= 0; }
};

/// A part of a message that must be sent before its memory is overwritten.
struct Unsent {
  int dialogue = 0;
  std::uint64_t begin = 0;
};

/// out = kernel(sources), element by element, in the order of the sources.
struct Merge {
  std::vector<Source> sources;
  Range out;
  const Kernel* kernel = nullptr;
  std::vector<Unsent> overwrites = {};
  Track track = kReady;  // bytes of `out` that are done
};

class Program {
 public:
  /// Sends a header to `peer`, or receives one from it, even without payload.
  void greet(int peer);
  void expect(int peer);

  /// Adds to the message to `peer`.
  Unsent send(int peer, Range range, After after = {});

  /// Adds to the message from `peer`.
  Track store(int peer, Range range);
  Source stage(int peer, std::uint64_t bytes);

  Track merge(std::vector<Source> sources, Range out, const Kernel& kernel,
              std::vector<Unsent> overwrites = {});

  static Source local(Range range, After after = {}) {
    return {.dialogue = -1, .begin = 0, .range = range, .after = after};
  }

  std::deque<Dialogue> dialogues = {};
  std::vector<Merge> merges = {};
  std::uint64_t spare_bytes = 0;
  int tracks = 0;

 private:
  int dialogue_with(int peer);
};

/// Contiguous bytes.
struct Segment {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

/// A list of tensors as one buffer, without a copy: the algorithms address the tensors as if they
/// were contiguous.
///
/// Ownership: points into the caller's buffers. Thread-safety: immutable.
class Memory {
 public:
  Memory() = default;

  /// A buffer that is only read may be const.
  Memory(const std::byte* data, std::uint64_t bytes);

  static Memory inputs_of(Pieces pieces, std::size_t element);
  static Memory outputs_of(Pieces pieces, std::size_t element);

  std::uint64_t bytes() const { return bytes_; }

  /// The contiguous bytes from `offset` on. `offset` is below bytes().
  Segment at(std::uint64_t offset) const;

 private:
  void append(const std::byte* data, std::uint64_t bytes);

  std::vector<Segment> stretches_;     // not empty
  std::vector<std::uint64_t> starts_;  // of each stretch
  std::uint64_t bytes_ = 0;
};

}  // namespace muster::collective::tcp
