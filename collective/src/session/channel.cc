#include "session/channel.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <deque>
#include <mutex>
#include <span>
#include <thread>

#include "control/monitor.h"

namespace muster::collective::session {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

}  // namespace

// The futex is not private, since the word may lie in memory that processes share. The deadline is
// an absolute time of the monotonic clock, which steady_clock is.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value,
                std::optional<Deadline> until) {
  timespec time = {};
  if (until) {
    const auto since_start = until->time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_start);
    time.tv_sec = static_cast<time_t>(seconds.count());
    time.tv_nsec = static_cast<long>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(since_start - seconds).count());
  }
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, value, until ? &time : nullptr, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(std::atomic<std::uint32_t>& word, int sleepers) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, sleepers, nullptr, nullptr, 0);
}

void Doorbell::ring() {
  rung.fetch_add(1, std::memory_order_release);
  futex_wake(rung, INT_MAX);
}

void Doorbell::wait(std::uint32_t seen, std::optional<Deadline> until) {
  while (rung.load(std::memory_order_acquire) == seen && (!until || Clock::now() < *until)) {
    futex_wait(rung, seen, until);
  }
}

namespace {

constexpr std::uint64_t kPrefix = 8;  // the length; messages begin at multiples of it

std::uint64_t room_for(std::uint64_t bytes) {
  return kPrefix + (bytes + kPrefix - 1) / kPrefix * kPrefix;
}

}  // namespace

std::uint64_t Ring::slowest() const {
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < reader_count_; ++i) {
    least = std::min(least, readers_[i].at.load(std::memory_order_acquire));
  }
  return least;
}

bool Ring::has_room(std::uint64_t bytes) {
  const std::uint64_t end = writer_->at.load(std::memory_order_relaxed) + room_for(bytes);
  if (end - known_slowest_ <= capacity_) return true;
  known_slowest_ = slowest();
  if (end - known_slowest_ <= capacity_) return true;
  // Announces that the writer waits, and looks once more: a reader first frees space, and then
  // looks for a waiting writer.
  for (int i = 0; i < reader_count_; ++i) readers_[i].starves.exchange(1);
  known_slowest_ = slowest();
  return end - known_slowest_ <= capacity_;
}

// A ring occupies memory only as far as it has been used. Doubles at least, so that there are few
// system calls.
bool Ring::occupy(std::uint64_t end) {
  const std::uint64_t needed = std::min(end, capacity_);
  if (needed <= occupied_) return true;
  constexpr std::uint64_t kLeast = 2048;  // with the positions in one page
  const std::uint64_t goal = std::min(std::bit_ceil(std::max(needed, kLeast)), capacity_);
  if (!reserve_(data_ + occupied_, goal - occupied_)) return false;
  occupied_ = goal;
  return true;
}

bool Ring::write(ByteView head, ByteView body) {
  const std::uint64_t length = head.size() + body.size();
  if (!has_room(length)) return false;
  const std::uint64_t at = writer_->at.load(std::memory_order_relaxed);
  if (!occupy(at + room_for(length))) return false;
  copy_in(at, std::as_bytes(std::span(&length, 1)));
  copy_in(at + kPrefix, head);
  copy_in(at + kPrefix + head.size(), body);
  writer_->at.store(at + room_for(length), std::memory_order_release);
  return true;
}

Ring::Read Ring::look(int reader, std::uint64_t& length) const {
  const std::uint64_t at = readers_[reader].at.load(std::memory_order_relaxed);
  const std::uint64_t written = writer_->at.load(std::memory_order_acquire);
  if (at == written) return Read::kNothing;
  copy_out(at, reinterpret_cast<std::byte*>(&length), sizeof length);
  return length > capacity_ || room_for(length) > written - at ? Read::kDamaged : Read::kMessage;
}

Ring::Read Ring::read(int reader, Bytes& message, bool& wake_writer) {
  std::uint64_t length = 0;
  const Read found = look(reader, length);
  if (found != Read::kMessage) return found;
  message.resize(length);
  copy_next(reader, 0, message.data(), length);
  if (pop(reader)) wake_writer = true;
  return Read::kMessage;
}

void Ring::copy_next(int reader, std::uint64_t offset, std::byte* out, std::uint64_t bytes) const {
  const std::uint64_t at = readers_[reader].at.load(std::memory_order_relaxed);
  copy_out(at + kPrefix + offset, out, bytes);
}

bool Ring::pop(int reader) {
  Position& mine = readers_[reader];
  const std::uint64_t at = mine.at.load(std::memory_order_relaxed);
  std::uint64_t length = 0;
  copy_out(at, reinterpret_cast<std::byte*>(&length), sizeof length);
  mine.at.store(at + room_for(length), std::memory_order_release);
  return mine.starves.exchange(0, std::memory_order_acq_rel) != 0;
}

void Ring::copy_in(std::uint64_t at, ByteView bytes) {
  if (bytes.empty()) return;
  const std::uint64_t begin = at % capacity_;
  const std::uint64_t first = std::min<std::uint64_t>(bytes.size(), capacity_ - begin);
  std::memcpy(data_ + begin, bytes.data(), first);
  if (first < bytes.size()) std::memcpy(data_, bytes.data() + first, bytes.size() - first);
}

void Ring::copy_out(std::uint64_t at, std::byte* out, std::uint64_t bytes) const {
  if (bytes == 0) return;
  const std::uint64_t begin = at % capacity_;
  const std::uint64_t first = std::min(bytes, capacity_ - begin);
  std::memcpy(out, data_ + begin, first);
  if (first < bytes) std::memcpy(out + first, data_, bytes - first);
}

// The channel in shared memory.
//
//   head      whether rank 0 has left, how many ranks have joined
//   bells     one for each rank
//   tallies   by a hash of the name: the number of hand-overs that have not been executed yet
//   log       a ring that rank 0 writes and all other ranks read
//   rings     one for each other rank, read by rank 0. Before each message stands the time at which
//             it was handed over, i64 nanoseconds: rank 0 may read it much later
//
// The tallies are only a hint: they save the coordinator from being woken for each name that is not
// complete yet. The messages in the rings are authoritative. Names that share a tally add up, so
// that the coordinator is sometimes woken without need. A hand-over may be executed before its rank
// has counted it, so a tally may be negative for a moment.
namespace {

constexpr std::uint64_t kTallies = 65'536;
constexpr std::uint64_t kLeastRing = 16 << 10;

// A later time can only be damage, and sums with it might overflow.
constexpr std::int64_t kLatestTime = std::int64_t{1} << 62U;

using HandOverTime = std::chrono::nanoseconds::rep;

// The steady clock is the same in all processes of a host.
HandOverTime time_of_hand_over() {
  return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
}

struct alignas(64) Head {
  std::atomic<std::uint32_t> rank_zero_left{0};
  std::atomic<std::uint32_t> joined{0};
};

// Divides the memory into parts, each of which begins on a cache line of its own.
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
  Doorbell* bells;
  std::atomic<std::int32_t>* tallies;
  Ring log;
  std::vector<Ring> rings;  // by rank; rank 0 has none

  Places(int size, std::byte* memory, std::uint64_t bytes, const Reserve& reserve) {
    const auto ranks = static_cast<std::uint64_t>(size);
    Divider divider(memory, bytes);
    head = divider.take<Head>(1);
    bells = divider.take<Doorbell>(ranks);
    tallies = divider.take<std::atomic<std::int32_t>>(kTallies);
    auto* const log_writer = divider.take<Position>(1);
    auto* const log_readers = divider.take<Position>(ranks);
    auto* const ring_writers = divider.take<Position>(ranks);
    auto* const ring_readers = divider.take<Position>(ranks);
    const std::uint64_t log_bytes = divider.left() / 4 / 64 * 64;
    // Every rank except rank 0 reads the log.
    log = Ring(log_writer, log_readers + 1, size - 1, divider.take<std::byte>(log_bytes), log_bytes,
               reserve);
    const std::uint64_t ring_bytes = divider.left() / ranks / 64 * 64;
    rings.emplace_back();
    for (std::uint64_t rank = 1; rank < ranks; ++rank) {
      rings.emplace_back(ring_writers + rank, ring_readers + rank, 1,
                         divider.take<std::byte>(ring_bytes), ring_bytes, reserve);
    }
  }
};

class SharedChannel final : public Channel {
 public:
  SharedChannel(int rank, int size, std::byte* memory, std::uint64_t bytes, const Monitor& monitor,
                Take take, const Reserve& reserve)
      : rank_(rank),
        size_(size),
        places_(size, memory, bytes, reserve),
        monitor_(monitor),
        take_(std::move(take)) {}

  void hand_over(ByteView message, Tally tally) override {
    const HandOverTime time = time_of_hand_over();
    const ByteView head = std::as_bytes(std::span(&time, 1));
    {
      const std::lock_guard lock(writing_);
      send_backlog();
      if (!backlog_.empty() || !mine().write(head, message)) {
        Bytes& waiting = backlog_.emplace_back(head.begin(), head.end());
        waiting.insert(waiting.end(), message.begin(), message.end());
        has_backlog_ = true;
        // Rank 0 may have freed room, and rung, before has_next() could see this message.
        send_backlog();
        static_cast<void>(may_finish(tally));
        places_.bells[0].notify(true);
        return;
      }
    }
    places_.bells[0].notify(may_finish(tally));
  }

  void notify_self(Tally tally, bool has_record) override {
    // Hand-overs of other ranks may still lie in the rings; the tally counts them.
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
        HandOverTime time = -1;
        if (read == Ring::Read::kMessage && message_.size() >= sizeof time) {
          std::memcpy(&time, message_.data(), sizeof time);
        }
        if (time < 0 || time > kLatestTime) {
          take_(from, {}, {});  // no message: the world fails
          break;
        }
        take_(from, ByteView(message_).subspan(sizeof time),
              Deadline(std::chrono::nanoseconds(time)));
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

  bool has_next() override {
    if (places_.log.has_message(rank_ - 1)) return true;
    if (places_.head->rank_zero_left.load(std::memory_order_acquire) != 0) return true;
    if (!has_backlog_) return false;
    const std::lock_guard lock(writing_);
    return !backlog_.empty() && mine().has_room(backlog_.front().size());
  }

  void leave(ByteView message) override {
    if (rank_ == 0) {
      places_.head->rank_zero_left.store(1, std::memory_order_release);
      for (int to = 1; to < size_; ++to) places_.bells[to].notify(true);
      return;
    }
    // There is almost always room. No event reports that rank 0 has read, so this polls, for a
    // second at most: rank 0 may be in a call that this rank will not enter, and the monitor
    // reports that to rank 0.
    constexpr int kTries = 1000;
    const HandOverTime time = time_of_hand_over();
    const std::lock_guard lock(writing_);
    for (int tries = 0; tries < kTries; ++tries) {
      send_backlog();
      if (backlog_.empty() && mine().write(std::as_bytes(std::span(&time, 1)), message)) break;
      if (monitor_.failed() || places_.head->rank_zero_left.load() != 0) return;
      places_.bells[0].notify(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    places_.bells[0].notify(true);
  }

  std::uint64_t longest() const override {
    return std::min(places_.rings.back().longest() - sizeof(HandOverTime),
                    places_.log.longest() / 2);
  }

  Doorbell& bell() override { return places_.bells[rank_]; }
  Doorbell* bell_of(int rank) override { return &places_.bells[rank]; }

 private:
  Ring& mine() { return places_.rings[static_cast<std::size_t>(rank_)]; }

  // Whether the coordinator may be able to complete an operation after this hand-over. A rank sets
  // `joined` before it sends its join message, and hand-overs are counted before `joined` is read,
  // so that one of the two is noticed.
  bool may_finish(Tally tally) {
    if (!tally) return true;
    const std::int32_t counted = places_.tallies[*tally % kTallies].fetch_add(1) + 1;
    return counted >= size_ || places_.head->joined.load() != 0;
  }

  // Returns whether it sent anything. Requires writing_.
  bool send_backlog() {
    bool sent = false;
    while (!backlog_.empty() && mine().write(backlog_.front())) {
      backlog_.pop_front();
      sent = true;
    }
    if (sent && backlog_.empty()) has_backlog_ = false;
    return sent;
  }

  int rank_;
  int size_;
  Places places_;
  const Monitor& monitor_;
  Take take_;
  std::mutex writing_;
  std::deque<Bytes> backlog_;             // that found no room in the ring, with their times
  std::atomic<bool> has_backlog_{false};  // changed with writing_
  Bytes message_;
};

}  // namespace

std::uint64_t least_shared_bytes(int ranks) {
  const auto n = static_cast<std::uint64_t>(ranks);
  return kTallies * 4 + n * (5 * 64 + kLeastRing) * 4 / 3 + 4096;
}

// All before the log.
std::uint64_t first_shared_bytes(int ranks) {
  const auto n = static_cast<std::uint64_t>(ranks);
  const std::uint64_t positions = (1 + 3 * n) * sizeof(Position);
  return sizeof(Head) + n * sizeof(Doorbell) + kTallies * sizeof(std::int32_t) + positions;
}

std::unique_ptr<Channel> shared_channel(int rank, int size, std::byte* memory, std::uint64_t bytes,
                                        const Monitor& monitor, Channel::Take take,
                                        const Reserve& reserve) {
  return std::make_unique<SharedChannel>(rank, size, memory, bytes, monitor, std::move(take),
                                         reserve);
}

// The channel over the monitors' connections, between hosts. On rank 0 the monitor's thread
// receives hand-overs. On every rank records are queued until a thread executes them.
namespace {

// A longer message is rejected here, before a monitor refuses to send it.
constexpr std::uint64_t kLongestMessage = 256 << 10;

// Shared with the monitor's handler, which may be processing a message when the channel ends.
struct Inbox {
  Doorbell bell;
  std::mutex mutex;
  bool open = true;
  Channel::Take take;
  std::deque<Bytes> records;
};

class MessageChannel final : public Channel {
 public:
  MessageChannel(int rank, int size, Monitor& monitor, Take take)
      : rank_(rank), size_(size), monitor_(monitor), inbox_(std::make_shared<Inbox>()) {
    inbox_->take = std::move(take);
    if (rank_ == 0) {
      monitor_.handle(Topic::kSession, [inbox = inbox_](int from, const Bytes& payload) {
        const std::lock_guard lock(inbox->mutex);
        if (inbox->open) inbox->bell.notify(inbox->take(from, payload, Clock::now()));
      });
      return;
    }
    monitor_.handle(Topic::kSession, [inbox = inbox_](int from, Bytes payload) {
      const std::lock_guard lock(inbox->mutex);
      if (!inbox->open || from != 0) return;
      inbox->records.push_back(std::move(payload));
      inbox->bell.notify(true);
    });
  }

  ~MessageChannel() override {
    monitor_.handle(Topic::kSession, {});
    const std::lock_guard lock(inbox_->mutex);
    inbox_->open = false;
  }

  void hand_over(ByteView message, Tally /*tally*/) override { send(0, message); }
  void notify_self(Tally /*tally*/, bool has_record) override { inbox_->bell.notify(has_record); }
  void joins() override {}
  void all_joined() override {}
  void collect() override {}
  bool has_collected_all() const override { return true; }

  bool publish(ByteView record) override {
    for (int to = 1; to < size_; ++to) send(to, record);
    return true;
  }
  bool has_room_for(ByteView /*record*/) override { return true; }
  void finished(std::uint32_t /*tally*/, int /*hand_overs*/) override {}

  Next next(Bytes& record) override {
    const std::lock_guard lock(inbox_->mutex);
    if (inbox_->records.empty()) return Next::kNothing;
    record = std::move(inbox_->records.front());
    inbox_->records.pop_front();
    return Next::kRecord;
  }
  bool has_next() override {
    const std::lock_guard lock(inbox_->mutex);
    return !inbox_->records.empty();
  }

  void leave(ByteView message) override {
    if (rank_ == 0) {
      publish(message);
    } else {
      send(0, message);
    }
  }

  std::uint64_t longest() const override { return kLongestMessage; }
  Doorbell& bell() override { return inbox_->bell; }
  Doorbell* bell_of(int /*rank*/) override { return nullptr; }

 private:
  void send(int to, ByteView bytes) {
    monitor_.send(to, Topic::kSession, Bytes(bytes.begin(), bytes.end()));
  }

  int rank_;
  int size_;
  Monitor& monitor_;
  std::shared_ptr<Inbox> inbox_;
};

}  // namespace

std::unique_ptr<Channel> message_channel(int rank, int size, Monitor& monitor, Channel::Take take) {
  return std::make_unique<MessageChannel>(rank, size, monitor, std::move(take));
}

}  // namespace muster::collective::session
