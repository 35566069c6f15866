// How hand-overs reach the coordinator on rank 0, and its records all ranks: through shared memory
// on one host, else over the connections between the monitors.
//
// Thread-safety: hand_over(), notify() and bell() from any thread; the rest from the one that
// carries out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "session/bell.h"
#include "transport/bytes.h"

namespace muster::collective {
class Monitor;
}

namespace muster::collective::session {

class Channel {
 public:
  /// Rank 0's: takes in what a rank says, on any thread. True where there is something to carry
  /// out.
  using Take = std::function<bool(int from, ByteView message)>;

  virtual ~Channel() = default;

  /// Which tally a hand-over counts in: tally_of() its name (protocol.h). Nothing for what is no
  /// operation, and for what has been counted before.
  using Tally = std::optional<std::uint32_t>;

  /// To the coordinator, from a rank that is not 0. Never waits: what finds no room goes out later
  /// on.
  virtual void hand_over(ByteView message, Tally tally) = 0;

  /// On rank 0, after it has handed over by itself: wakes who carries out, where that is called
  /// for.
  virtual void notify_self(Tally tally, bool has_record) = 0;

  /// On every rank, before it says that it joins: from now on any hand-over may finish a name.
  virtual void joins() = 0;

  /// On rank 0: hands what has come to Take, where that has not been done.
  virtual void collect() = 0;
  virtual bool has_collected_all() const = 0;

  /// On rank 0: hands a record to all others. False where there is no room yet: again once the bell
  /// has rung.
  virtual bool publish(ByteView record) = 0;
  virtual bool has_room_for(ByteView record) = 0;

  /// On rank 0: before the record is published that finishes a name, which so many ranks had handed
  /// over, or that all have joined.
  virtual void finished(std::uint32_t tally, int hand_overs) = 0;
  virtual void all_joined() = 0;

  /// On other ranks: the next record.
  enum class Next { kNothing, kRecord, kDamaged, kRankZeroLeft };
  virtual Next next(Bytes& record) = 0;
  virtual bool has_next() const = 0;

  /// The last word of a rank: `message` for the coordinator, or, of rank 0, a record for all.
  virtual void leave(ByteView message) = 0;

  /// How long a hand-over may be.
  virtual std::uint64_t longest() const = 0;

  /// This rank's own.
  virtual Bell& bell() = 0;
};

/// Bytes that it needs for so many ranks, zeroed at first.
std::uint64_t least_shared_bytes(int ranks);

std::unique_ptr<Channel> shared_channel(int rank, int size, std::byte* memory, std::uint64_t bytes,
                                        const Monitor& monitor, Channel::Take take);
std::unique_ptr<Channel> message_channel(int rank, int size, Monitor& monitor, Channel::Take take);

}  // namespace muster::collective::session
