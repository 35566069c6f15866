// An operation that was handed over, from its ticket to its outcome, and the table of all of them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "muster/collective/session.h"
#include "session/request.h"
#include "transport/deadline.h"

namespace muster::collective {
class Monitor;
}

namespace muster::collective::session {

// A rank that is stopped is found out by asking; a rank that only computes for a while should not
// be asked all the time. The same holds whether a thread waits for the operation or none does.
inline constexpr std::chrono::milliseconds kUntilOthersAreAsked{100};
inline constexpr std::chrono::milliseconds kBetweenLooks{500};

struct Operation {
  std::string name;
  Request request;
  std::vector<Piece> pieces;      // all_reduce
  const std::byte* in = nullptr;  // the others
  std::byte* out = nullptr;
  Allocate allocate;          // all_gather, all_to_all
  Deadline handed_over = {};  // only with a timeline

  // Written by who carries it out, read once `state` says that it is done.
  Status outcome;

  /// Nobody sleeps on it; somebody does; done.
  enum State : std::uint32_t { kPending, kAwaited, kDone };
  std::atomic<std::uint32_t> state{kPending};

  // With the table's owner's lock.
  std::function<void(const Status&)> then;
  std::uint32_t generation = 0;
  std::uint32_t index = 0;
  bool in_use = false;
  bool claimed = false;     // somebody waits for it already
  bool unattended = false;  // somebody does not wait now, but wants it

  bool is_done() const { return state.load(std::memory_order_acquire) == kDone; }

  /// Sleeps until it is done, or until `limit`. From a moment on the other ranks are asked whether
  /// they are there, and `look` is called now and then.
  void sleep_until_done(Monitor* monitor, std::optional<Deadline> limit,
                        const std::function<void()>& look);
};

/// Operations in places that are used again; a ticket is a place and how often it was used, so that
/// an old ticket is told from a new one. Thread-safety: under its owner's lock.
class Operations {
 public:
  Operation& take();
  void give_back(Operation& operation);

  /// Null where there is no such ticket any more.
  Operation* find(Ticket ticket);
  static Ticket ticket_of(const Operation& operation);

 private:
  std::deque<Operation> all_;
  std::vector<Operation*> free_;
};

}  // namespace muster::collective::session
