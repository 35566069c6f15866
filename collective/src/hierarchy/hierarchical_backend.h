// Collectives of a world in which hosts have several ranks: shared memory within a host, TCP
// between hosts, so that as few bytes as possible cross the network, and only once.
//
//   all_reduce, every host with k ranks     reduce_scatter on the host; each rank reduces its slice
//   (the usual case)                        with the ranks of its number on the other hosts, all k
//                                           at the same time; all_gather on the host
//   all_reduce, hosts of unequal width      reduce to the first rank of the host, all_reduce among
//                                           the first ranks, broadcast on the host
//   broadcast, barrier                      likewise
//
// All other collectives use TCP from rank to rank. Long buffers are processed in chunks that stay
// in the cache. Between the stages 16-bit floats are float32, and are rounded once.
//
// Ownership: refers to the world. Thread-safety: one call at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "tcp/program.h"
#include "tcp/tcp_backend.h"
#include "world/world.h"

namespace muster::collective {

/// Elements from `begin` on. If they are contiguous, `in` and `out` point to them; otherwise both
/// are null, and the chunk is packed before and unpacked afterwards.
struct Chunk {
  std::uint64_t begin = 0;  // in bytes
  std::uint64_t bytes = 0;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
};

/// A list of tensors in chunks: parts of long tensors, several short tensors together. Points into
/// the caller's buffers.
class Chunks {
 public:
  static constexpr std::uint64_t kBytes = std::uint64_t{4} << 20;

  Chunks(Pieces pieces, std::size_t element)
      : in_(tcp::Memory::inputs_of(pieces, element)),
        out_(tcp::Memory::outputs_of(pieces, element)) {}

  std::uint64_t bytes() const { return in_.bytes(); }

  /// The chunk that begins at `begin`, which is below bytes().
  Chunk at(std::uint64_t begin) const {
    const tcp::Segment in = in_.at(begin);
    const std::uint64_t rest = std::min(kBytes, in_.bytes() - begin);
    const bool is_worth_it = in.bytes >= kBytes / 16 || in.bytes >= rest;
    if (!is_worth_it) return {begin, rest};
    return {begin, std::min(kBytes, in.bytes), in.data, out_.at(begin).data};
  }

  const tcp::Memory& in() const { return in_; }
  const tcp::Memory& out() const { return out_; }

 private:
  tcp::Memory in_;
  tcp::Memory out_;
};

class HierarchicalBackend : public Backend {
 public:
  /// `local` spans the ranks of this host, numbered in the order of the topology. It is null if the
  /// host has one rank only. Constructed by all ranks at the same time.
  HierarchicalBackend(World& world, std::unique_ptr<Backend> local);

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

 private:
  // The kernels and types of the stages of one all_reduce.
  struct Stages;

  bool is_first() const { return local_rank_ == 0; }

  Status enter(const Call& call);
  Status reduce_chunk(const Stages& stages, Chunk chunk);
  Status reduce_in_slices(const Stages& stages, const std::byte* in, std::byte* out,
                          std::uint64_t count);
  Status reduce_at_first(const Stages& stages, const std::byte* in, std::byte* out,
                         std::uint64_t count);
  Status reduce_between_hosts(const Stages& stages, std::byte* data, std::uint64_t count);
  Status broadcast_on_host(std::byte* data, std::uint64_t bytes, int root);

  Call local_call(CallKind kind, std::uint64_t count);

  World& world_;
  const Topology& topology_;
  int local_rank_;
  int local_size_;
  bool is_even_;  // all hosts have the same number of ranks
  std::unique_ptr<Backend> local_;
  tcp::TcpBackend flat_;
  std::unique_ptr<tcp::TcpBackend> cross_;  // with one rank of each host; null if this is not one
  tcp::Scratch packed_ = {};
  tcp::Scratch widened_ = {};
  tcp::Scratch slice_ = {};
  tcp::Scratch narrow_ = {};
  std::uint64_t local_calls_ = 0;
};

}  // namespace muster::collective
