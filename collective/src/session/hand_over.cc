// How an operation gets into the session.
#include <algorithm>

#include "call/arguments.h"
#include "session/engine.h"

namespace muster::collective::session {
namespace {

Error bad(std::string_view name, std::string_view what) {
  return about(name, bad_argument(std::string(what)));
}

Status check_name(std::string_view name) {
  if (name.empty()) return bad(name, "an operation needs a name");
  if (name.size() <= kLongestName) return {};
  return bad(name.substr(0, 40), "a name has at most " + std::to_string(kLongestName) +
                                     " bytes, this one " + std::to_string(name.size()));
}

}  // namespace

Operation& Engine::fill(const Label& label, const Call& call,
                        std::span<const std::uint64_t> lengths, Buffers buffers) {
  Operation& operation = operations_.take();
  operation.name = label.name;
  operation.request.call = call;
  if (label.shape.size() <= kLongestShape) {
    operation.request.shape = label.shape;  // into memory that is there, mostly
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
  constexpr std::uint64_t kAround = 64;  // what a message has beside name, header and lengths
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
    if (join_ != nullptr) return bad(name, "this rank has joined and hands nothing over any more");
    auto found = known_.find(name);
    if (found == known_.end()) found = known_.try_emplace(std::string(name)).first;
    Known& known = found->second;
    if (known.in_flight != nullptr) {
      return bad(name, "an operation of this name is in flight; wait for it, or use another name");
    }
    Operation& operation = fill(label, call, lengths, std::move(buffers));
    ticket = Operations::ticket_of(operation);
    if (ended_) {
      operation.outcome = *ended_;
      operation.state.store(Operation::kDone, std::memory_order_release);
      return ticket;
    }
    known.in_flight = &operation;
    if (!channel_) {
      alone = &operation;
    } else {
      known.said_by_id = known.id != 0 && known.said == operation.request;
      message = known.said_by_id ? encode(Again{known.id}) : encode_new(name, operation.request);
      if (!known.said_by_id) known.said = operation.request;
    }
  }
  if (alone != nullptr) return carry_out_alone(*alone);
  tell_coordinator(message, tally_of(name));
  return ticket;
}

// In a world of one everything is agreed on at once. Nobody remembers the names.
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
  tell_coordinator(encode(Join{}), std::nullopt);
  return ticket;
}

void Engine::tell_coordinator(ByteView message, Channel::Tally tally) {
  if (rank() != 0) {
    channel_->hand_over(message, tally);
  } else {
    channel_->notify_self(tally, take(0, message));
  }
}

bool Engine::take(int from, ByteView message) {
  const std::lock_guard lock(coordinator_mutex_);
  if (!coordinator_->take(from, message, Clock::now())) damaged(from);
  return coordinator_->has_record();
}

}  // namespace muster::collective::session
