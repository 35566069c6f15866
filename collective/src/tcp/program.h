// What one rank sends, receives and reduces in a collective, and what of it has to wait for what.
// The algorithms (plan_*.h) write programs, Exchange carries them out; neither knows the other.
//
// Between two ranks flows one message in each direction: the header of the call, then the parts in
// the order in which they were added. Both sides add them in the same order and lengths, so nothing
// but payload is on the wire. Nothing waits for the end of anything: a byte that has been reduced
// or has landed may be sent on at once, and all algorithms are pipelines as deep as the sockets'
// buffers (cut-through instead of store-and-forward).
//
// Pure: a program names places in three memories, it does not touch them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/kernel.h"

namespace muster::collective::tcp {

/// The caller's input and output, and room that the collective needs for itself.
enum class Space : std::uint8_t { kIn, kOut, kSpare };

struct Range {
  Space space = Space::kIn;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Tracks count the bytes of a part that are there, from its beginning.
using Track = int;
inline constexpr Track kReady = -1;  // there from the start

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

/// Stored where `range` says, or else staged for a merge. In a message, what is staged comes before
/// what is stored.
struct Incoming {
  bool staged = false;
  Range range;              // staged: only its length counts
  Track track = kReady;     // stored: how much of it has landed
  std::uint64_t begin = 0;  // in the message
};

/// All that passes between this rank and one other.
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

/// An input of a merge: a place in memory, or what another rank sends.
struct Source {
  int dialogue = -1;        // staged: from this one
  std::uint64_t begin = 0;  // staged: where in its message
  Range range;              // in memory: where
  After after;              // in memory: once it is there

  bool staged() const { return dialogue >= 0; }
};

/// A part of a message that has to be out before its place in memory is written.
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
  /// `peer` is sent a header at least, or sends one.
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

}  // namespace muster::collective::tcp
