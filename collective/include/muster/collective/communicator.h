// A communicator joins the ranks of one job and runs collectives over them: in shared memory on one
// host, over TCP between hosts, both if hosts have several ranks. docs/collective.md documents the
// algorithms and their costs.
//
//   Result<Options> options = bootstrap_from_environment();
//   Result<Communicator> world = Communicator::connect(*options);
//   Status averaged = world->all_reduce(gradients.data(), gradients.size(), ReduceOp::kAverage);
//
// Every rank makes the same calls in the same order, with the same arguments except for the data.
// If two ranks differ, all ranks return kMismatch with both calls in the message, at the latest in
// their next call.
//
// Results have the same bits on every rank and in each run of the same world: each element is
// reduced once, in one order, and then copied.
//
// Failure: if a rank dies or stops answering, the pending call and every later call on all other
// ranks return an Error that names the rank and its host. The contents of the buffers of a failed
// call are unspecified. A failed communicator stays failed: destroy it.
//
// Ownership: buffers belong to the caller and are used only during the call. Counts are 64-bit
// numbers of elements. A buffer may have any alignment, and may be null if its count is 0. `in` and
// `out` are equal or do not overlap; a partial overlap is kBadArgument. Thread-safety: one call at
// a time on one communicator. Communicators share no state, so several ranks may live in one
// process. Between calls one thread waits for messages.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "muster/collective/bootstrap.h"
#include "muster/collective/result.h"
#include "muster/collective/types.h"

namespace muster::collective {

struct World;

/// A tensor of a list: `count` elements of `in` are reduced into `out`.
struct Tensor {
  const void* in;
  void* out;
  std::uint64_t count;
};

class Communicator {
 public:
  /// Waits for all ranks and joins them. A world of one opens no socket.
  ///
  /// Errors: kConfiguration, kAuthentication, kMismatch (world size, two processes with one rank),
  /// kTimeout (naming the missing ranks), kPeerLost, kSystem.
  static Result<Communicator> connect(const Options& options);

  /// Leaves the world: ranks that still wait for this rank receive an error that it has left.
  ~Communicator();
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;

  int rank() const;
  int size() const;

  /// The index among the ranks of this host, and the index of this host among the hosts.
  int local_rank() const;
  int local_size() const;
  int cross_rank() const;
  int cross_size() const;

  /// The host name of this rank on the other ranks.
  const std::string& host() const;

  /// Makes an independent communicator for some of the ranks (a process set), numbered in the given
  /// order. Only those ranks call it, with the same list.
  ///
  /// Errors: kBadArgument if the list has duplicates, a rank outside of the world, or not this
  /// rank; those of connect().
  Result<Communicator> group(std::span<const int> ranks);

  /// Reduces `count` elements element by element over all ranks.
  Status all_reduce(const void* in, void* out, std::uint64_t count, DataType type,
                    const Reduction& reduction);

  /// Several tensors in one call, with the results of separate calls, without copying them
  /// together.
  Status all_reduce(std::span<const Tensor> tensors, DataType type, const Reduction& reduction);

  /// Reduces in place: `data` is the input and the output.
  Status all_reduce(void* data, std::uint64_t count, DataType type, const Reduction& reduction) {
    return all_reduce(data, data, count, type, reduction);
  }
  template <typename T>
  Status all_reduce(T* data, std::uint64_t count, const Reduction& reduction) {
    return all_reduce(data, data, count, kDataTypeOf<T>, reduction);
  }

  /// Reduces size() * `count_per_rank` elements; rank r gets part r of the result.
  Status reduce_scatter(const void* in, void* out, std::uint64_t count_per_rank, DataType type,
                        const Reduction& reduction);

  /// The same with parts of different lengths: `counts` has one for each rank.
  Status reduce_scatter(const void* in, void* out, std::span<const std::uint64_t> counts,
                        DataType type, const Reduction& reduction);

  /// Writes the `bytes_per_rank` bytes of each rank's `part` to offset rank * bytes_per_rank of
  /// `all`, which has room for size() parts. `part` may be this rank's own part of `all`.
  Status all_gather(const void* part, std::uint64_t bytes_per_rank, void* all);

  /// The same with parts of unequal lengths, packed by rank.
  Status all_gather(const void* part, void* all, std::span<const std::uint64_t> bytes_of_rank);

  /// Copies `bytes` bytes of the root's `data` to `data` of all other ranks.
  Status broadcast(void* data, std::uint64_t bytes, int root);

  /// all_reduce whose result only the root needs; `out` may be null elsewhere.
  Status reduce(const void* in, void* out, std::uint64_t count, DataType type,
                const Reduction& reduction, int root);

  /// Sends part r of `in` to rank r, and receives the part of rank r in part r of `out`; parts have
  /// `bytes_per_pair` bytes. `in` and `out` must not overlap.
  Status all_to_all(const void* in, void* out, std::uint64_t bytes_per_pair);

  /// The same with a length for each pair: `sent[r]` bytes to rank r, `received[r]` from it, both
  /// packed by rank. sent[r] must equal received[this rank] on rank r.
  Status all_to_all(const void* in, std::span<const std::uint64_t> sent, void* out,
                    std::span<const std::uint64_t> received);

  /// Returns once every rank has entered.
  Status barrier();

  /// Point-to-point messages between two ranks, in the order of their calls. Both ranks pass the
  /// same length. A send may wait until it is received. Only in a world of one rank may the other
  /// rank be this rank itself.
  Status send(const void* data, std::uint64_t bytes, int to);
  Status receive(void* data, std::uint64_t bytes, int from);

  /// Allocates memory that the other ranks of this host have mapped too. Tensors in it are reduced
  /// in place instead of being copied to staging memory, if all ranks use it for a call. Aligned to
  /// 64 bytes. Null if none is left, or without shared memory; ordinary memory works too, more
  /// slowly. Freed by free_shared(), or with the communicator.
  void* allocate_shared(std::uint64_t bytes);
  void free_shared(void* memory);

  /// One line for people: the algorithm of all_reduce for `bytes` bytes, and why.
  std::string explain(DataType type, std::uint64_t bytes) const;

 private:
  friend class Session;
  class Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  static Result<Communicator> over(std::unique_ptr<World> world);

  std::unique_ptr<Impl> impl_;  // null only when moved from
};

}  // namespace muster::collective
