// A communicator joins the ranks of one job and runs collectives over them, ring algorithms over
// TCP (README.md: which, and where they come from).
//
//   Result<Options> options = bootstrap_from_environment();
//   Result<Communicator> world = Communicator::connect(*options);
//   Status averaged = world->all_reduce(gradients.data(), gradients.size(), ReduceOp::kAverage);
//
// Every rank makes the same calls in the same order, with the same arguments but for the data.
// Where two neighbours differ, all ranks get kMismatch with both calls in the message, at the
// latest in their next call.
//
// Results are the same bits on every rank, and the same bits on each run of the same world size:
// each piece of the buffer is reduced once, in the order of the ranks, and then copied.
//
// Failure: a rank that dies, or does not answer within the timeout, turns the pending call and
// every later one on all other ranks into an Error that names it. The contents of the buffers of
// a failed call are unspecified. A failed communicator stays failed: destroy it.
//
// Ownership: buffers belong to the caller and are touched only during the call. Counts are
// elements, 64 bits wide.
// Thread-safety: one call at a time on one communicator; different ones do not share anything, so
// several ranks may live in one process. Nothing runs in the background between the calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/collective/bootstrap.h"
#include "muster/collective/result.h"
#include "muster/collective/types.h"

namespace muster::collective {

class Communicator {
 public:
  /// Waits for all ranks and joins them in a ring. A world of one opens no socket.
  ///
  /// Errors: kConfiguration, kAuthentication, kMismatch (world size, a rank that came twice),
  /// kTimeout (naming the ranks that did not come), kPeerLost, kSystem.
  static Result<Communicator> connect(const Options& options);

  /// Leaves in order: ranks that still wait for this one are told that it left.
  ~Communicator();
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;

  int rank() const;
  int size() const;

  /// The host name by which the other ranks know this one.
  const std::string& host() const;

  /// Reduces `count` elements element by element over all ranks, in place. `data` is aligned for
  /// its type; it may be null where `count` is 0.
  Status all_reduce(void* data, std::uint64_t count, DataType type, ReduceOp op);

  template <typename T>
  Status all_reduce(T* data, std::uint64_t count, ReduceOp op) {
    return all_reduce(data, count, kDataTypeOf<T>, op);
  }

  /// Copies `bytes` bytes of the root's `data` over everyone else's.
  Status broadcast(void* data, std::uint64_t bytes, int root);

  /// Places the `bytes_per_rank` bytes of each rank's `part` at rank * bytes_per_rank of `all`,
  /// which has room for size() parts. The two may not overlap.
  Status all_gather(const void* part, std::uint64_t bytes_per_rank, void* all);

  /// Returns once every rank has entered.
  Status barrier();

 private:
  class World;
  explicit Communicator(std::unique_ptr<World> world);

  std::unique_ptr<World> world_;  // null only when moved from
};

}  // namespace muster::collective
