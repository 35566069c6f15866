#include "session/operation.h"

#include <algorithm>
#include <optional>

#include "control/monitor.h"
#include "session/bell.h"

namespace muster::collective::session {

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
        watch.emplace(*monitor, std::string(to_string(request.call.kind)) + " '" + name + "'");
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

}  // namespace muster::collective::session
