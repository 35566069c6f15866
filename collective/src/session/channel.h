// The channel between the ranks of a session and the coordinator on rank 0: hand-overs go to the
// coordinator, records go to all ranks. On one host the channel is rings in shared memory,
// otherwise the connections between the monitors.
//
// Doorbell wakes a rank; Ring is a queue in shared memory; Channel is the interface with its two
// implementations.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "transport/bytes.h"
#include "transport/socket.h"

namespace muster::collective::session {

enum class Attention : std::uint32_t {
  kAsleep = 0,   // ring for any data
  kPatient = 1,  // sleeps with a deadline that is early enough to report stalls: ring only if an
                 // operation is complete
  kAwake = 2,    // checks for data by itself
};

/// Wakes a rank. It lies in shared memory or in a process's own memory.
///
/// A writer first publishes its data, then reads the rank's attention, and rings only if the rank
/// is not awake. A rank that goes to sleep first stores its attention and then checks for data once
/// more. Both use a read-modify-write on the same word, so that one of them sees the effect of the
/// other. No wake-up is lost, and no system call is made unless a rank sleeps.
///
/// Thread-safety: all methods, from any thread of any process. No lock is taken, so a process that
/// dies cannot block others. A Doorbell of zeros is valid.
struct alignas(64) Doorbell {
  std::atomic<std::uint32_t> rung{0};
  std::atomic<std::uint32_t> attention{0};
  std::atomic<std::uint32_t> letters{0};  // counts news in the rank's mail rings (mail_rings.h)

  /// Wakes the rank if necessary. `finished`: the published data completes an operation.
  void notify(bool finished) {
    const auto now = static_cast<Attention>(attention.fetch_or(0, std::memory_order_acq_rel));
    if (now == Attention::kAwake || (now == Attention::kPatient && !finished)) return;
    ring();
  }
  void ring();

  /// A letter has come, or a ring that was full has room.
  void notify_of_mail() {
    letters.fetch_add(1, std::memory_order_release);
    notify(true);
  }

  void attend() {
    attention.exchange(static_cast<std::uint32_t>(Attention::kAwake), std::memory_order_acq_rel);
  }
  void rest(Attention how) {
    attention.exchange(static_cast<std::uint32_t>(how), std::memory_order_acq_rel);
  }

  /// The argument of wait(). Read it before checking for data and for the end.
  std::uint32_t count() const { return rung.load(std::memory_order_acquire); }

  /// Sleeps until a ring after count() returned `seen`, or until the deadline.
  void wait(std::uint32_t seen, std::optional<Deadline> until);
};

/// Sleeps while `word` is `value`, at most until the deadline. May return early.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::optional<Deadline> until);
void futex_wake(std::atomic<std::uint32_t>& word, int sleepers);

}  // namespace muster::collective::session

namespace muster::collective {

class Monitor;
}  // namespace muster::collective

namespace muster::collective::session {

/// Reserves shared memory before it is used for the first time: an access to memory that is not
/// available, also a read, would kill the process with SIGBUS. False: there is not enough memory,
/// and the world has failed. Null: all of the memory is available already.
using Reserve = std::function<bool(const std::byte* begin, std::uint64_t bytes)>;

/// Thread-safety: hand_over(), notify_self() and bell() from any thread; the other methods from the
/// thread on duty.
class Channel {
 public:
  /// On rank 0: receives a message of a rank, on any thread, and the time of its hand-over; between
  /// hosts, the time of its arrival. Returns whether an operation is ready.
  using Take = std::function<bool(int from, ByteView message, Deadline handed_over)>;

  virtual ~Channel() = default;

  /// The counter of a hand-over: tally_of() its name (protocol.h). Empty for messages that are not
  /// operations, and for operations that are counted already.
  using Tally = std::optional<std::uint32_t>;

  /// Sends a message to the coordinator, from a rank other than 0. Never waits: if there is no
  /// room, the message is sent later.
  virtual void hand_over(ByteView message, Tally tally) = 0;

  /// On rank 0, after its own hand-over: wakes the thread on duty if necessary.
  virtual void notify_self(Tally tally, bool has_record) = 0;

  /// On every rank, before its join message: from now on any hand-over may complete a name.
  virtual void joins() = 0;

  /// On rank 0: passes received messages to Take.
  virtual void collect() = 0;
  virtual bool has_collected_all() const = 0;

  /// On rank 0: sends a record to all other ranks. False if there is no room; the bell rings when
  /// the caller should try again.
  virtual bool publish(ByteView record) = 0;
  virtual bool has_room_for(ByteView record) = 0;

  /// On rank 0, before publish(): the record completes a name that `hand_overs` ranks had handed
  /// over, or reports that all ranks have joined.
  virtual void finished(std::uint32_t tally, int hand_overs) = 0;
  virtual void all_joined() = 0;

  /// On other ranks: sends hand-overs that found no room, and reads the next record.
  enum class Next { kNothing, kRecord, kDamaged, kRankZeroLeft };
  virtual Next next(Bytes& record) = 0;

  /// Whether next() has anything to read or to send.
  virtual bool has_next() = 0;

  /// Sends the last message of a rank: to the coordinator, or from rank 0 a record to all.
  virtual void leave(ByteView message) = 0;

  /// The maximum length of a hand-over.
  virtual std::uint64_t longest() const = 0;

  /// The doorbell of this rank.
  virtual Doorbell& bell() = 0;

  /// The doorbell of another rank; null if it is not in shared memory.
  virtual Doorbell* bell_of(int rank) = 0;
};

/// The size of the shared memory for `ranks` ranks, which must be zeros at first.
std::uint64_t least_shared_bytes(int ranks);

/// The part at its beginning that must be reserved before the channel is made; the channel reserves
/// its rings as far as they are used.
std::uint64_t first_shared_bytes(int ranks);

std::unique_ptr<Channel> shared_channel(int rank, int size, std::byte* memory, std::uint64_t bytes,
                                        const Monitor& monitor, Channel::Take take,
                                        const Reserve& reserve = {});
std::unique_ptr<Channel> message_channel(int rank, int size, Monitor& monitor, Channel::Take take);

struct alignas(64) Position {
  std::atomic<std::uint64_t> at{0};
  std::atomic<std::uint32_t> starves{0};  // of a reader: the writer waits for it to free space
};

/// A queue of messages in shared memory with one writer and one or more readers, each of which
/// reads all messages.
///
/// Positions count bytes since the creation of the ring; each has its own cache line and its own
/// writer. No locks: a process that dies halfway has not moved its position, and has written
/// nothing. Memory of zeros is a valid empty ring.
///
/// Ownership: a Ring is a view; the memory outlives it. Thread-safety: one writing thread at a
/// time, and one reading thread for each reader.
class Ring {
 public:
  Ring() = default;

  /// `readers` positions follow the writer's, and are reserved; `capacity` is a multiple of 8.
  Ring(Position* writer, Position* readers, int reader_count, std::byte* data,
       std::uint64_t capacity, Reserve reserve = {})
      : writer_(writer),
        readers_(readers),
        reader_count_(reader_count),
        data_(data),
        capacity_(capacity),
        occupied_(reserve ? 0 : capacity),
        reserve_(std::move(reserve)) {}

  /// The longest message that fits in an empty ring.
  std::uint64_t longest() const { return capacity_ / 2; }

  /// False if there is no room. Then read() of the reader that frees space reports that the writer
  /// waits. Also false if the memory could not be reserved.
  bool write(ByteView message) { return write(message, {}); }
  bool has_room(std::uint64_t bytes);

  /// Writes one message, given in two parts.
  bool write(ByteView head, ByteView body);

  bool has_message(int reader) const {
    return readers_[reader].at.load(std::memory_order_relaxed) !=
           writer_->at.load(std::memory_order_acquire);
  }

  enum class Read { kNothing, kMessage, kDamaged };

  /// Reads into `message`. Sets `wake_writer` if the writer waits for room.
  Read read(int reader, Bytes& message, bool& wake_writer);

  /// The same in steps, for a reader that copies from the ring to where the bytes belong. look()
  /// finds the next message and its length; copy_next() copies a part of it; pop() removes it, and
  /// returns whether the writer waits for room.
  Read look(int reader, std::uint64_t& bytes) const;
  void copy_next(int reader, std::uint64_t offset, std::byte* out, std::uint64_t bytes) const;
  bool pop(int reader);

 private:
  std::uint64_t slowest() const;
  bool occupy(std::uint64_t end);
  void copy_in(std::uint64_t at, ByteView bytes);
  void copy_out(std::uint64_t at, std::byte* out, std::uint64_t bytes) const;

  Position* writer_ = nullptr;
  Position* readers_ = nullptr;
  int reader_count_ = 0;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t known_slowest_ = 0;  // the slowest reader's position when the writer last looked
  std::uint64_t occupied_ = 0;       // the writer's: bytes of data_ that are reserved
  Reserve reserve_;
};

}  // namespace muster::collective::session
