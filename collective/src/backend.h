// The interface of the backends, which execute collectives: shared memory on one host, TCP between
// hosts, both together, or a plug-in (MPI, NCCL). The Communicator checks the arguments, numbers
// the calls and chooses the backend.
//
// Every rank of a world has the same kind of backend and makes the same calls in the same order.
// Results have the same bits on every rank and in every run of the same world.
//
// Errors: a backend reports a failure to the world's Monitor (fail()) and returns the result, so
// that all ranks return the same error. Thread-safety: one call at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "call/call.h"
#include "muster/collective/result.h"
#include "muster/collective/types.h"

namespace muster::collective {

/// A tensor of a reduction: `count` elements of `in` into `out`, which are equal or do not overlap.
struct Piece {
  const std::byte* in;
  std::byte* out;
  std::uint64_t count;
};

/// Tensors of one type that are reduced as if they were contiguous: a backend processes them in
/// chunks that may span several tensors, without copying them together.
using Pieces = std::span<const Piece>;

/// A length for each rank, by rank.
using PerRank = std::span<const std::uint64_t>;

class Backend {
 public:
  virtual ~Backend() = default;

  /// `call` has the type, reduction, root and count of the methods below; its sequence is set.
  virtual Status all_reduce(const Call& call, Pieces pieces) = 0;

  /// Rank r gets the `counts[r]` elements that follow those of the ranks before it.
  virtual Status reduce_scatter(const Call& call, const std::byte* in, std::byte* out,
                                PerRank counts) = 0;

  /// The `bytes[r]` bytes of rank r follow those of the ranks before it. `part` may be this rank's
  /// part of `all`.
  virtual Status all_gather(const Call& call, const std::byte* part, std::byte* all,
                            PerRank bytes) = 0;

  /// `out` is used on the root only.
  virtual Status reduce(const Call& call, const std::byte* in, std::byte* out) = 0;
  virtual Status broadcast(const Call& call, std::byte* data) = 0;

  /// Sends `sent[r]` bytes to rank r from `in`, receives `received[r]` into `out`, both packed by
  /// rank. Different lengths on the two sides of a pair are a mismatch.
  virtual Status all_to_all(const Call& call, const std::byte* in, PerRank sent, std::byte* out,
                            PerRank received) = 0;
  virtual Status barrier(const Call& call) = 0;

  /// Point-to-point messages between two ranks, in the order of the calls of that pair. Both ranks
  /// pass the same length. A send may return before the receive is called, and may also wait for
  /// it.
  virtual Status send(const std::byte* data, std::uint64_t bytes, int to) = 0;
  virtual Status receive(std::byte* data, std::uint64_t bytes, int from) = 0;

  /// The algorithm of all_reduce for `bytes` bytes, for people: "shared memory, pipelined, cells of
  /// 64 KiB".
  virtual std::string explain(DataType type, std::uint64_t bytes) const = 0;
};

}  // namespace muster::collective
