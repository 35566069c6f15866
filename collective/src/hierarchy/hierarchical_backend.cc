#include "hierarchy/hierarchical_backend.h"

#include <algorithm>
#include <utility>

#include "kernels/kernel.h"
#include "tcp/plan.h"

namespace muster::collective {
namespace {

// The sub-world that spans the hosts: the rank with index `number` on each host.
std::vector<int> one_of_each_host(const Topology& topology, int number) {
  std::vector<int> ranks;
  for (const std::vector<int>& on_host : topology.ranks_on) {
    ranks.push_back(on_host[static_cast<std::size_t>(number)]);
  }
  return ranks;
}

bool are_even(const Topology& topology) {
  const std::size_t width = topology.ranks_on[0].size();
  return width > 1 && std::ranges::all_of(topology.ranks_on, [width](const auto& ranks) {
           return ranks.size() == width;
         });
}

std::byte* pack(const Chunk& chunk, const tcp::Memory& memory, std::byte* room) {
  for (std::uint64_t at = 0; at < chunk.bytes;) {
    const tcp::Segment stretch = memory.at(chunk.begin + at);
    const std::uint64_t bytes = std::min(stretch.bytes, chunk.bytes - at);
    collective::copy(room + at, stretch.data, bytes);
    at += bytes;
  }
  return room;
}

void unpack(const Chunk& chunk, const std::byte* packed, const tcp::Memory& memory) {
  for (std::uint64_t at = 0; at < chunk.bytes;) {
    const tcp::Segment stretch = memory.at(chunk.begin + at);
    const std::uint64_t bytes = std::min(stretch.bytes, chunk.bytes - at);
    collective::copy(stretch.data, packed + at, bytes);
    at += bytes;
  }
}

}  // namespace

// Inputs are scaled on the host, results at the end. Between the stages elements are `wide`: of the
// type itself, or float32 for 16-bit types.
struct HierarchicalBackend::Stages {
  Stages(const Call& whole, const Chunks& all, int ranks) : call(whole), chunks(all) {
    const KernelSpec spec = spec_of(call.type, call.reduction, ranks);
    wide = wide_type_of(call.type);
    widens = wide != call.type;
    const ReduceOp op = spec.op;
    on_host = Reduction(op, widens ? 1 : spec.prescale, 1);
    between = Reduction(op, 1, 1);
    widen = Kernel::of({.type = call.type, .op = op, .prescale = spec.prescale, .wide_out = true});
    finish = Kernel::of({.type = call.type,
                         .op = op,
                         .postscale = spec.postscale,
                         .divisor = spec.divisor,
                         .wide_in = true});
    needs_finish = widens || spec.postscale != 1 || spec.divisor != 1;
  }

  const Call& call;
  const Chunks& chunks;
  DataType wide;
  bool widens;
  bool needs_finish;
  Reduction on_host = {};
  Reduction between = {};
  Kernel widen;
  Kernel finish;
};

HierarchicalBackend::HierarchicalBackend(World& world, std::unique_ptr<Backend> local)
    : world_(world),
      topology_(world.topology),
      local_rank_(topology_.local_rank_of(world.rank)),
      local_size_(static_cast<int>(topology_.neighbours_of(world.rank).size())),
      is_even_(are_even(topology_)),
      local_(std::move(local)),
      // Its all_reduce is called for Adasum alone, which has no choice of algorithms.
      flat_(world, tcp::TcpBackend::Probing::kNever) {
  if (!is_even_ && !is_first()) return;
  cross_ = std::make_unique<tcp::TcpBackend>(
      world, one_of_each_host(topology_, is_even_ ? local_rank_ : 0), flat_.comparison());
}

// Calls on the host have numbers of their own, since one call of the world makes several of them.
Call HierarchicalBackend::local_call(CallKind kind, std::uint64_t count) {
  return {.kind = kind, .count = count, .sequence = ++local_calls_};
}

// The ranks of the host compare their calls here, before the call is divided into stages. Hosts
// compare their calls in the headers that they exchange.
Status HierarchicalBackend::enter(const Call& call) {
  if (flat_.comparison() != nullptr) flat_.comparison()->enter(call);
  if (cross_) cross_->speak_for(call);
  return local_ ? local_->barrier(call) : Status{};
}

Status HierarchicalBackend::all_reduce(const Call& call, Pieces pieces) {
  if (call.reduction.op == ReduceOp::kAdasum) return flat_.all_reduce(call, pieces);
  if (Status entered = enter(call); !entered) return entered;
  const Chunks chunks(pieces, size_of(call.type));
  const Stages stages(call, chunks, world_.size);
  std::uint64_t begin = 0;
  // Hosts compare their calls even if there are no elements.
  do {
    const Chunk chunk = chunks.bytes() == 0 ? Chunk{} : chunks.at(begin);
    if (Status reduced = reduce_chunk(stages, chunk); !reduced) return reduced;
    begin += chunk.bytes;
  } while (begin < chunks.bytes());
  return {};
}

Status HierarchicalBackend::reduce_chunk(const Stages& stages, Chunk chunk) {
  const bool is_packed = chunk.in == nullptr && chunk.bytes > 0;
  if (is_packed) {
    chunk.out = pack(chunk, stages.chunks.in(), packed_.take(chunk.bytes).data());
    chunk.in = chunk.out;
  }
  const std::uint64_t count = chunk.bytes / size_of(stages.call.type);
  const std::byte* in = chunk.in;
  if (stages.widens && count > 0) {
    std::byte* const wide = widened_.take(count * size_of(stages.wide)).data();
    stages.widen(&chunk.in, 1, wide, count);
    in = wide;
  }
  Status reduced = is_even_ ? reduce_in_slices(stages, in, chunk.out, count)
                            : reduce_at_first(stages, in, chunk.out, count);
  if (reduced && is_packed) unpack(chunk, chunk.out, stages.chunks.out());
  return reduced;
}

Status HierarchicalBackend::reduce_in_slices(const Stages& stages, const std::byte* in,
                                             std::byte* out, std::uint64_t count) {
  const std::size_t element = size_of(stages.call.type);
  const std::size_t wide_element = size_of(stages.wide);
  const tcp::Slices slices({count, 1}, local_size_);
  std::vector<std::uint64_t> counts;
  for (int i = 0; i < local_size_; ++i) counts.push_back(slices(tcp::Space::kIn, i).bytes);
  const std::uint64_t own = counts[static_cast<std::size_t>(local_rank_)];
  std::byte* const slice = slice_.take(own * wide_element).data();

  Call scatter = local_call(CallKind::kReduceScatter, count);
  scatter.type = stages.wide;
  scatter.reduction = stages.on_host;
  scatter.shape = hash_of(counts);
  if (Status done = local_->reduce_scatter(scatter, in, slice, counts); !done) return done;
  if (Status done = reduce_between_hosts(stages, slice, own); !done) return done;
  std::byte* const result = stages.widens ? narrow_.take(own * element).data() : slice;
  const std::byte* const sum = slice;
  if (stages.needs_finish && own > 0) stages.finish(&sum, 1, result, own);

  for (std::uint64_t& bytes : counts) bytes *= element;
  Call gather = local_call(CallKind::kAllGather, count * element);
  gather.shape = hash_of(counts);
  return local_->all_gather(gather, result, out, counts);
}

Status HierarchicalBackend::reduce_at_first(const Stages& stages, const std::byte* in,
                                            std::byte* out, std::uint64_t count) {
  std::byte* const sum = slice_.take(count * size_of(stages.wide)).data();
  Call reduce = local_call(CallKind::kReduce, count);
  reduce.type = stages.wide;
  reduce.reduction = stages.on_host;
  if (local_) {
    if (Status done = local_->reduce(reduce, in, is_first() ? sum : nullptr); !done) return done;
  } else if (count > 0) {
    Kernel::of(spec_of(stages.wide, stages.on_host, 1))(&in, 1, sum, count);
  }
  if (is_first()) {
    if (Status done = reduce_between_hosts(stages, sum, count); !done) return done;
    const std::byte* const reduced = sum;
    if (count > 0 && stages.needs_finish) stages.finish(&reduced, 1, out, count);
    if (count > 0 && !stages.needs_finish) collective::copy(out, sum, count * size_of(stages.wide));
  }
  return broadcast_on_host(out, count * size_of(stages.call.type), 0);
}

Status HierarchicalBackend::reduce_between_hosts(const Stages& stages, std::byte* data,
                                                 std::uint64_t count) {
  Call call = stages.call;
  call.type = stages.wide;
  call.reduction = stages.between;
  call.count = count;
  const Piece piece = {data, data, count};
  return cross_->all_reduce(call, {&piece, 1});
}

Status HierarchicalBackend::broadcast_on_host(std::byte* data, std::uint64_t bytes, int root) {
  if (!local_) return {};
  Call call = local_call(CallKind::kBroadcast, bytes);
  call.root = root;
  return local_->broadcast(call, data);
}

// Between hosts the data goes from the root, if the root is the rank of its host that spans the
// hosts. Otherwise the root sends it to the first rank of its host before.
Status HierarchicalBackend::broadcast(const Call& call, std::byte* data) {
  if (Status entered = enter(call); !entered) return entered;
  const int host = topology_.host_of[static_cast<std::size_t>(call.root)];
  const bool is_home = host == topology_.host_of[static_cast<std::size_t>(world_.rank)];
  const int root_on_host = topology_.local_rank_of(call.root);
  const int speaker = is_even_ ? root_on_host : 0;
  if (is_home && root_on_host != speaker) {
    Status done = broadcast_on_host(data, call.count, root_on_host);
    if (!done) return done;
  }
  if (local_rank_ == speaker) {
    Call between = call;
    between.root = host;
    if (Status done = cross_->broadcast(between, data); !done) return done;
  }
  if (is_home && root_on_host != speaker) return {};
  return broadcast_on_host(data, call.count, speaker);
}

// After enter() all ranks of a host have arrived. If every rank meets a rank of each other host, no
// second barrier on the host is needed.
Status HierarchicalBackend::barrier(const Call& call) {
  if (Status entered = enter(call); !entered) return entered;
  if (cross_) {
    if (Status met = cross_->barrier(call); !met) return met;
  }
  if (is_even_ || !local_) return {};
  return local_->barrier(local_call(CallKind::kBarrier, 0));
}

Status HierarchicalBackend::reduce_scatter(const Call& call, const std::byte* in, std::byte* out,
                                           PerRank counts) {
  return flat_.reduce_scatter(call, in, out, counts);
}

Status HierarchicalBackend::all_gather(const Call& call, const std::byte* part, std::byte* all,
                                       PerRank bytes) {
  return flat_.all_gather(call, part, all, bytes);
}

Status HierarchicalBackend::reduce(const Call& call, const std::byte* in, std::byte* out) {
  return flat_.reduce(call, in, out);
}

Status HierarchicalBackend::all_to_all(const Call& call, const std::byte* in, PerRank sent,
                                       std::byte* out, PerRank received) {
  return flat_.all_to_all(call, in, sent, out, received);
}

Status HierarchicalBackend::send(const std::byte* data, std::uint64_t bytes, int to) {
  return flat_.send(data, bytes, to);
}

Status HierarchicalBackend::receive(std::byte* data, std::uint64_t bytes, int from) {
  return flat_.receive(data, bytes, from);
}

std::string HierarchicalBackend::explain(DataType type, std::uint64_t bytes) const {
  const auto slices = static_cast<std::uint64_t>(is_even_ ? local_size_ : 1);
  const std::string hosts = std::to_string(topology_.hosts()) + " hosts";
  const std::string within =
      local_ ? "within each " + local_->explain(type, bytes) : "this host with a single rank";
  if (!cross_)
    return "hierarchical: " + hosts + ", " + within + "; the hosts' first ranks communicate";
  return "hierarchical: " + hosts + ", " + within + "; between them " +
         cross_->explain(type, bytes / slices);
}

}  // namespace muster::collective
