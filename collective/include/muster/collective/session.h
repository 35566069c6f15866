// A session runs collectives in the background, by name: a training program hands over each
// gradient as soon as it is ready, and continues to compute.
//
//   Result<Session> session = Session::start(std::move(world));
//   Result<Ticket> ticket =
//       session->all_reduce("layer1.weight", g, g, n, type, ReduceOp::kAverage);
//   ...
//   Status averaged = session->wait(*ticket);
//
// Ranks may hand over operations in any order. An operation starts once every rank has handed over
// its name; an operation that waits for a rank does not delay others. Operations that are ready at
// the same time are executed together, tensor by tensor, without a copy into one buffer. After the
// first time, a name is sent as a number.
//
// If two ranks hand over one name with different operations, types, lengths, roots or shapes, that
// operation fails with kMismatch on every rank. Every other error fails the world.
//
// Ownership: buffers belong to the caller, who must not use them until the operation is done. An
// operation is refused if it writes memory that an operation in flight uses, or reads memory that
// one writes; several operations may read the same memory.
// Thread-safety: all methods, from any thread. An idle session has no timer and uses no processor
// time. A waiting thread sleeps, after it has executed ready operations.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "muster/collective/communicator.h"
#include "muster/collective/result.h"
#include "muster/collective/types.h"

namespace muster::collective {

struct SessionOptions {
  /// Chrome trace file (chrome://tracing, Perfetto) of this rank's operations; empty: none.
  /// MUSTER_COLLECTIVE_TIMELINE; "%r" is replaced by the rank.
  std::string timeline = {};

  /// The time after which an operation that some ranks have not handed over is reported, once, with
  /// those ranks; 0: never. Rank 0 reports for all ranks. MUSTER_COLLECTIVE_STALL_SECONDS.
  std::chrono::milliseconds stall_warning{60'000};

  /// The time after which such an operation fails on the ranks that have handed it over, with
  /// kTimeout and the missing ranks; 0: never, but the world still fails after Options::timeout.
  /// Rank 0's value applies to all ranks. MUSTER_COLLECTIVE_STALL_LIMIT_SECONDS.
  std::chrono::milliseconds stall_limit{0};

  /// Receives the report, on a thread of the session; empty: reports go to standard error.
  std::function<void(const std::string&)> on_stall = {};

  /// The length of the windows in which rank 0 looks for a rank or a TCP connection that slows down
  /// all others (docs/collective.md); 0: never. All ranks pass the same value.
  /// MUSTER_COLLECTIVE_SLOW_SECONDS.
  std::chrono::milliseconds slow_window{30'000};

  /// Receives a sentence when a slow rank or connection is found, on a thread of the session, which
  /// must not be used in the call; empty: the sentence goes to standard error.
  std::function<void(const std::string&)> on_slow = {};

  /// The maximum bytes of operations that are executed together; 0: automatic.
  /// MUSTER_COLLECTIVE_FUSION_BYTES.
  std::uint64_t fusion_bytes = 0;

  /// Measures several fusion sizes in the first steps, keeps the best, and writes the measurements
  /// to `autotune_log` (CSV). Rank 0's value applies to all ranks, as for `fusion_bytes`.
  /// MUSTER_COLLECTIVE_AUTOTUNE=1, MUSTER_COLLECTIVE_AUTOTUNE_LOG.
  bool autotune = false;
  std::string autotune_log = {};
};

/// Returns `given` with its empty fields set from the environment.
Result<SessionOptions> session_options_from_environment(SessionOptions given = {});

/// Identifies an operation. A value; 0: no operation.
struct Ticket {
  std::uint64_t id = 0;
};

/// The name of an operation, and optionally its shape: a text that must be equal on all ranks and
/// that the message of a mismatch contains, for example "float32[?, 3]" for tensors that may differ
/// in their first dimension only. Beyond 4,000 bytes the shape is compared by its hash.
///
/// A view: it converts from everything that a std::string_view does. Its source must live until the
/// call returns.
struct Label {
  template <std::convertible_to<std::string_view> Text>
  Label(const Text& text, std::string_view agreed = {}) : name(text), shape(agreed) {}

  std::string_view name;
  std::string_view shape;
};

/// Allocates the result of an all_gather or all_to_all. Called on a thread of the session once all
/// lengths are known, with the bytes of each rank; returns memory for all of them, or null.
using Allocate = std::function<void*(std::span<const std::uint64_t> bytes_of_rank)>;

/// The memory that an Allocate returns, if it is known when the operation is handed over. It is
/// compared with the memory of the operations in flight.
using KnownResult = std::span<const std::byte>;

/// The sender of a receive that takes a message of any rank.
inline constexpr int kAnyRank = -1;

namespace session {
class Engine;
}

class Session {
 public:
  /// Takes over the communicator. Called by all of its ranks.
  ///
  /// Errors: kSystem, kPeerLost.
  static Result<Session> start(Communicator world, SessionOptions options = {});

  /// Calls leave() and frees everything. No thread may be in a call.
  ~Session();
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;

  /// Fails pending operations and leaves: every wait returns, and later operations get a ticket
  /// that fails. A second call does nothing. Must not be called from a callback.
  void leave();

  int rank() const;
  int size() const;

  /// Errors of all hand-overs: kBadArgument, also for a name that is in flight, and for memory that
  /// an operation in flight uses. An operation that is handed over after the world has failed, or a
  /// rank has left, gets a ticket that fails.
  Result<Ticket> all_reduce(const Label& label, const void* in, void* out, std::uint64_t count,
                            DataType type, const Reduction& reduction);

  /// A group of tensors, as one operation. No output may overlap another tensor of the group.
  Result<Ticket> all_reduce(const Label& label, std::span<const Tensor> tensors, DataType type,
                            const Reduction& reduction);

  /// `counts` are the elements of each rank's part.
  Result<Ticket> reduce_scatter(const Label& label, const void* in, void* out,
                                std::span<const std::uint64_t> counts, DataType type,
                                const Reduction& reduction);

  /// The parts may have different lengths, which need not be known to other ranks.
  Result<Ticket> all_gather(const Label& label, const void* part, std::uint64_t bytes,
                            Allocate allocate, KnownResult result = {});
  Result<Ticket> broadcast(const Label& label, void* data, std::uint64_t bytes, int root);

  /// Sends `sent[r]` bytes to rank r, packed by rank; `allocate` provides the memory of the result.
  Result<Ticket> all_to_all(const Label& label, const void* in, std::span<const std::uint64_t> sent,
                            Allocate allocate, KnownResult result = {});
  Result<Ticket> barrier(const Label& label);

  /// all_reduce whose result only the root needs; `out` may be null elsewhere.
  Result<Ticket> reduce(const Label& label, const void* in, void* out, std::uint64_t count,
                        DataType type, const Reduction& reduction, int root);

  /// Sends `bytes` bytes of each rank to the root, whose `allocate` provides the memory; those of
  /// other ranks are called with zeros.
  Result<Ticket> gather(const Label& label, const void* part, std::uint64_t bytes, int root,
                        Allocate allocate, KnownResult result = {});

  /// The root sends `sent[r]` bytes to rank r, packed by rank; other ranks pass nothing.
  Result<Ticket> scatter(const Label& label, const void* in, std::span<const std::uint64_t> sent,
                         int root, Allocate allocate, KnownResult result = {});

  /// Messages between two ranks, in the order of their calls for each tag. They need no agreement
  /// of other ranks, and both ranks pass the same length: otherwise both operations fail with
  /// kMismatch (a short message, which may already be sent, on the receiver only). A send is done
  /// when its buffer can be used again, for a long message when it has been received.
  ///
  /// A message fails if the other rank leaves; a receive with kAnyRank if all others have left.
  /// `sender` may be null; otherwise it must live until the receive is done, and has its sender
  /// then.
  Result<Ticket> send(const void* data, std::uint64_t bytes, int to, std::uint64_t tag = 0);
  Result<Ticket> receive(void* data, std::uint64_t bytes, int from, std::uint64_t tag = 0,
                         int* sender = nullptr);

  /// Reports that this rank has no more data. Until all ranks have joined, it contributes zeros to
  /// the all_reduces of other ranks; other operations fail. Done when all ranks have joined;
  /// last_joined() is the last rank then.
  Result<Ticket> join();
  int last_joined() const;

  /// Whether wait() would return at once.
  bool done(Ticket ticket) const;

  /// Waits for the end of an operation and returns its outcome. A ticket is valid for one wait.
  Status wait(Ticket ticket);

  /// The same for a limited time. Returns nullopt if the operation is not done by then; the ticket
  /// stays valid. With a limit of zero it neither executes operations nor sleeps.
  std::optional<Status> wait_for(Ticket ticket, std::chrono::milliseconds limit);

  /// Calls `hand_over`, which must hand over exactly one operation, and waits for it. This is the
  /// fastest way, since the waiting thread is ready to execute the operation before it can become
  /// ready. Returns nullopt at the time limit, and sets `pending` to the ticket.
  std::optional<Status> run(const std::function<Result<Ticket>()>& hand_over,
                            std::optional<std::chrono::milliseconds> limit, Ticket& pending);

  /// Instead of a wait: calls `then` once the operation is done, on a thread of the session or at
  /// once. `then` must not block.
  void when_done(Ticket ticket, std::function<void(const Status&)> then);

  /// Starts or stops the timeline. A new timeline ends the previous one. Errors: kSystem.
  Status start_timeline(const std::string& path);
  Status stop_timeline();

  /// Whether timelines get a mark when operations begin together.
  void mark_cycles(bool marks);

  /// The communicator's own allocate_shared() and free_shared().
  void* allocate_shared(std::uint64_t bytes);
  void free_shared(void* memory);

  /// For the library: a session over a started engine.
  explicit Session(std::unique_ptr<session::Engine> engine);

 private:
  std::unique_ptr<session::Engine> engine_;  // null only when moved from
};

}  // namespace muster::collective
