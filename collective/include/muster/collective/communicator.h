// A communicator joins the ranks of one job and runs collectives over them: in shared memory where
// ranks are on one host, over TCP between hosts, both together where there are several on each
// (docs/collective.md: which algorithm when, what it costs, where it comes from).
//
//   Result<Options> options = bootstrap_from_environment();
//   Result<Communicator> world = Communicator::connect(*options);
//   Status averaged = world->all_reduce(gradients.data(), gradients.size(), ReduceOp::kAverage);
//
// Every rank makes the same calls in the same order, with the same arguments but for the data.
// Where two ranks differ, all get kMismatch with both calls in the message, at the latest in their
// next call.
//
// Results are the same bits on every rank, and the same bits on each run of the same world: each
// element is reduced in one order, once, and then copied.
//
// Failure: a rank that dies or stops answering turns the pending call and every later one on all
// other ranks into an Error that names it and its host. The contents of the buffers of a failed
// call are unspecified. A failed communicator stays failed: destroy it.
//
// Ownership: buffers belong to the caller and are touched only during the call. Counts are
// elements, 64 bits wide. A buffer may have any alignment and may be null where its count is 0.
// `in` and `out` are the same place or do not overlap; what overlaps in part is kBadArgument.
// Thread-safety: one call at a time on one communicator; different ones do not share anything, so
// several ranks may live in one process. Between the calls one thread listens, asleep.
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
  /// Errors: kConfiguration, kAuthentication, kMismatch (world size, a rank that came twice),
  /// kTimeout (naming the ranks that did not come), kPeerLost, kSystem.
  static Result<Communicator> connect(const Options& options);

  /// Leaves in order: ranks that still wait for this one are told that it left.
  ~Communicator();
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;

  int rank() const;
  int size() const;

  /// The place among the ranks of this host, and that host's among the hosts.
  int local_rank() const;
  int local_size() const;
  int cross_rank() const;
  int cross_size() const;

  /// The host name by which the other ranks know this one.
  const std::string& host() const;

  /// A communicator of its own for some of the ranks (a process set), in which they are numbered in
  /// the order given. Called by those ranks alone, with the same list; it does not need the others.
  ///
  /// Errors: kBadArgument where the list names a rank twice, one outside of the world, or not this
  /// one; those of connect().
  Result<Communicator> group(std::span<const int> ranks);

  /// Reduces `count` elements element by element over all ranks.
  Status all_reduce(const void* in, void* out, std::uint64_t count, DataType type,
                    const Reduction& reduction);

  /// Several tensors in one call, each as with a call of its own, without copying them together.
  Status all_reduce(std::span<const Tensor> tensors, DataType type, const Reduction& reduction);

  /// In place.
  Status all_reduce(void* data, std::uint64_t count, DataType type, const Reduction& reduction) {
    return all_reduce(data, data, count, type, reduction);
  }
  template <typename T>
  Status all_reduce(T* data, std::uint64_t count, const Reduction& reduction) {
    return all_reduce(data, data, count, kDataTypeOf<T>, reduction);
  }

  /// Reduces size() times `count_per_rank` elements; rank r gets the r-th part of the result.
  Status reduce_scatter(const void* in, void* out, std::uint64_t count_per_rank, DataType type,
                        const Reduction& reduction);

  /// The same with parts of unequal lengths: `counts` has one for every rank.
  Status reduce_scatter(const void* in, void* out, std::span<const std::uint64_t> counts,
                        DataType type, const Reduction& reduction);

  /// Places the `bytes_per_rank` bytes of each rank's `part` at rank * bytes_per_rank of `all`,
  /// which has room for size() parts. `part` may be its own place there.
  Status all_gather(const void* part, std::uint64_t bytes_per_rank, void* all);

  /// The same with parts of unequal lengths, packed by rank.
  Status all_gather(const void* part, void* all, std::span<const std::uint64_t> bytes_of_rank);

  /// Copies `bytes` bytes of the root's `data` over everyone else's.
  Status broadcast(void* data, std::uint64_t bytes, int root);

  /// all_reduce whose result only the root needs; `out` may be null elsewhere.
  Status reduce(const void* in, void* out, std::uint64_t count, DataType type,
                const Reduction& reduction, int root);

  /// Sends the r-th `bytes_per_pair` bytes of `in` to rank r, and receives its for this rank at the
  /// r-th place of `out`. The two may not overlap.
  Status all_to_all(const void* in, void* out, std::uint64_t bytes_per_pair);

  /// The same with lengths of their own for every pair: `sent[r]` bytes to rank r, `received[r]`
  /// from it, both packed by rank. They have to fit together: sent[r] here is received[this rank]
  /// there.
  Status all_to_all(const void* in, std::span<const std::uint64_t> sent, void* out,
                    std::span<const std::uint64_t> received);

  /// Returns once every rank has entered.
  Status barrier();

  /// Between two ranks, in the order of their calls; both name the same length. A send may wait
  /// until it is received.
  Status send(const void* data, std::uint64_t bytes, int to);
  Status receive(void* data, std::uint64_t bytes, int from);

  /// Memory that the other ranks of this host have mapped too: tensors that live in it are reduced
  /// where they are, not copied to meet the others'. Aligned to 64 bytes. Null where there is no
  /// more, or no shared memory; ordinary memory then does as well, more slowly. It is given back by
  /// free_shared(), or with the communicator. Worth it when all ranks use it for a call.
  void* allocate_shared(std::uint64_t bytes);
  void free_shared(void* memory);

  /// How all_reduce would carry out `bytes` bytes, and why, for people: one line.
  std::string explain(DataType type, std::uint64_t bytes) const;

 private:
  friend class Session;
  class Impl;
  explicit Communicator(std::unique_ptr<Impl> impl);
  static Result<Communicator> over(std::unique_ptr<World> world);

  std::unique_ptr<Impl> impl_;  // null only when moved from
};

}  // namespace muster::collective
