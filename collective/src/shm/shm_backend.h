// Collectives of the ranks of one host, in the memory that they share.
//
// A call begins with an entry: every rank publishes its call and reads the entries of all ranks
// before it returns. Different calls are therefore detected on all ranks in the same call, and no
// rank is ever more than one call ahead. Small calls need the entries only.
//
// All other data passes in chunks through the staging rings (rings.h): a rank copies a chunk into
// its ring, the other ranks read it there, and the rank copies the next chunk meanwhile. Chunks are
// small enough to stay in a cache.
//
// Buffers in the arena are read and written in place.
#pragma once

#include <optional>
#include <vector>

#include "backend.h"
#include "control/monitor.h"
#include "kernels/kernel.h"
#include "shm/rings.h"
#include "shm/sliced_reduction.h"

namespace muster::collective::shm {

/// The ranks of a host and their shared memory, which is zeros at first. The backend numbers the
/// ranks 0, 1, ... in this order; roots and peers of calls are these numbers.
struct Host {
  int self = 0;
  std::vector<int> ranks;          // of the world, by number
  std::vector<std::string> names;  // of the host of each rank, for messages
  std::byte* memory = nullptr;
  Layout layout;
  const SharedMemory* file = nullptr;  // of `memory`, to reserve it; null: not needed (in tests)
  Monitor* monitor = nullptr;          // null: no failures (in tests)
};

class ShmBackend final : public Backend {
 public:
  /// Constructed by all ranks of the host at the same time.
  static Result<std::unique_ptr<ShmBackend>> create(Host host);

  Status all_reduce(const Call& call, Pieces pieces) override;
  Status reduce_scatter(const Call& call, const std::byte* in, std::byte* out,
                        PerRank counts) override;
  Status all_gather(const Call& call, const std::byte* part, std::byte* all,
                    PerRank bytes) override;
  Status reduce(const Call& call, const std::byte* in, std::byte* out) override;
  Status broadcast(const Call& call, std::byte* data) override;
  Status all_to_all(const Call& call, const std::byte* in, PerRank sent, std::byte* out,
                    PerRank received) override;
  Status barrier(const Call& call) override;
  Status send(const std::byte* data, std::uint64_t bytes, int to) override;
  Status receive(std::byte* data, std::uint64_t bytes, int from) override;
  std::string explain(DataType type, std::uint64_t bytes) const override;

  /// The shared memory, as mapped by this process.
  std::byte* memory() const { return host_.memory; }

  /// The number of processors that the ranks may run on, taken together.
  int processors() const { return processors_; }

 private:
  explicit ShmBackend(Host host);
  Status come_together();
  bool measure_distance(int meetings);
  bool measure_again(std::uint64_t bytes);
  Stores stores_for(std::uint64_t bytes) const;

  // All of these return false once the world has failed.
  void enter(const Call& call, const void* note, std::size_t bytes);
  Entry& next_entry() { return mine().entries[(calls_ + 1) % 2]; }
  bool meet(int peer);
  bool meet_all();
  bool finish_together();
  bool differ(int peer);
  Status outcome(bool ok) const;
  Status fail(Error error);
  std::optional<Error> has_left(const Board& theirs, const Call* call) const;
  std::string describe(DataType type, std::uint64_t bytes) const;

  // If `call` is given, these functions enter it; otherwise the caller has entered it already.
  bool reduce_inline(const Call& call, Pieces pieces, const Kernel& kernel, int only);
  bool reduce_staged(const Call* call, Pieces pieces, const Kernel& kernel, std::uint64_t count,
                     Stores stores);
  bool reduce_directly(const Call& call, Pieces pieces, const Kernel& kernel, std::uint64_t count);
  bool reduce_in_slices(const Call* call, Pieces pieces, const Kernel& kernel, std::uint64_t count,
                        Stores stores, int receiver);
  bool reduce_in_arena(Pieces pieces, const Kernel& kernel, std::uint64_t count);

  EntryNote note_of(Pieces pieces, std::size_t element) const;
  EntryNote note_from(int peer);
  bool arena_serves(std::uint64_t bytes);
  bool lists_in_arena(Pieces pieces, std::vector<std::vector<Piece>>& lists);
  std::uint64_t offset_in_arenas(const std::byte* data, std::uint64_t bytes) const;

  bool gather_inline(const Call& call, const std::byte* part, std::byte* all, PerRank bytes);
  void begin_message(int receiver, std::uint64_t bytes, std::uint64_t number);
  bool reserve_channel(int from, int to, std::uint64_t number);
  bool write_channel(int to, const std::byte* data, std::uint64_t bytes);
  bool read_channel(int from, std::byte* data, std::uint64_t bytes);
  std::uint64_t chunk_bytes() const;

  const Kernel& kernel_for(const Call& call);
  Board& board(int rank) { return rings_.board(rank); }
  Board& mine() { return rings_.board(host_.self); }
  int size() const { return static_cast<int>(host_.ranks.size()); }
  std::string name_of(int place) const;

  static constexpr int kEveryone = SlicedTask::kEveryone;

  // Results of this size are evicted from the caches before they are read. They are written past
  // the caches, unless their lines are cached because of the input.
  static constexpr std::uint64_t kStreamBytes = 12 << 20;

  Host host_;
  Waiter waiter_;
  Rings rings_;
  int processors_ = 1;
  bool far_ = false;
  std::uint64_t large_calls_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t meetings_ = 0;
  KernelSpec kernel_spec_ = {};
  std::optional<Kernel> kernel_;
  std::vector<const std::byte*> inputs_;  // by rank: the inputs of a kernel

  // The position of this rank in a channel, in messages and in bytes.
  struct Progress {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<Progress> sent_;      // by receiver
  std::vector<Progress> received_;  // by sender
  Call message_;                    // the last message that was sent or received
  bool in_adasum_ = false;          // the messages of an adasum belong to its call
};

}  // namespace muster::collective::shm
