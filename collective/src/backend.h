// Who carries collectives out: shared memory on one host, TCP between hosts, both together, or a
// plug-in (MPI, NCCL). The Communicator has checked the arguments, numbered the call and chosen.
//
// Every rank of a world has the same kind of backend and makes the same calls in the same order.
// Results are the same bits on every rank and on every run of the same world.
//
// Errors: a backend reports through the world's Monitor (fail()) and returns what it gives back,
// so that all ranks end with one sentence. Thread-safety: one call at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "call/call.h"
#include "muster/collective/result.h"
#include "muster/collective/types.h"

namespace muster::collective {

/// A tensor that is reduced: `count` elements of `in` into `out`, which are the same place or do
/// not overlap.
struct Piece {
  const std::byte* in;
  std::byte* out;
  std::uint64_t count;
};

/// Tensors of one type that are reduced one after the other, as if they lay side by side: a backend
/// goes over them in chunks that may span several, and copies none to fuse it.
using Pieces = std::span<const Piece>;

/// A length for every rank, by rank.
using PerRank = std::span<const std::uint64_t>;

class Backend {
 public:
  virtual ~Backend() = default;

  /// `call` tells type, reduction, root and count of the methods below; its sequence is set.
  virtual Status all_reduce(const Call& call, Pieces pieces) = 0;

  /// Rank r gets the `counts[r]` elements that follow those of the ranks before it.
  virtual Status reduce_scatter(const Call& call, const std::byte* in, std::byte* out,
                                PerRank counts) = 0;

  /// Rank r's `bytes[r]` bytes go behind those of the ranks before it. `part` may be their place in
  /// `all` already.
  virtual Status all_gather(const Call& call, const std::byte* part, std::byte* all,
                            PerRank bytes) = 0;

  /// `out` is used on the root only.
  virtual Status reduce(const Call& call, const std::byte* in, std::byte* out) = 0;
  virtual Status broadcast(const Call& call, std::byte* data) = 0;

  /// Sends `sent[r]` bytes to rank r from `in`, receives `received[r]` into `out`, both packed by
  /// rank. Where the two sides of a pair do not agree on its length, it is a mismatch.
  virtual Status all_to_all(const Call& call, const std::byte* in, PerRank sent, std::byte* out,
                            PerRank received) = 0;
  virtual Status barrier(const Call& call) = 0;

  /// Point to point, between two ranks, in the order of the calls of that pair. Both must name the
  /// same length. A send may return before the receive is called, and may also wait for it.
  virtual Status send(const std::byte* data, std::uint64_t bytes, int to) = 0;
  virtual Status receive(std::byte* data, std::uint64_t bytes, int from) = 0;

  /// How all_reduce would carry out `bytes` bytes, for people: "shared memory, pipelined, cells of
  /// 64 KiB".
  virtual std::string explain(DataType type, std::uint64_t bytes) const = 0;
};

}  // namespace muster::collective
