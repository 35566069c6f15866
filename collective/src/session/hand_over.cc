// How an operation gets into the session.
#include <algorithm>

#include "call/arguments.h"
#include "session/check.h"
#include "session/engine.h"

namespace muster::collective::session {
Result<Ticket> Engine::all_reduce(const Label& label, const void* in, void* out,
                                  std::uint64_t count, DataType type, const Reduction& reduction) {
  const Tensor tensor{in, out, count};
  return all_reduce(label, std::span(&tensor, 1), type, reduction);
}

Result<Ticket> Engine::all_reduce(const Label& label, std::span<const Tensor> tensors,
                                  DataType type, const Reduction& reduction) {
  if (Status checked = check_reduction(label.name, type, reduction); !checked)
    return checked.error();
  std::vector<std::uint64_t> counts;
  std::uint64_t count = 0;
  for (const Tensor& tensor : tensors) {
    if (Status checked = check_tensor(label.name, tensor, type); !checked) return checked.error();
    count += tensor.count;
    if (tensors.size() > 1) counts.push_back(tensor.count);
  }
  return hand_over(
      label, {.kind = CallKind::kAllReduce, .type = type, .reduction = reduction, .count = count},
      counts, {.tensors = tensors});
}

Result<Ticket> Engine::reduce_scatter(const Label& label, const void* in, void* out,
                                      std::span<const std::uint64_t> counts, DataType type,
                                      const Reduction& reduction) {
  if (Status checked = check_reduction(label.name, type, reduction); !checked)
    return checked.error();
  if (Status checked = check_lengths(label.name, counts, size()); !checked) return checked.error();
  if (reduction.op == ReduceOp::kAdasum) {
    return bad(label.name, "adasum needs whole gradients; there is no reduce_scatter with it");
  }
  const std::uint64_t count = sum_of(counts);
  // The two may be the same place only where there is nothing to keep apart.
  const std::uint64_t element = size_of(type);
  const std::uint64_t mine = counts[static_cast<std::size_t>(rank())];
  if (Status checked = check_bytes(label.name, in, count * element); !checked)
    return checked.error();
  if (Status checked = check_bytes(label.name, out, mine * element); !checked)
    return checked.error();
  return hand_over(label,
                   {.kind = CallKind::kReduceScatter,
                    .type = type,
                    .reduction = reduction,
                    .count = count,
                    .shape = hash_of(counts)},
                   counts, {.in = in, .out = out});
}

Result<Ticket> Engine::all_gather(const Label& label, const void* part, std::uint64_t bytes,
                                  Allocate allocate) {
  if (Status checked = check_bytes(label.name, part, bytes); !checked) return checked.error();
  if (!allocate) return bad(label.name, "an all_gather needs an allocate()");
  return hand_over(label, {.kind = CallKind::kAllGather}, std::span(&bytes, 1),
                   {.in = part, .allocate = std::move(allocate)});
}

Result<Ticket> Engine::broadcast(const Label& label, void* data, std::uint64_t bytes, int root) {
  if (Status checked = check_bytes(label.name, data, bytes); !checked) return checked.error();
  if (root < 0 || root >= size()) {
    return bad(label.name,
               "there is no rank " + std::to_string(root) + " of " + std::to_string(size()));
  }
  return hand_over(label, {.kind = CallKind::kBroadcast, .root = root, .count = bytes}, {},
                   {.out = data});
}

Result<Ticket> Engine::all_to_all(const Label& label, const void* in,
                                  std::span<const std::uint64_t> sent, Allocate allocate) {
  if (Status checked = check_lengths(label.name, sent, size()); !checked) return checked.error();
  if (Status checked = check_bytes(label.name, in, sum_of(sent)); !checked) return checked.error();
  if (!allocate) return bad(label.name, "an all_to_all needs an allocate()");
  return hand_over(label, {.kind = CallKind::kAllToAll}, sent,
                   {.in = in, .allocate = std::move(allocate)});
}

Result<Ticket> Engine::barrier(const Label& label) {
  return hand_over(label, {.kind = CallKind::kBarrier}, {}, {});
}

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
