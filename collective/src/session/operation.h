// Operations of a session: an operation from its hand-over to its outcome, the table of all
// operations, and the executor that runs agreed operations on the backend.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "muster/collective/session.h"
#include "session/channel.h"
#include "session/memory_in_use.h"
#include "session/protocol.h"
#include "shm/layout.h"
#include "transport/socket.h"
#include "world/world.h"

namespace muster::collective {
class Monitor;
}

namespace muster::collective::session {

// Probing detects a rank that is stopped; a rank that only computes for a while should not be
// probed all the time. The same times apply whether or not a thread waits for the operation.
inline constexpr std::chrono::milliseconds kUntilOthersAreAsked{100};
inline constexpr std::chrono::milliseconds kBetweenLooks{500};

struct Operation {
  std::string name;
  Request request;
  std::vector<Piece> pieces;      // all_reduce
  const std::byte* in = nullptr;  // other kinds
  std::byte* out = nullptr;
  Allocate allocate;               // all_gather, all_to_all
  std::vector<MemorySpan> memory;  // all that it reads and writes
  Deadline handed_over = {};       // only with a timeline

  // Written by the thread that executes the operation; valid once `state` is kDone.
  Status outcome;

  /// Pending without a sleeping thread; pending with one; done.
  enum State : std::uint32_t { kPending, kAwaited, kDone };
  std::atomic<std::uint32_t> state{kPending};

  // Guarded by the lock of the table's owner.
  std::function<void(const Status&)> then;
  std::uint32_t generation = 0;
  std::uint32_t index = 0;
  bool in_use = false;
  bool claimed = false;     // a thread waits for it already
  bool unattended = false;  // no thread waits now, but the caller needs the outcome

  // While `unattended`: the neighbours in the order in which the operations became so.
  Operation* older = nullptr;
  Operation* newer = nullptr;

  bool is_done() const { return state.load(std::memory_order_acquire) == kDone; }

  /// Sleeps until the operation is done, or until `limit`. After kUntilOthersAreAsked the other
  /// ranks are probed, and `look` is called every kBetweenLooks.
  void sleep_until_done(Monitor* monitor, std::optional<Deadline> limit,
                        const std::function<void()>& look);
};

/// The table of operations. Slots are reused; a ticket has the index of the slot and its
/// generation, so that old tickets are detected. Thread-safety: guarded by its owner's lock.
class Operations {
 public:
  Operation& take();
  void give_back(Operation& operation);

  /// Null for a ticket that is not valid any more.
  Operation* find(Ticket ticket);
  static Ticket ticket_of(const Operation& operation);

 private:
  std::deque<Operation> all_;
  std::vector<Operation*> free_;
};

}  // namespace muster::collective::session

namespace muster::collective {

/// The parts of the Communicator that a session has taken over.

struct SessionBase {
  World& world;

  /// Used by one thread at a time. Not null.
  Backend* backend = nullptr;

  /// Zeroed memory shared by all ranks, for the session alone. Null unless the world is one host
  /// with shared memory.
  std::byte* shared = nullptr;
  std::uint64_t shared_bytes = 0;

  /// The same for messages between two ranks.
  std::byte* mail = nullptr;
  std::uint64_t mail_bytes = 0;

  /// For `shared` and `mail`.
  session::Reserve reserve = {};

  /// Memory of this rank that other ranks of its host can read. Null if this rank shares no memory.
  shm::Arena* arena = nullptr;

  /// The number of calls of the communicator so far; the session continues the numbers.
  std::uint64_t calls = 0;

  /// Owns all of the above; released when the session has left.
  std::shared_ptr<void> owner = {};
};

/// Session::start() after the Communicator was taken apart.
Result<Session> start_session(SessionBase base, SessionOptions options);

}  // namespace muster::collective

namespace muster::collective::session {

/// Reserves parts of the memory of this host, and fails the world if there is not enough.
Reserve reserve_in(World& world);

/// One operation of a batch. `operation` is null if this rank has joined.
struct Item {
  Operation* operation = nullptr;
  const Agreed* agreed = nullptr;
  Status outcome = {};

  /// all_to_all: the bytes that each rank sends to this rank; empty if they must be exchanged. Not
  /// null.
  std::vector<std::uint64_t>* received = nullptr;
};

/// Executes agreed operations on the backend. It numbers the calls, passes the tensors of a batch
/// as one list, has the caller allocate results, and contributes zeros if this rank has joined.
///
/// Thread-safety: one thread at a time.
class Executor {
 public:
  /// `base` outlives it.
  explicit Executor(SessionBase& base);

  /// Two or more items must have one type and reduction. Sets the outcomes. Items with an error in
  /// `agreed` are not executed.
  void carry_out(std::span<Item> items);

  /// The number of the last call.
  std::uint64_t calls() const { return calls_; }

 private:
  Status all_reduce(std::span<Item> items);
  Status reduce_scatter(Item& item);
  Status all_gather(Item& item);
  Status all_to_all(Item& item);
  Call numbered(Call call);
  void add_zeros(const Request& request, std::byte*& place);
  std::byte* room_for(Operation& operation, std::span<const std::uint64_t> bytes, Status& status);
  Error out_of_memory(const std::string& what);

  SessionBase& base_;
  Backend& backend_;
  std::uint64_t calls_;
  std::vector<Piece> pieces_;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::byte> zeros_;    // the input of a rank that has joined
  std::vector<std::byte> nowhere_;  // receives results for which allocate() failed
};

}  // namespace muster::collective::session
