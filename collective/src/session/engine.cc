#include "session/engine.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "call/arguments.h"

namespace muster::collective::session {
namespace {

// Without a copy, larger batches gain nothing, and earlier batches finish earlier.
constexpr std::uint64_t kFusionBytes = std::uint64_t{32} << 20U;

bool is_crowded(const World& world) {
  const auto local = world.topology.host_of.empty()
                         ? std::size_t{1}
                         : world.topology.neighbours_of(world.rank).size();
  return local > std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

std::unique_ptr<Channel> channel_over(const SessionBase& base, Channel::Take take) {
  const World& world = base.world;
  if (base.shared == nullptr || base.shared_bytes < least_shared_bytes(world.size)) {
    return message_channel(world.rank, world.size, *world.monitor, std::move(take));
  }
  return shared_channel(world.rank, world.size, base.shared, base.shared_bytes, *world.monitor,
                        std::move(take), base.reserve);
}

Engine::Engine(SessionBase base, SessionOptions options, MakeChannel make_channel)
    : base_(std::move(base)),
      options_(std::move(options)),
      make_channel_(std::move(make_channel)),
      crowded_(is_crowded(base_.world)),
      executor_(base_) {
  if (options_.fusion_bytes == 0) options_.fusion_bytes = kFusionBytes;
}

Status Engine::start() {
  if (base_.shared != nullptr && base_.reserve &&
      base_.shared_bytes >= least_shared_bytes(size()) &&
      !base_.reserve(base_.shared, first_shared_bytes(size()))) {
    return monitor()->failure();
  }
  // The session's thread uses the log; it does not run yet.
  const bool logs =
      rank() == 0 && size() > 1 && options_.autotune && !options_.autotune_log.empty();
  if (logs) autotune_log_.open(options_.autotune_log);
  const bool has_opened = autotune_log_.is_open();
  if (size() > 1) take_part();
  if (!options_.timeline.empty()) {
    if (Status opened = start_timeline(options_.timeline); !opened) return opened;
  }
  if (!logs || has_opened) return {};
  return Error{ErrorCode::kSystem, "cannot write the log " + options_.autotune_log};
}

// Comes before any step that can fail, since the other ranks must be notified when this rank
// leaves.
void Engine::take_part() {
  if (rank() == 0) {
    coordinator_ = std::make_unique<Coordinator>(base_.world.hosts, options_.fusion_bytes);
    coordinator_->watch_for_stragglers(options_.slow_window);
    if (options_.autotune) {
      constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
      autotune_.emplace(std::vector<std::uint64_t>{kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB});
      coordinator_->set_fusion_bytes(autotune_->current());
    }
  }
  channel_ = make_channel_(base_, [this](int from, ByteView message, Deadline handed_over) {
    return take(from, message, handed_over);
  });
  mail_ = std::make_unique<Mail>(
      base_, *channel_,
      [this](Operation& operation, const Status& outcome) { settle_message(operation, outcome); });
  failure_subscription_ = monitor()->on_failure([this] {
    mail_->end(monitor()->failure());
    bell().ring();
  });
  thread_ = std::thread([this] { serve(); });
}

Engine::~Engine() {
  leave();
  mail_.reset();
  channel_.reset();
  static_cast<void>(stop_timeline());
}

// The channel stays, since other ranks may still be in a call.
void Engine::leave() {
  if (is_foreign() || stopping_.exchange(true)) return;
  if (thread_.joinable()) {
    bell().ring();
    thread_.join();
    monitor()->unsubscribe(failure_subscription_);
  }
  const Error ended{.code = ErrorCode::kPeerLost,
                    .message = base_.world.name_of(rank()) + " has ended its session",
                    .rank = rank(),
                    .host = base_.world.hosts[static_cast<std::size_t>(rank())]};
  {
    const std::lock_guard duty(duty_);
    if (!over_) end(ended);
  }
  if (mail_) {
    mail_->end(ended);
    const std::lock_guard duty(duty_);
    mail_->leave();
  }
  if (channel_ && !monitor()->failed()) {
    channel_->leave(rank() == 0 ? encode(Record{Left{0}}) : encode(Leave{}));
  }
}

Status Engine::start_timeline(const std::string& path) {
  const std::lock_guard lock(timeline_mutex_);
  traces_ = false;
  if (const std::shared_ptr<Timeline> previous = std::exchange(timeline_, nullptr)) {
    if (Status closed = previous->close(); !closed) return closed;
  }
  const std::string& host = base_.world.hosts.empty()
                                ? base_.world.options.host
                                : base_.world.hosts[static_cast<std::size_t>(rank())];
  Result<std::unique_ptr<Timeline>> opened = Timeline::open(path, rank(), host);
  if (!opened) return opened.error();
  timeline_ = *std::move(opened);
  traces_ = true;
  return {};
}

Status Engine::stop_timeline() {
  const std::lock_guard lock(timeline_mutex_);
  traces_ = false;
  if (!timeline_) return {};
  Status closed = timeline_->close();
  timeline_.reset();
  return closed;
}

// The hand-over of operations.
namespace {

Error bad(std::string_view name, std::string_view what) {
  return about(name, bad_argument(std::string(what)));
}

Status check_name(std::string_view name) {
  if (name.empty()) return bad(name, "an operation requires a name");
  if (name.size() <= kLongestName) return {};
  return bad(name.substr(0, 40), "a name has at most " + std::to_string(kLongestName) +
                                     " bytes, but this name has " + std::to_string(name.size()));
}

}  // namespace

namespace {

void add_memory(std::vector<MemorySpan>& memory, const void* begin, std::uint64_t bytes,
                bool is_written) {
  if (bytes > 0) memory.push_back({static_cast<const std::byte*>(begin), bytes, is_written});
}

}  // namespace

// An operation in place has one span, which it writes.
void Engine::find_memory(const Call& call, std::span<const std::uint64_t> lengths,
                         const Buffers& buffers) {
  std::vector<MemorySpan>& memory = requested_memory_;
  memory.clear();
  const std::uint64_t element = size_of(call.type);
  switch (call.kind) {
    case CallKind::kAllReduce:
      for (const Tensor& tensor : buffers.tensors) {
        const std::uint64_t bytes = tensor.count * element;
        if (tensor.in != tensor.out) add_memory(memory, tensor.in, bytes, false);
        add_memory(memory, tensor.out, bytes, true);
      }
      break;
    case CallKind::kReduceScatter:
      add_memory(memory, buffers.in, call.count * element, false);
      add_memory(memory, buffers.out, lengths[static_cast<std::size_t>(rank())] * element, true);
      break;
    case CallKind::kReduce:
      if (rank() != call.root || buffers.in != buffers.out) {
        add_memory(memory, buffers.in, call.count * element, false);
      }
      if (rank() == call.root) add_memory(memory, buffers.out, call.count * element, true);
      break;
    case CallKind::kBroadcast:
      add_memory(memory, buffers.out, call.count, rank() != call.root);
      break;
    case CallKind::kAllGather:
    case CallKind::kAllToAll:
      add_memory(memory, buffers.in, sum_of(lengths), false);
      add_memory(memory, buffers.place.data(), buffers.place.size(), true);
      break;
    case CallKind::kBarrier:
    case CallKind::kSend:
      break;
  }
}

Error Engine::in_use(const Operation& operation) {
  return bad_argument("its memory is in use by '" + operation.name +
                      "', which is in flight; wait for that operation, or use other memory");
}

Operation& Engine::fill(const Label& label, const Call& call,
                        std::span<const std::uint64_t> lengths, Buffers buffers) {
  Operation& operation = operations_.take();
  operation.name = label.name;
  operation.request.call = call;
  if (label.shape.size() <= kLongestShape) {
    operation.request.shape = label.shape;  // usually into memory that is already allocated
  } else {
    operation.request.shape = bounded_shape(label.shape);
  }
  operation.request.lengths.assign(lengths.begin(), lengths.end());
  for (const Tensor& tensor : buffers.tensors) {
    operation.pieces.push_back({static_cast<const std::byte*>(tensor.in),
                                static_cast<std::byte*>(tensor.out), tensor.count});
  }
  operation.in = static_cast<const std::byte*>(buffers.in);
  operation.out = static_cast<std::byte*>(buffers.out);
  operation.allocate = std::move(buffers.allocate);
  operation.handed_over = traces_.load(std::memory_order_relaxed) ? Clock::now() : Deadline{};
  return operation;
}

Result<Ticket> Engine::hand_over(const Label& label, const Call& call,
                                 std::span<const std::uint64_t> lengths, Buffers buffers) {
  const std::string_view name = label.name;
  if (Status checked = check_name(name); !checked) return checked.error();
  constexpr std::uint64_t kAround = 64;  // the rest of a message, besides name, header and lengths
  const std::uint64_t length = kAround + name.size() + std::min(label.shape.size(), kLongestShape) +
                               kCallHeaderBytes + 8 * lengths.size();
  if (channel_ && length > channel_->longest()) {
    return bad(name, std::to_string(lengths.size()) + " tensors are too many for one group");
  }
  Bytes message;
  Ticket ticket;
  Operation* alone = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (join_ != nullptr) return bad(name, "this rank has joined and cannot hand over operations");
    auto found = known_.find(name);
    if (found != known_.end() && found->second.in_flight != nullptr) {
      return bad(name, "an operation of this name is in flight; wait for it, or use another name");
    }
    find_memory(call, lengths, buffers);
    if (const Operation* const other = memory_in_use_.conflict_with(requested_memory_)) {
      return about(name, in_use(*other));
    }
    Operation& operation = fill(label, call, lengths, std::move(buffers));
    ticket = Operations::ticket_of(operation);
    if (ended_) {
      operation.outcome = *ended_;
      operation.state.store(Operation::kDone, std::memory_order_release);
      return ticket;
    }
    // Only names of operations in flight are added: nothing removes the name of a refused one.
    if (found == known_.end()) found = known_.try_emplace(std::string(name)).first;
    Known& known = found->second;
    known.in_flight = &operation;
    operation.memory.swap(requested_memory_);
    memory_in_use_.add(operation, operation.memory);
    if (!channel_) {
      alone = &operation;
    } else {
      known.sent_by_id = known.id != 0 && known.last_request == operation.request;
      message = known.sent_by_id ? encode(Again{known.id}) : encode_new(name, operation.request);
      if (!known.sent_by_id) known.last_request = operation.request;
    }
  }
  if (alone != nullptr) return carry_out_alone(*alone);
  send_to_coordinator(message, tally_of(name));
  return ticket;
}

std::size_t Engine::known_names() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

// A world of one rank agrees on every operation at once, and its names are not stored.
Ticket Engine::carry_out_alone(Operation& operation) {
  const Ticket ticket = Operations::ticket_of(operation);
  const std::lock_guard duty(duty_);
  auto agreed = std::make_shared<Agreed>();
  agreed->name = operation.name;
  agreed->request = operation.request;
  agreed->gathered = operation.request.lengths;
  carry_out(Batch{{Entry{.news = std::move(agreed)}}});
  return ticket;
}

Result<Ticket> Engine::join() {
  Ticket ticket;
  {
    const std::lock_guard lock(mutex_);
    if (join_ != nullptr) return bad("join", "this rank has joined already");
    Operation& operation = fill("join", {.kind = CallKind::kBarrier}, {}, {});
    ticket = Operations::ticket_of(operation);
    if (ended_) operation.outcome = *ended_;
    if (!channel_) last_joined_ = 0;
    if (ended_ || !channel_) {
      operation.state.store(Operation::kDone, std::memory_order_release);
      return ticket;
    }
    join_ = &operation;
  }
  channel_->joins();
  send_to_coordinator(encode(Join{}), std::nullopt);
  return ticket;
}

// A message is in the table for its ticket, but has no name that ranks agree on.
Result<Operation*> Engine::take_message(const char* direction, int other, std::uint64_t tag,
                                        const MemorySpan& memory) {
  std::string name = std::string("message ") + direction + " " +
                     (other == kAnyRank ? "any rank" : "rank " + std::to_string(other)) +
                     " with tag " + std::to_string(tag);
  const std::lock_guard lock(mutex_);
  const Operation* const conflict = memory_in_use_.conflict_with({&memory, 1});
  if (conflict != nullptr) return about(name, in_use(*conflict));
  Operation& operation = operations_.take();
  operation.name = std::move(name);
  operation.request = {.call = {.kind = CallKind::kSend}};
  operation.memory.push_back(memory);
  memory_in_use_.add(operation, operation.memory);
  return &operation;
}

Result<Ticket> Engine::send(const void* data, std::uint64_t bytes, int to, std::uint64_t tag) {
  const auto* const begin = static_cast<const std::byte*>(data);
  const Result<Operation*> taken = take_message("to", to, tag, {begin, bytes, false});
  if (!taken) return taken.error();
  Operation& operation = **taken;
  operation.in = begin;
  const Ticket ticket = Operations::ticket_of(operation);
  mail_->send(operation, bytes, to, tag);
  return ticket;
}

Result<Ticket> Engine::receive(void* data, std::uint64_t bytes, int from, std::uint64_t tag,
                               int* sender) {
  auto* const begin = static_cast<std::byte*>(data);
  const Result<Operation*> taken = take_message("from", from, tag, {begin, bytes, true});
  if (!taken) return taken.error();
  Operation& operation = **taken;
  operation.out = begin;
  const Ticket ticket = Operations::ticket_of(operation);
  mail_->receive(operation, bytes, from, tag, sender);
  return ticket;
}

void Engine::settle_message(Operation& operation, const Status& outcome) {
  std::function<void(const Status&)> then;
  std::uint32_t before = Operation::kPending;
  {
    const std::lock_guard lock(mutex_);
    memory_in_use_.remove(operation, operation.memory);
    end_watch_over(operation);
    then = std::move(operation.then);
    if (then) {
      operations_.give_back(operation);
    } else {
      operation.outcome = outcome;
      before = operation.state.exchange(Operation::kDone, std::memory_order_acq_rel);
    }
  }
  if (before == Operation::kAwaited) futex_wake(operation.state, INT32_MAX);
  if (then) then(outcome);
}

void Engine::send_to_coordinator(ByteView message, Channel::Tally tally) {
  if (rank() != 0) {
    channel_->hand_over(message, tally);
  } else {
    channel_->notify_self(tally, take(0, message, Clock::now()));
  }
}

bool Engine::take(int from, ByteView message, Deadline handed_over) {
  const std::lock_guard lock(coordinator_mutex_);
  if (!coordinator_->take(from, message, handed_over)) damaged(from);
  return coordinator_->has_record();
}

// Waiting for operations.
namespace {

// About the time to put a thread to sleep and wake it again: a thread that spins no longer than
// that never takes more than twice the optimal time.
constexpr std::chrono::microseconds kSpin{50};

// Waits in small steps without sleeping. If there are more ranks than processors, each step yields
// the processor, since another rank must run to end the wait.
class Spin {
 public:
  Spin(bool crowded, std::optional<Deadline> limit) : crowded_(crowded), limit_(limit) {}

  /// False once it has waited long enough.
  bool once() {
    if (crowded_) {
      ::sched_yield();
    } else {
      _mm_pause();
    }
    if (steps_++ % 16 != 0) return true;
    const Deadline now = Clock::now();
    if (steps_ == 1) end_ = limit_ ? std::min(now + kSpin, *limit_) : now + kSpin;
    return now < end_;
  }
  void start_anew() { steps_ = 0; }

 private:
  bool crowded_;
  std::optional<Deadline> limit_;
  unsigned steps_ = 0;
  Deadline end_ = {};
};

Deadline in(std::chrono::milliseconds limit) {
  // Far enough in the future, without overflow.
  constexpr std::chrono::hours kLongest{24 * 365 * 100};
  return Clock::now() + std::min<std::chrono::milliseconds>(limit, kLongest);
}

Error no_such_ticket() {
  return {ErrorCode::kBadArgument, "the ticket is invalid, or was already waited for"};
}

}  // namespace

bool Engine::done(Ticket ticket) const {
  const std::lock_guard lock(mutex_);
  const Operation* const operation = operations_.find(ticket);
  return operation == nullptr || operation->is_done();
}

std::optional<Status> Engine::wait(Ticket ticket, std::optional<std::chrono::milliseconds> limit) {
  return wait_until(ticket, limit ? std::optional(in(*limit)) : std::nullopt, nullptr);
}

// This thread is on duty before the hand-over, so it learns of the operations that it finishes
// without being woken: neither this rank's own thread nor other ranks need a system call.
std::optional<Status> Engine::run(const std::function<Result<Ticket>()>& hand_over,
                                  std::optional<std::chrono::milliseconds> limit, Ticket& pending) {
  const std::optional<Deadline> deadline = limit ? std::optional(in(*limit)) : std::nullopt;
  // A world of one rank executes an operation when it is handed over.
  Duty duty = channel_ ? try_duty() : nullptr;
  const Result<Ticket> ticket = hand_over();
  if (!ticket) return ticket.error();
  std::optional<Status> outcome = wait_until(*ticket, deadline, std::move(duty));
  if (!outcome) pending = *ticket;
  return outcome;
}

std::optional<Status> Engine::wait_until(Ticket ticket, std::optional<Deadline> limit, Duty duty) {
  Operation* operation = nullptr;
  {
    const std::lock_guard lock(mutex_);
    operation = operations_.find(ticket);
    if (operation == nullptr || operation->claimed) return no_such_ticket();
    operation->claimed = true;
  }
  const auto has_time = [&] { return !limit || Clock::now() < *limit; };
  if (!operation->is_done() && has_time()) help(*operation, limit, std::move(duty));
  duty.reset();
  if (!operation->is_done() && has_time()) {
    operation->sleep_until_done(monitor(), limit,
                                [this, seen = false]() mutable { look_for_departed(seen); });
  }
  const std::lock_guard lock(mutex_);
  if (!operation->is_done()) {
    operation->claimed = false;
    watch_over(*operation);
    return std::nullopt;
  }
  Status outcome = std::move(operation->outcome);
  operations_.give_back(*operation);
  return outcome;
}

void Engine::when_done(Ticket ticket, std::function<void(const Status&)> then) {
  Status outcome;
  {
    const std::lock_guard lock(mutex_);
    Operation* const operation = operations_.find(ticket);
    if (operation == nullptr || operation->claimed) {
      outcome = no_such_ticket();
    } else {
      operation->claimed = true;
      if (!operation->is_done()) {
        operation->then = std::move(then);
        watch_over(*operation);
        return;
      }
      outcome = std::move(operation->outcome);
      operations_.give_back(*operation);
    }
  }
  then(outcome);
}

// No thread waits for the operation any more, but its result is still needed: the session's thread
// watches for a stopped rank instead. The first such operation wakes that thread. The caller holds
// the table's lock.
void Engine::watch_over(Operation& operation) {
  if (std::exchange(operation.unattended, true)) return;
  operation.newer = nullptr;
  operation.older = std::exchange(newest_unattended_, &operation);
  if (operation.older != nullptr) {
    operation.older->newer = &operation;
  } else {
    oldest_unattended_ = &operation;
    bell().ring();
  }
}

// The operation is over. After the last one, the thread that has the other ranks probed can stop
// probing. The caller holds the table's lock.
void Engine::end_watch_over(Operation& operation) {
  if (!std::exchange(operation.unattended, false)) return;
  Operation* const older = operation.older;
  Operation* const newer = operation.newer;
  (older != nullptr ? older->newer : oldest_unattended_) = newer;
  (newer != nullptr ? newer->older : newest_unattended_) = older;
  if (oldest_unattended_ == nullptr && watches_.load()) bell().ring();
}

void Engine::help(const Operation& operation, std::optional<Deadline> limit, Duty duty) {
  Spin spin(crowded_, limit);
  bool goes_on = true;
  while (goes_on && !operation.is_done()) {
    if (!duty) duty = try_duty();
    if (duty && step()) {
      spin.start_anew();
    } else {
      goes_on = spin.once();
    }
  }
}

void Engine::look_for_departed(bool& seen_before) {
  const std::vector<int> departed = monitor()->departed_in_step();
  if (departed.empty()) return;
  if (const Duty duty = try_duty()) end_without(departed, seen_before);
}

}  // namespace muster::collective::session
