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

  /// Divides the memory, which must be zeros at first, among all pairs. `reserve` is for those parts
  /// that are used.
  MailRings(int rank, int size, std::byte* memory, std::uint64_t bytes, Reserve reserve = {});

  /// The longest letter.
  std::uint64_t longest() const { return out_.front().longest(); }

  /// Sends a letter in two parts. False if there is no room; the bell of this rank rings when the
  /// caller should try again. Also false if the memory could not be reserved.
  bool send(int to, ByteView head, ByteView body) {
    return open_to(to) && ring_to(to).write(head, body);
  }
  bool has_room_for(int to, std::uint64_t bytes) {
    return open_to(to) && ring_to(to).has_room(bytes);
  }

  /// Called before look(). False if the memory of the positions could not be reserved.
  bool open_for_reading();

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
  std::byte* place_of(int from, int to) const;
  bool open_to(int to);

  int rank_;
  int size_;
  std::byte* memory_;
  std::uint64_t bytes_of_ring_;
  Reserve reserve_;
  std::vector<char> is_open_;  // by receiver: the positions are reserved
  bool is_readable_ = false;   // those of all senders are
  std::vector<Ring> out_;      // by receiver
  std::vector<Ring> in_;       // by sender
};

}  // namespace muster::collective::session
