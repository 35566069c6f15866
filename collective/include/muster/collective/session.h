// A session runs collectives in the background, by name: training hands over each gradient as soon
// as it is ready and goes on computing.
//
//   Result<Session> session = Session::start(std::move(world));
//   Result<Ticket> ticket =
//       session->all_reduce("layer1.weight", g, g, n, type, ReduceOp::kAverage);
//   ...
//   Status averaged = session->wait(*ticket);
//
// Ranks may hand over in any order: an operation starts once every rank has handed over its name,
// and one that waits for a rank never holds up another. What is ready at the same time is carried
// out together, tensor by tensor, without being copied into one buffer. What was agreed on once is
// recognised by a number from then on.
//
// Where two ranks hand over the same name with another operation, type, length, root or shape, it
// is kMismatch on every rank, for that operation alone. Everything else that fails, fails the
// world.
//
// Ownership: buffers belong to the caller, who leaves them alone until the operation is done.
// Thread-safety: all methods, from any thread. Nothing polls: an idle session costs no processor
// time, and a thread that waits sleeps, after it has helped for a moment.
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
  /// MUSTER_COLLECTIVE_TIMELINE; a "%r" in it becomes the rank.
  std::string timeline = {};

  /// After how long an operation that some ranks have not handed over is reported, once, with those
  /// ranks; 0: never. Rank 0 reports for all. MUSTER_COLLECTIVE_STALL_SECONDS.
  std::chrono::milliseconds stall_warning{60'000};

  /// After how long such an operation fails on all ranks that have handed it over, with kTimeout
  /// and the ranks that have not; 0: never. Rank 0's counts for all.
  /// MUSTER_COLLECTIVE_STALL_LIMIT_SECONDS.
  std::chrono::milliseconds stall_limit{0};

  /// Who gets the report; standard error where there is none. Called on a thread of the session.
  std::function<void(const std::string&)> on_stall = {};

  /// Most bytes that are carried out together; 0: chosen. MUSTER_COLLECTIVE_FUSION_BYTES.
  std::uint64_t fusion_bytes = 0;

  /// Tries fusion sizes on the first steps, keeps the best, and logs what it tried to
  /// `autotune_log` (CSV); rank 0's setting counts, as it does for `fusion_bytes`.
  /// MUSTER_COLLECTIVE_AUTOTUNE=1, MUSTER_COLLECTIVE_AUTOTUNE_LOG.
  bool autotune = false;
  std::string autotune_log = {};
};

/// `given`, completed from the environment: what is set in `given` stands.
Result<SessionOptions> session_options_from_environment(SessionOptions given = {});

/// An operation that was handed over. A value; 0 is none.
struct Ticket {
  std::uint64_t id = 0;
};

/// What an operation is called, and, where that is wanted, what the ranks have to agree on besides:
/// a text that they compare and that the message of a mismatch shows, say "float32[?, 3]" for parts
/// of tensors that may differ in their first dimension only. Of a text beyond 4,000 bytes the rest
/// is compared by its hash.
///
/// A view: it converts from what a std::string_view does, and what it was made from has to live
/// until the call returns.
struct Label {
  template <std::convertible_to<std::string_view> Text>
  Label(const Text& text, std::string_view agreed = {}) : name(text), shape(agreed) {}

  std::string_view name;
  std::string_view shape;
};

/// Where an all_gather puts its result: called once all lengths are known, on a thread of the
/// session, with the bytes of every rank; returns room for all of them, or null where there is
/// none.
using Allocate = std::function<void*(std::span<const std::uint64_t> bytes_of_rank)>;

namespace session {
class Engine;
}

class Session {
 public:
  /// Takes the communicator over. Called by all of its ranks.
  ///
  /// Errors: kSystem, kPeerLost.
  static Result<Session> start(Communicator world, SessionOptions options = {});

  /// leave(), and frees everything. No thread may be in a call any more.
  ~Session();
  Session(Session&& other) noexcept;
  Session& operator=(Session&& other) noexcept;

  /// Fails what is pending and leaves: every wait returns, and what is handed over from now on gets
  /// a ticket that fails. A second time it does nothing. Not from a callback.
  void leave();

  int rank() const;
  int size() const;

  /// Errors of all that hand over: kBadArgument, among them a name that is in flight already. What
  /// is handed over after the world has failed, or a rank has left, gets a ticket that fails.
  Result<Ticket> all_reduce(const Label& label, const void* in, void* out, std::uint64_t count,
                            DataType type, const Reduction& reduction);

  /// A group of tensors that are agreed on and carried out together.
  Result<Ticket> all_reduce(const Label& label, std::span<const Tensor> tensors, DataType type,
                            const Reduction& reduction);

  /// `counts` are elements of every rank's part.
  Result<Ticket> reduce_scatter(const Label& label, const void* in, void* out,
                                std::span<const std::uint64_t> counts, DataType type,
                                const Reduction& reduction);

  /// Ranks may bring parts of different lengths, and do not know each other's.
  Result<Ticket> all_gather(const Label& label, const void* part, std::uint64_t bytes,
                            Allocate allocate);
  Result<Ticket> broadcast(const Label& label, void* data, std::uint64_t bytes, int root);

  /// `sent[r]` bytes to rank r, packed; what comes is allocated for.
  Result<Ticket> all_to_all(const Label& label, const void* in, std::span<const std::uint64_t> sent,
                            Allocate allocate);
  Result<Ticket> barrier(const Label& label);

  /// This rank has no more data: until all have joined, it takes part in the all_reduces of the
  /// others with zeros. Other operations fail while anyone has joined. Done when all have; the
  /// last rank to join stands in last_joined() then.
  Result<Ticket> join();
  int last_joined() const;

  /// Whether wait() would return at once.
  bool done(Ticket ticket) const;

  /// Waits for the end of an operation and gives back its outcome. A ticket is good for one wait.
  Status wait(Ticket ticket);

  /// The same for a limited time. Nothing where the operation is not over by then: its ticket stays
  /// good. With a limit of zero it neither helps nor sleeps.
  std::optional<Status> wait_for(Ticket ticket, std::chrono::milliseconds limit);

  /// Hands one operation over, which is all that `hand_over` may do, and waits for it: on the
  /// quickest way there is, for the waiting thread is ready for what comes before anything can.
  /// `pending` is set to the ticket where the time is over, and there is nothing to return.
  std::optional<Status> run(const std::function<Result<Ticket>()>& hand_over,
                            std::optional<std::chrono::milliseconds> limit, Ticket& pending);

  /// Calls `then` once the operation is done, on a thread of the session or at once; instead of a
  /// wait. It must not block.
  void when_done(Ticket ticket, std::function<void(const Status&)> then);

  /// Begins or ends the timeline. A new timeline ends the previous one. Errors: kSystem.
  Status start_timeline(const std::string& path);
  Status stop_timeline();

  /// Whether timelines get a mark where operations begin together, from now on.
  void mark_cycles(bool marks);

  /// The communicator's own allocate_shared() and free_shared().
  void* allocate_shared(std::uint64_t bytes);
  void free_shared(void* memory);

  /// For the library itself: a session over an engine that has started.
  explicit Session(std::unique_ptr<session::Engine> engine);

 private:
  std::unique_ptr<session::Engine> engine_;  // null only when moved from
};

}  // namespace muster::collective
