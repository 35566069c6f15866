// The way of letters between the ranks of one host: a ring in shared memory for each ordered pair of
// ranks. A letter is copied into the ring and out of it, and no system call is made unless the other
// rank sleeps. How the two ends wake each other: Doorbell in channel.h.
//
// Ownership: a view; the memory outlives it. Thread-safety: one thread at a time sends to a rank, and
// one thread at a time reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "session/channel.h"
#include "transport/bytes.h"

namespace muster::collective::session {

class MailRings {
 public:
  /// The least memory for `ranks` ranks.
  static std::uint64_t least_bytes(int ranks);

  /// Divides the memory, which must be zeros at first, among all pairs.
  MailRings(int rank, int size, std::byte* memory, std::uint64_t bytes);

  /// The longest letter.
  std::uint64_t longest() const { return out_.front().longest(); }

  /// Sends a letter in two parts. False if there is no room; the bell of this rank rings when the
  /// caller should try again.
  bool send(int to, ByteView head, ByteView body) { return ring_to(to).write(head, body); }
  bool has_room_for(int to, std::uint64_t bytes) { return ring_to(to).has_room(bytes); }

  /// Finds the oldest letter of a rank and its length; it stays in the ring until pop().
  Ring::Read look(int from, std::uint64_t& bytes) const { return ring_from(from).look(0, bytes); }

  /// Copies a part of the letter that look() has found.
  void copy(int from, std::uint64_t offset, std::byte* out, std::uint64_t bytes) const {
    ring_from(from).copy_next(0, offset, out, bytes);
  }

  /// Removes the oldest letter. Returns whether its sender waits for room.
  bool pop(int from) { return in_[static_cast<std::size_t>(from)].pop(0); }

 private:
  const Ring& ring_from(int from) const { return in_[static_cast<std::size_t>(from)]; }
  Ring& ring_to(int to) { return out_[static_cast<std::size_t>(to)]; }

  std::vector<Ring> out_;  // by receiver
  std::vector<Ring> in_;   // by sender
};

}  // namespace muster::collective::session
