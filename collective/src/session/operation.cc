#include "session/operation.h"

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>

#include "call/arguments.h"
#include "control/monitor.h"
#include "session/channel.h"

namespace muster::collective::session {
namespace {

// Makes `buffer` that long, with zeros where it grows. False if there is no memory.
bool try_to_resize(std::vector<std::byte>& buffer, std::uint64_t bytes) {
  try {
    buffer.resize(bytes);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  } catch (const std::length_error&) {
    return false;
  }
}

// The name of a message already shows whether it is sent or received.
std::string described(const Operation& operation) {
  const CallKind kind = operation.request.call.kind;
  if (kind == CallKind::kSend) return "'" + operation.name + "'";
  return std::string(to_string(kind)) + " '" + operation.name + "'";
}

}  // namespace

Reserve reserve_in(World& world) {
  return [&world](const std::byte* begin, std::uint64_t bytes) {
    const auto offset = static_cast<std::uint64_t>(begin - world.memory.base());
    const Status there = world.memory.reserve(offset, bytes);
    if (there) return true;
    Error error = there.error();
    error.message = world.name_of(world.rank) + ": " + error.message;
    error.rank = world.rank;
    error.host = world.hosts[static_cast<std::size_t>(world.rank)];
    world.monitor->fail(std::move(error));
    return false;
  };
}

void Operation::sleep_until_done(Monitor* monitor, std::optional<Deadline> limit,
                                 const std::function<void()>& look) {
  Deadline look_at = Clock::now() + kUntilOthersAreAsked;
  std::optional<Monitor::Watch> watch;
  while (!is_done()) {
    std::uint32_t expected = kPending;
    state.compare_exchange_strong(expected, kAwaited, std::memory_order_acq_rel);
    if (expected == kDone) return;
    const Deadline now = Clock::now();
    if (limit && now >= *limit) return;
    if (monitor != nullptr && now >= look_at) {
      if (watch) {
        look();
      } else {
        watch.emplace(*monitor, described(*this));
      }
      look_at = Clock::now() + kBetweenLooks;
    }
    std::optional<Deadline> until = limit;
    if (monitor != nullptr) until = limit ? std::min(*limit, look_at) : look_at;
    futex_wait(state, kAwaited, until);
  }
}

Operation& Operations::take() {
  if (free_.empty()) {
    Operation& added = all_.emplace_back();
    added.index = static_cast<std::uint32_t>(all_.size() - 1);
    free_.push_back(&added);
  }
  Operation& operation = *free_.back();
  free_.pop_back();
  ++operation.generation;
  operation.in_use = true;
  operation.claimed = false;
  operation.unattended = false;
  operation.outcome = {};
  operation.pieces.clear();
  operation.memory.clear();
  operation.request.lengths.clear();
  operation.in = nullptr;
  operation.out = nullptr;
  operation.state.store(Operation::kPending, std::memory_order_relaxed);
  return operation;
}

void Operations::give_back(Operation& operation) {
  operation.in_use = false;
  operation.allocate = nullptr;
  operation.then = nullptr;
  free_.push_back(&operation);
}

Ticket Operations::ticket_of(const Operation& operation) {
  return {std::uint64_t{operation.generation} << 32U | (operation.index + 1)};
}

Operation* Operations::find(Ticket ticket) {
  const auto index = static_cast<std::uint32_t>(ticket.id) - 1;
  if (index >= all_.size()) return nullptr;
  Operation& operation = all_[index];
  const bool same = operation.in_use && operation.generation == ticket.id >> 32U;
  return same ? &operation : nullptr;
}

Executor::Executor(SessionBase& base) : base_(base), backend_(*base.backend), calls_(base.calls) {}

Call Executor::numbered(Call call) {
  call.sequence = ++calls_;
  if (base_.world.monitor) base_.world.monitor->entered(call.sequence);
  return call;
}

void Executor::carry_out(std::span<Item> items) {
  Item& first = items.front();
  if (first.agreed->error) {
    first.outcome = *first.agreed->error;
    return;
  }
  const Call& call = first.agreed->request.call;
  Operation* const operation = first.operation;
  switch (call.kind) {
    case CallKind::kAllReduce: {
      const Status outcome = all_reduce(items);
      for (Item& item : items) item.outcome = outcome;
      return;
    }
    case CallKind::kReduceScatter:
      first.outcome = reduce_scatter(first);
      return;
    case CallKind::kAllGather:
      first.outcome = all_gather(first);
      return;
    case CallKind::kAllToAll:
      first.outcome = all_to_all(first);
      return;
    case CallKind::kBroadcast:
      first.outcome = backend_.broadcast(numbered(call), operation->out);
      return;
    case CallKind::kBarrier:
      first.outcome = backend_.barrier(numbered(call));
      return;
    case CallKind::kReduce:
      first.outcome = backend_.reduce(numbered(call), operation->in, operation->out);
      return;
    case CallKind::kSend:
      break;
  }
  first.outcome = Error{ErrorCode::kBadArgument, "a session does not support this operation"};
}

Status Executor::all_reduce(std::span<Item> items) {
  std::uint64_t missing = 0;
  for (const Item& item : items) {
    if (item.operation == nullptr) missing += bytes_of(item.agreed->request);
  }
  zeros_.clear();
  if (!try_to_resize(zeros_, missing)) {
    return out_of_memory("no memory for the " + std::to_string(missing) +
                         " bytes of zeros that it contributes to '" + items.front().agreed->name +
                         "'");
  }
  std::byte* place = zeros_.data();
  pieces_.clear();
  for (const Item& item : items) {
    if (item.operation == nullptr) {
      add_zeros(item.agreed->request, place);
    } else {
      const std::vector<Piece>& pieces = item.operation->pieces;
      pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
    }
  }
  // For an empty list a rank that has joined adds one empty piece, and the other ranks none.
  std::erase_if(pieces_, [](const Piece& piece) { return piece.count == 0; });
  Call call = items.front().agreed->request.call;
  lengths_.clear();
  for (const Piece& piece : pieces_) lengths_.push_back(piece.count);
  call.count = sum_of(lengths_);
  call.shape = hash_of_list(lengths_);
  return backend_.all_reduce(numbered(call), pieces_);
}

Status Executor::reduce_scatter(Item& item) {
  const Operation& operation = *item.operation;
  return backend_.reduce_scatter(numbered(operation.request.call), operation.in, operation.out,
                                 operation.request.lengths);
}

Status Executor::all_gather(Item& item) {
  const std::vector<std::uint64_t>& bytes = item.agreed->gathered;
  Call call = item.agreed->request.call;
  call.count = sum_of(bytes);
  call.shape = hash_of(bytes);
  Status room;
  std::byte* const all = room_for(*item.operation, bytes, room);
  if (all == nullptr && call.count > 0) return room;
  const Status gathered = backend_.all_gather(numbered(call), item.operation->in, all, bytes);
  return gathered ? room : gathered;
}

// Exchanges the lengths if any rank has changed its own, so that no rank stores those of all pairs.
Status Executor::all_to_all(Item& item) {
  const std::vector<std::uint64_t>& sent = item.operation->request.lengths;
  std::vector<std::uint64_t>& received = *item.received;
  if (received.empty()) {
    std::vector<std::uint64_t> lengths(sent.size());
    const std::vector<std::uint64_t> bytes(sent.size(), sizeof lengths[0]);
    const Status exchanged = backend_.all_to_all(
        numbered(item.agreed->request.call), reinterpret_cast<const std::byte*>(sent.data()), bytes,
        reinterpret_cast<std::byte*>(lengths.data()), bytes);
    if (!exchanged) return exchanged;
    received = std::move(lengths);
  }
  Status room;
  std::byte* const out = room_for(*item.operation, received, room);
  if (out == nullptr && sum_of(received) > 0) return room;
  const Status moved = backend_.all_to_all(numbered(item.agreed->request.call), item.operation->in,
                                           sent, out, received);
  return moved ? room : moved;
}

// The result overwrites the zeros, so every tensor gets zeros of its own.
void Executor::add_zeros(const Request& request, std::byte*& place) {
  const auto add = [&](std::uint64_t count) {
    pieces_.push_back({place, place, count});
    place += count * size_of(request.call.type);
  };
  if (request.lengths.empty()) add(request.call.count);
  for (const std::uint64_t count : request.lengths) add(count);
}

// If allocate() fails, the other ranks still get their data: what this rank receives is discarded.
std::byte* Executor::room_for(Operation& operation, std::span<const std::uint64_t> bytes,
                              Status& status) {
  const std::uint64_t total = sum_of(bytes);
  auto* const room = static_cast<std::byte*>(operation.allocate(bytes));
  if (room != nullptr || total == 0) return room;
  const std::string what =
      "no memory for the " + std::to_string(total) + " bytes of '" + operation.name + "'";
  status = Error{.code = ErrorCode::kSystem, .message = what};
  if (try_to_resize(nowhere_, total)) return nowhere_.data();
  status = out_of_memory(what);
  return nullptr;
}

// This rank cannot take part in a call that the other ranks enter, so the world fails.
Error Executor::out_of_memory(const std::string& what) {
  const World& world = base_.world;
  Error error{.code = ErrorCode::kSystem,
              .message = world.name_of(world.rank) + " has " + what,
              .rank = world.rank,
              .host = world.hosts[static_cast<std::size_t>(world.rank)]};
  return world.monitor ? world.monitor->fail(std::move(error)) : error;
}

}  // namespace muster::collective::session
