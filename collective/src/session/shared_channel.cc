// The channel in shared memory.
//
//   head      whether rank 0 has left, how many ranks have joined
//   bells     one a rank
//   tallies   by a hash of the name: how many hand-overs have not been carried out yet
//   log       a ring that rank 0 writes and all others read
//   rings     of each other rank, read by rank 0
//
// The tallies are but a hint: they save the coordinator from being woken for each name that is not
// complete yet, the first time as well as any other. What counts is what stands in the rings. Names
// that share a tally add up, so that now and then it is woken for nothing. A hand-over may be
// carried out before its rank has come to count it: a tally may be less than 0 for a moment.
#include <algorithm>
#include <deque>
#include <mutex>
#include <thread>

#include "control/monitor.h"
#include "session/channel.h"
#include "session/ring.h"

namespace muster::collective::session {
namespace {

constexpr std::uint64_t kTallies = 65'536;
constexpr std::uint64_t kLeastRing = 16 << 10;

struct alignas(64) Head {
  std::atomic<std::uint32_t> rank_zero_left{0};
  std::atomic<std::uint32_t> joined{0};
};

// Hands out parts of the memory, each on a cache line of its own.
class Divider {
 public:
  Divider(std::byte* memory, std::uint64_t bytes) : memory_(memory), bytes_(bytes) {}

  template <typename T>
  T* take(std::uint64_t count) {
    auto* const taken = reinterpret_cast<T*>(memory_ + used_);
    used_ += (count * sizeof(T) + 63) / 64 * 64;
    return taken;
  }
  std::uint64_t left() const { return bytes_ - used_; }

 private:
  std::byte* memory_;
  std::uint64_t bytes_;
  std::uint64_t used_ = 0;
};

struct Places {
  Head* head;
  Bell* bells;
  std::atomic<std::int32_t>* tallies;
  Ring log;
  std::vector<Ring> rings;  // by rank; none of rank 0

  Places(int size, std::byte* memory, std::uint64_t bytes) {
    const auto ranks = static_cast<std::uint64_t>(size);
    Divider divider(memory, bytes);
    head = divider.take<Head>(1);
    bells = divider.take<Bell>(ranks);
    tallies = divider.take<std::atomic<std::int32_t>>(kTallies);
    auto* const log_writer = divider.take<Position>(1);
    auto* const log_readers = divider.take<Position>(ranks);
    auto* const ring_writers = divider.take<Position>(ranks);
    auto* const ring_readers = divider.take<Position>(ranks);
    const std::uint64_t log_bytes = divider.left() / 4 / 64 * 64;
    // The log has a reader for each rank but 0.
    log =
        Ring(log_writer, log_readers + 1, size - 1, divider.take<std::byte>(log_bytes), log_bytes);
    const std::uint64_t ring_bytes = divider.left() / ranks / 64 * 64;
    rings.emplace_back();
    for (std::uint64_t rank = 1; rank < ranks; ++rank) {
      rings.emplace_back(ring_writers + rank, ring_readers + rank, 1,
                         divider.take<std::byte>(ring_bytes), ring_bytes);
    }
  }
};

class SharedChannel final : public Channel {
 public:
  SharedChannel(int rank, int size, std::byte* memory, std::uint64_t bytes, const Monitor& monitor,
                Take take)
      : rank_(rank),
        size_(size),
        places_(size, memory, bytes),
        monitor_(monitor),
        take_(std::move(take)) {}

  void hand_over(ByteView message, Tally tally) override {
    {
      const std::lock_guard lock(writing_);
      send_backlog();
      if (!backlog_.empty() || !mine().write(message)) {
        backlog_.emplace_back(message.begin(), message.end());
        static_cast<void>(may_finish(tally));
        places_.bells[0].notify(true);
        return;
      }
    }
    places_.bells[0].notify(may_finish(tally));
  }

  void notify_self(Tally tally, bool has_record) override {
    // Others' hand-overs may lie in the rings still: the tally knows of them.
    const bool finishes = tally && may_finish(tally);
    places_.bells[0].notify(has_record || finishes);
  }

  void joins() override { places_.head->joined.fetch_add(1); }
  void all_joined() override { places_.head->joined.store(0); }

  void collect() override {
    for (int from = 1; from < size_; ++from) {
      Ring& ring = places_.rings[static_cast<std::size_t>(from)];
      bool wake_writer = false;
      while (true) {
        const Ring::Read read = ring.read(0, message_, wake_writer);
        if (read == Ring::Read::kNothing) break;
        if (read == Ring::Read::kDamaged) {
          take_(from, {});  // no message: the world fails
          break;
        }
        take_(from, message_);
      }
      if (wake_writer) places_.bells[from].ring();
    }
  }

  bool has_collected_all() const override {
    for (std::size_t from = 1; from < places_.rings.size(); ++from) {
      if (places_.rings[from].has_message(0)) return false;
    }
    return true;
  }

  bool publish(ByteView record) override {
    if (!places_.log.write(record)) return false;
    for (int to = 1; to < size_; ++to) places_.bells[to].notify(true);
    return true;
  }
  bool has_room_for(ByteView record) override { return places_.log.has_room(record.size()); }

  void finished(std::uint32_t tally, int hand_overs) override {
    places_.tallies[tally % kTallies].fetch_sub(hand_overs);
  }

  Next next(Bytes& record) override {
    {
      const std::lock_guard lock(writing_);
      if (send_backlog()) places_.bells[0].notify(true);
    }
    // Rank 0 leaves after its last record.
    const bool left = places_.head->rank_zero_left.load(std::memory_order_acquire) != 0;
    bool wake_writer = false;
    const Ring::Read read = places_.log.read(rank_ - 1, record, wake_writer);
    if (wake_writer) places_.bells[0].ring();
    if (read == Ring::Read::kMessage) return Next::kRecord;
    if (read == Ring::Read::kDamaged) return Next::kDamaged;
    return left ? Next::kRankZeroLeft : Next::kNothing;
  }

  bool has_next() const override {
    return places_.log.has_message(rank_ - 1) ||
           places_.head->rank_zero_left.load(std::memory_order_acquire) != 0;
  }

  void leave(ByteView message) override {
    if (rank_ == 0) {
      places_.head->rank_zero_left.store(1, std::memory_order_release);
      for (int to = 1; to < size_; ++to) places_.bells[to].notify(true);
      return;
    }
    // Almost always there is room. Nothing tells when rank 0 has read, so this asks again, for a
    // second at most: rank 0 may be in a call that this rank will not come to, and learns of that
    // from the monitor.
    constexpr int kTries = 1000;
    const std::lock_guard lock(writing_);
    for (int tries = 0; tries < kTries; ++tries) {
      send_backlog();
      if (backlog_.empty() && mine().write(message)) break;
      if (monitor_.failed() || places_.head->rank_zero_left.load() != 0) return;
      places_.bells[0].notify(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    places_.bells[0].notify(true);
  }

  std::uint64_t longest() const override {
    return std::min(places_.rings.back().longest(), places_.log.longest() / 2);
  }

  Bell& bell() override { return places_.bells[rank_]; }

 private:
  Ring& mine() { return places_.rings[static_cast<std::size_t>(rank_)]; }

  // Whether, after this hand-over, the coordinator could have something to carry out. A rank joins
  // before it says so, and hand-overs are written before this is read: one of the two is noticed.
  bool may_finish(Tally tally) {
    if (!tally) return true;
    const std::int32_t counted = places_.tallies[*tally % kTallies].fetch_add(1) + 1;
    return counted >= size_ || places_.head->joined.load() != 0;
  }

  // True where something went out. With writing_ held.
  bool send_backlog() {
    bool sent = false;
    while (!backlog_.empty() && mine().write(backlog_.front())) {
      backlog_.pop_front();
      sent = true;
    }
    return sent;
  }

  int rank_;
  int size_;
  Places places_;
  const Monitor& monitor_;
  Take take_;
  std::mutex writing_;
  std::deque<Bytes> backlog_;
  Bytes message_;
};

}  // namespace

std::uint64_t least_shared_bytes(int ranks) {
  const auto n = static_cast<std::uint64_t>(ranks);
  return kTallies * 4 + n * (5 * 64 + kLeastRing) * 4 / 3 + 4096;
}

std::unique_ptr<Channel> shared_channel(int rank, int size, std::byte* memory, std::uint64_t bytes,
                                        const Monitor& monitor, Channel::Take take) {
  return std::make_unique<SharedChannel>(rank, size, memory, bytes, monitor, std::move(take));
}

}  // namespace muster::collective::session
