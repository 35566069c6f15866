// Collectives of a world that spans hosts of which some have several ranks: in shared memory within
// a host, over TCP between hosts, so that as little as possible crosses the network, and once.
//
//   all_reduce, every host with k ranks     reduce_scatter on the host; each rank reduces its slice
//   (the usual case)                        with the ranks of its number on the other hosts, all k
//                                           at the same time; all_gather on the host
//   all_reduce, hosts of unlike width       reduce to the first rank of the host, all_reduce among
//                                           those, broadcast on the host
//   broadcast, barrier                      along the same lines
//
// What remains goes over TCP from rank to rank. Long buffers go through in chunks that stay in the
// cache. Between the stages 16-bit floats are float32, and are rounded once.
//
// Ownership: refers to the world. Thread-safety: one call at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend.h"
#include "hierarchy/chunks.h"
#include "tcp/tcp_backend.h"
#include "world/world.h"

namespace muster::collective {

class HierarchicalBackend : public Backend {
 public:
  /// `local` spans the ranks of this host, numbered in the order of the topology; it is null where
  /// there is but this one. Constructed by all ranks at the same time.
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
