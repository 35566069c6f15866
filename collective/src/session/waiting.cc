// How those who want an operation done wait for it.
#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "session/engine.h"

namespace muster::collective::session {
namespace {

// About what it takes to put a thread to sleep and wake it again: who spins no longer than that
// never loses more than twice the best.
constexpr std::chrono::microseconds kSpin{50};

// Waits in little steps without sleeping. With more ranks than processors each step gives the
// processor away, for it is another rank that will bring what is waited for.
class Spin {
 public:
  Spin(bool crowded, std::optional<Deadline> limit) : crowded_(crowded), limit_(limit) {}

  /// False once it has gone on for long enough.
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
  // Far enough away not to overflow.
  constexpr std::chrono::hours kLongest{24 * 365 * 100};
  return Clock::now() + std::min<std::chrono::milliseconds>(limit, kLongest);
}

Error no_such_ticket() {
  return {ErrorCode::kBadArgument, "there is no such ticket, or it was waited for already"};
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

// On duty from before the hand-over, this thread hears of what it has finished without being woken:
// neither this rank's own thread nor the others' have to make a system call.
std::optional<Status> Engine::run(const std::function<Result<Ticket>()>& hand_over,
                                  std::optional<std::chrono::milliseconds> limit, Ticket& pending) {
  const std::optional<Deadline> deadline = limit ? std::optional(in(*limit)) : std::nullopt;
  // A world of one carries out as it hands over.
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

// Nobody waits for it now, though somebody wants it: the session's thread sees to it that a stopped
// rank is noticed. The first of some tells the thread. With the table locked.
void Engine::watch_over(Operation& operation) {
  if (std::exchange(operation.unattended, true)) return;
  if (unattended_++ == 0) bell().ring();
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
  const std::vector<int> departed = monitor()->departed();
  if (departed.empty()) return;
  if (const Duty duty = try_duty()) end_without(departed, seen_before);
}

}  // namespace muster::collective::session
