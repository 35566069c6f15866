// A queue of messages in shared memory: one writer, one or more readers, each of which reads all.
//
// Positions count bytes from the beginning of time, and every one has a cache line and a writer of
// its own. No locks: a process that dies halfway has not moved its position, and has written
// nothing. The memory is valid when it is all zero.
//
// Ownership: a Ring is a view; the memory outlives it. Thread-safety: one thread at a time writes,
// and one for each reader reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/bytes.h"

namespace muster::collective::session {

struct alignas(64) Position {
  std::atomic<std::uint64_t> at{0};
  std::atomic<std::uint32_t> starves{0};  // of a reader: the writer waits for it to make room
};

class Ring {
 public:
  Ring() = default;

  /// `readers` positions follow the writer's; `capacity` is a multiple of 8.
  Ring(Position* writer, Position* readers, int reader_count, std::byte* data,
       std::uint64_t capacity)
      : writer_(writer),
        readers_(readers),
        reader_count_(reader_count),
        data_(data),
        capacity_(capacity) {}

  /// The longest message that always finds room in an empty ring.
  std::uint64_t longest() const { return capacity_ / 2; }

  /// False where there is no room yet; then the reader that makes some is told so by read().
  bool write(ByteView message);
  bool has_room(std::uint64_t bytes);

  bool has_message(int reader) const {
    return readers_[reader].at.load(std::memory_order_relaxed) !=
           writer_->at.load(std::memory_order_acquire);
  }

  enum class Read { kNothing, kMessage, kDamaged };

  /// Replaces `message`. `wake_writer` is set where the writer waits for room.
  Read read(int reader, Bytes& message, bool& wake_writer);

 private:
  std::uint64_t slowest() const;
  void copy_in(std::uint64_t at, ByteView bytes);
  void copy_out(std::uint64_t at, std::byte* out, std::uint64_t bytes) const;

  Position* writer_ = nullptr;
  Position* readers_ = nullptr;
  int reader_count_ = 0;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t known_slowest_ = 0;  // the writer's: how far all readers were when it last looked
};

}  // namespace muster::collective::session
