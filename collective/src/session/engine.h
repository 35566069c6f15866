// The implementation of Session. A thread that hands over an operation enters it in the table and
// sends it to the coordinator (channel.h). The thread on duty reads the coordinator's records one
// after the other and executes them (Executor in operation.h).
//
// The thread on duty is the session's own thread, which sleeps until this rank's doorbell rings; or
// a thread that waits for an operation while no other thread is on duty, so that a small operation
// is done before another thread could wake up. Duty is a lock that is held during calls of the
// backend. The table has a lock of its own, which is held for short times only; a thread never
// acquires duty while it holds that lock.
//
// The session ends for this rank when the world fails, a rank leaves, or this rank leaves. Then
// every pending and every later operation fails.
#pragma once

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "session/autotune.h"
#include "session/channel.h"
#include "session/coordinator.h"
#include "session/mail.h"
#include "session/measurement.h"
#include "session/memory_in_use.h"
#include "session/operation.h"
#include "session/protocol.h"
#include "session/timeline.h"

namespace muster::collective::session {

/// The channel of a world of two or more ranks: in shared memory if there is enough.
std::unique_ptr<Channel> channel_over(const SessionBase& base, Channel::Take take);

class Engine {
 public:
  using MakeChannel = std::function<std::unique_ptr<Channel>(const SessionBase&, Channel::Take)>;

  Engine(SessionBase base, SessionOptions options, MakeChannel make_channel = channel_over);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Called once after the constructor.
  Status start();

  // As in Session.
  void leave();
  int rank() const { return base_.world.rank; }
  int size() const { return base_.world.size; }
  Result<Ticket> join();
  Result<Ticket> send(const void* data, std::uint64_t bytes, int to, std::uint64_t tag);
  Result<Ticket> receive(void* data, std::uint64_t bytes, int from, std::uint64_t tag, int* sender);
  int last_joined() const { return last_joined_.load(std::memory_order_acquire); }
  bool done(Ticket ticket) const;
  std::optional<Status> wait(Ticket ticket, std::optional<std::chrono::milliseconds> limit);
  std::optional<Status> run(const std::function<Result<Ticket>()>& hand_over,
                            std::optional<std::chrono::milliseconds> limit, Ticket& pending);
  void when_done(Ticket ticket, std::function<void(const Status&)> then);
  Status start_timeline(const std::string& path);
  Status stop_timeline();
  void mark_cycles(bool marks) { marks_cycles_ = marks; }
  shm::Arena* arena() const { return base_.arena; }

  /// Whether this process was forked from the rank of the session, and must not use it.
  bool is_foreign() const { return ::getpid() != process_; }

  /// The number of names that this rank stores. For tests.
  std::size_t known_names() const;

  /// Whether the session's thread has the other ranks probed. For tests.
  bool watches() const { return watches_; }

  /// The memory of an operation.
  struct Buffers {
    std::span<const Tensor> tensors = {};
    const void* in = nullptr;
    void* out = nullptr;
    Allocate allocate = {};

    /// What `allocate` will return, if it is known.
    std::span<const std::byte> place = {};
  };

  /// Hands over an operation whose arguments Session has checked. Errors: kBadArgument for a name
  /// that is in flight, and for memory that an operation in flight uses.
  Result<Ticket> hand_over(const Label& label, const Call& call,
                           std::span<const std::uint64_t> lengths, Buffers buffers);

 private:
  // The state of a name on this rank.
  struct Known {
    std::uint32_t id = 0;
    Request last_request;     // the last request that this rank sent
    bool sent_by_id = false;  // the last request was sent as the id alone
    Operation* in_flight = nullptr;
    // Used by the thread on duty only.
    std::shared_ptr<const Agreed> agreed;
    std::vector<std::uint64_t> received;  // all_to_all: by rank, what it sends to this rank
  };
  struct TextHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using KnownNames = std::unordered_map<std::string, Known, TextHash, std::equal_to<>>;
  using KnownName = KnownNames::value_type;

  void take_part();

  // Hand-over and waiting: engine.cc. Duty and records: records.cc.
  void find_memory(const Call& call, std::span<const std::uint64_t> lengths,
                   const Buffers& buffers);
  static Error in_use(const Operation& operation);
  Operation& fill(const Label& label, const Call& call, std::span<const std::uint64_t> lengths,
                  Buffers buffers);
  Ticket carry_out_alone(Operation& operation);
  void send_to_coordinator(ByteView message, Channel::Tally tally);
  bool take(int from, ByteView message, Deadline handed_over);

  // Duty of a thread other than the session's own; null: not on duty.
  struct OffDuty {
    void operator()(Engine* engine) const { engine->go_off_duty(); }
  };
  using Duty = std::unique_ptr<Engine, OffDuty>;

  // Waiting.
  std::optional<Status> wait_until(Ticket ticket, std::optional<Deadline> limit, Duty duty);
  void watch_over(Operation& operation);
  void end_watch_over(Operation& operation);
  void help(const Operation& operation, std::optional<Deadline> limit, Duty duty);
  void look_for_departed(bool& seen_before);

  // Duty.
  void serve();
  bool step();
  bool has_work();
  Duty try_duty();
  void go_off_duty();
  bool has_unwatched_names();
  bool has_unattended() const;
  void end_without(const std::vector<int>& departed, bool& seen_before);
  std::optional<Deadline> plan_to_wake();
  std::optional<Deadline> report_stalls();
  std::optional<Deadline> give_up_stalls();
  std::optional<Deadline> watch_over_unattended();

  // Records, on duty.
  bool next_record();
  bool cut_record();
  bool read_record();
  void carry_out(const Batch& batch);
  bool find_items(const Batch& batch);
  void forget(const Forget& forget);
  void all_joined(int last);
  void end(const Error& why);
  void finish_items();
  void trace(const Batch& batch, Deadline agreed, Deadline begun, bool was_called);
  void tune(const Batch& batch, std::uint64_t bytes);
  void look_for_stragglers();
  void report(const Slowness& slowness, Deadline now);
  std::shared_ptr<Timeline> timeline();
  void damaged(int from);
  Error lost(int other) const;

  // settle() sets the outcome of an operation, whose memory is free then; report_settled() runs its
  // callbacks after the table is unlocked.
  void settle(Operation& operation, const Status& outcome);
  void report_settled();

  // Messages, which threads other than the one on duty end.
  Result<Operation*> take_message(const char* direction, int other, std::uint64_t tag,
                                  const MemorySpan& memory);
  void settle_message(Operation& operation, const Status& outcome);

  Monitor* monitor() const { return base_.world.monitor.get(); }
  Doorbell& bell() { return channel_->bell(); }

  const int process_ = ::getpid();  // of the rank
  SessionBase base_;
  SessionOptions options_;
  MakeChannel make_channel_;
  bool crowded_;

  std::unique_ptr<Channel> channel_;  // null in a world of one
  std::mutex coordinator_mutex_;
  std::unique_ptr<Coordinator> coordinator_;  // rank 0's

  std::unique_ptr<Mail> mail_;  // null in a world of one

  // The table.
  mutable std::mutex mutex_;
  mutable Operations operations_;
  KnownNames known_;
  std::unordered_map<std::uint32_t, KnownName*> by_id_;
  MemoryInUse memory_in_use_;
  std::vector<MemorySpan> requested_memory_;  // of the operation that is being handed over
  std::optional<Error> ended_;
  Operation* join_ = nullptr;               // in flight
  Operation* oldest_unattended_ = nullptr;  // needed operations in flight for which no thread waits
  Operation* newest_unattended_ = nullptr;

  // Duty, and the state of the thread on duty.
  std::mutex duty_;
  Executor executor_;
  bool over_ = false;
  Bytes record_;
  Record decoded_;
  bool is_unpublished_ = false;  // rank 0: there was no room for record_
  std::vector<Item> items_;
  std::vector<KnownName*> names_;  // of items_
  std::vector<Operation*> to_wake_;
  std::vector<std::pair<std::function<void(const Status&)>, Status>> to_call_;
  std::optional<Autotune> autotune_;
  std::ofstream autotune_log_;
  LinkMeter link_meter_;
  Deadline next_measurement_ = {};

  std::mutex timeline_mutex_;
  std::shared_ptr<Timeline> timeline_;
  std::atomic<bool> traces_{false};
  std::atomic<bool> marks_cycles_{false};

  std::atomic<int> last_joined_{-1};
  std::atomic<bool> stopping_{false};
  // 1: the session's thread was woken while another thread was on duty; that thread then checks for
  // work once more.
  std::atomic<std::uint32_t> look_again_{0};
  std::atomic<bool> patient_{false};     // the thread wakes in time for every name that waits
  std::atomic<bool> watches_{false};     // the thread has the other ranks probed
  std::optional<Monitor::Watch> watch_;  // the thread's own, as are the next four
  std::uint64_t seen_oldest_ = 0;        // the ticket of oldest_unattended_ at the last look
  std::optional<Deadline> watch_at_;
  Deadline look_at_ = {};
  bool has_seen_departed_ = false;
  std::uint64_t failure_subscription_ = 0;
  std::thread thread_;
};

}  // namespace muster::collective::session
