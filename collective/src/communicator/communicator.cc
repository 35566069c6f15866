#include "muster/collective/communicator.h"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "call/arguments.h"
#include "communicator/impl.h"
#include "world/group.h"
#include "world/join.h"

namespace muster::collective {
namespace {

std::uint64_t memory_bytes(int ranks, std::uint64_t arena_bytes) {
  return shm::layout_of(ranks, arena_bytes).total;
}

const std::byte* bytes_of(const void* data) {
  return static_cast<const std::byte*>(data);
}
std::byte* bytes_of(void* data) {
  return static_cast<std::byte*>(data);
}

// A world of one rank keeps the messages to itself; in a larger one a message goes to another rank.
Status check_other(std::string_view what, int other, Place here) {
  return here.size == 1 ? check_rank(what, other, 1) : check_partner(what, other, here);
}

std::vector<std::uint64_t> for_each_rank(std::uint64_t length, int size) {
  return std::vector<std::uint64_t>(static_cast<std::size_t>(size), length);
}

}  // namespace

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// In a forked process nothing is destroyed: other threads of the parent may have held its locks.
Communicator::~Communicator() {
  if (impl_ && impl_->is_foreign()) static_cast<void>(impl_.release());
}
Communicator::Communicator(Communicator&& other) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept {
  if (this == &other) return *this;
  // The destructor of `old` does nothing in a forked process.
  const Communicator old(std::exchange(impl_, std::move(other.impl_)));
  return *this;
}

Result<Communicator> Communicator::over(std::unique_ptr<World> world) {
  auto impl = std::make_unique<Impl>(std::move(world));
  World& joined = *impl->world;
  impl->layout = layout_of(joined);
  if (joined.memory) {
    const auto self = static_cast<std::uint64_t>(joined.topology.local_rank_of(joined.rank));
    const std::uint64_t bytes = impl->layout.arena_bytes_per_rank;
    // Every rank writes to all boards. Their memory is reserved now, since a write to memory that is
    // not available would kill the process with SIGBUS.
    const auto boards = static_cast<std::uint64_t>(impl->layout.ranks) * shm::kBoardBytes;
    Status there = joined.memory.reserve(impl->layout.boards, boards);
    if (!there) return joined.monitor->fail(there.error());
    impl->arena.emplace(joined.memory, impl->layout.arenas + self * bytes, bytes);
  }
  Result<std::unique_ptr<Backend>> backend = choose_backend(joined, impl->layout);
  if (!backend) return backend.error();
  impl->backend = *std::move(backend);
  return Communicator(std::move(impl));
}

Result<Communicator> Communicator::connect(const Options& options) {
  Result<std::unique_ptr<World>> world = join(options, memory_bytes, options.cancel);
  if (!world) return world.error();
  return over(*std::move(world));
}

Result<Communicator> Communicator::group(std::span<const int> ranks) {
  Result<std::unique_ptr<World>> world = join_group(*impl_->world, ranks, memory_bytes);
  if (!world) return world.error();
  return over(*std::move(world));
}

int Communicator::rank() const {
  return impl_->world->rank;
}
int Communicator::size() const {
  return impl_->world->size;
}
int Communicator::local_rank() const {
  return impl_->world->topology.local_rank_of(rank());
}
int Communicator::local_size() const {
  return static_cast<int>(impl_->world->topology.neighbours_of(rank()).size());
}
int Communicator::cross_rank() const {
  return impl_->world->topology.host_of[static_cast<std::size_t>(rank())];
}
int Communicator::cross_size() const {
  return impl_->world->topology.hosts();
}
const std::string& Communicator::host() const {
  return impl_->world->hosts[static_cast<std::size_t>(rank())];
}

Status Communicator::all_reduce(const void* in, void* out, std::uint64_t count, DataType type,
                                const Reduction& reduction) {
  const Tensor tensor{in, out, count};
  return all_reduce({&tensor, 1}, type, reduction);
}

Status Communicator::all_reduce(std::span<const Tensor> tensors, DataType type,
                                const Reduction& reduction) {
  const Result<std::uint64_t> count = check_all_reduce(tensors, type, reduction);
  if (!count) return count.error();
  // One tensor, the usual case, needs no allocation.
  std::array<Piece, 1> one;
  std::vector<Piece> several(tensors.size() == 1 ? 0 : tensors.size());
  Piece* const pieces = tensors.size() == 1 ? one.data() : several.data();
  std::vector<std::uint64_t> lengths(several.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = tensors[i];
    pieces[i] = {bytes_of(tensor.in), bytes_of(tensor.out), tensor.count};
    if (!lengths.empty()) lengths[i] = tensor.count;
  }
  const Call call = impl_->begin({.kind = CallKind::kAllReduce,
                                  .type = type,
                                  .reduction = reduction,
                                  .count = *count,
                                  .shape = hash_of_list(lengths)});
  if (Status alive = impl_->failure(); !alive) return alive;
  return impl_->backend->all_reduce(call, {pieces, tensors.size()});
}

Status Communicator::reduce_scatter(const void* in, void* out, std::uint64_t count_per_rank,
                                    DataType type, const Reduction& reduction) {
  return reduce_scatter(in, out, for_each_rank(count_per_rank, size()), type, reduction);
}

Status Communicator::reduce_scatter(const void* in, void* out,
                                    std::span<const std::uint64_t> counts, DataType type,
                                    const Reduction& reduction) {
  if (Status ok = check_reduce_scatter(in, out, counts, type, reduction, {rank(), size()}); !ok) {
    return ok;
  }
  const Call call = impl_->begin({.kind = CallKind::kReduceScatter,
                                  .type = type,
                                  .reduction = reduction,
                                  .count = sum_of(counts),
                                  .shape = hash_of(counts)});
  if (Status alive = impl_->failure(); !alive) return alive;
  return impl_->backend->reduce_scatter(call, bytes_of(in), bytes_of(out), counts);
}

Status Communicator::all_gather(const void* part, std::uint64_t bytes_per_rank, void* all) {
  return all_gather(part, all, for_each_rank(bytes_per_rank, size()));
}

Status Communicator::all_gather(const void* part, void* all,
                                std::span<const std::uint64_t> bytes_of_rank) {
  if (Status ok = check_all_gather(part, all, bytes_of_rank, {rank(), size()}); !ok) return ok;
  const Call call = impl_->begin({.kind = CallKind::kAllGather,
                                  .count = sum_of(bytes_of_rank),
                                  .shape = hash_of(bytes_of_rank)});
  if (Status alive = impl_->failure(); !alive) return alive;
  return impl_->backend->all_gather(call, bytes_of(part), bytes_of(all), bytes_of_rank);
}

Status Communicator::broadcast(void* data, std::uint64_t bytes, int root) {
  if (Status ok = check_broadcast(data, bytes, root, size()); !ok) return ok;
  const Call call = impl_->begin({.kind = CallKind::kBroadcast, .root = root, .count = bytes});
  if (Status alive = impl_->failure(); !alive) return alive;
  return impl_->backend->broadcast(call, bytes_of(data));
}

Status Communicator::reduce(const void* in, void* out, std::uint64_t count, DataType type,
                            const Reduction& reduction, int root) {
  if (Status ok = check_reduce(in, out, count, type, reduction, root, {rank(), size()}); !ok) {
    return ok;
  }
  const Call call = impl_->begin({.kind = CallKind::kReduce,
                                  .type = type,
                                  .reduction = reduction,
                                  .root = root,
                                  .count = count});
  if (Status alive = impl_->failure(); !alive) return alive;
  return impl_->backend->reduce(call, bytes_of(in), bytes_of(out));
}

Status Communicator::all_to_all(const void* in, void* out, std::uint64_t bytes_per_pair) {
  const std::vector<std::uint64_t> lengths = for_each_rank(bytes_per_pair, size());
  return all_to_all(in, lengths, out, lengths);
}

Status Communicator::all_to_all(const void* in, std::span<const std::uint64_t> sent, void* out,
                                std::span<const std::uint64_t> received) {
  if (Status ok = check_all_to_all(in, sent, out, received, size()); !ok) return ok;
  const Call call = impl_->begin({.kind = CallKind::kAllToAll});
  if (Status alive = impl_->failure(); !alive) return alive;
  return impl_->backend->all_to_all(call, bytes_of(in), sent, bytes_of(out), received);
}

Status Communicator::barrier() {
  const Call call = impl_->begin({.kind = CallKind::kBarrier});
  if (Status alive = impl_->failure(); !alive) return alive;
  return impl_->backend->barrier(call);
}

Status Communicator::send(const void* data, std::uint64_t bytes, int to) {
  if (Status ok = check_buffer(data, bytes); !ok) return ok;
  if (Status ok = check_other("the receiver", to, {rank(), size()}); !ok) return ok;
  if (Status alive = impl_->failure(); !alive) return alive;
  return impl_->backend->send(bytes_of(data), bytes, to);
}

Status Communicator::receive(void* data, std::uint64_t bytes, int from) {
  if (Status ok = check_buffer(data, bytes); !ok) return ok;
  if (Status ok = check_other("the sender", from, {rank(), size()}); !ok) return ok;
  if (Status alive = impl_->failure(); !alive) return alive;
  return impl_->backend->receive(bytes_of(data), bytes, from);
}

void* Communicator::allocate_shared(std::uint64_t bytes) {
  return impl_->arena ? impl_->arena->allocate(bytes) : nullptr;
}

void Communicator::free_shared(void* memory) {
  if (impl_->arena) impl_->arena->free(memory);
}

std::string Communicator::explain(DataType type, std::uint64_t bytes) const {
  const std::string& unshared = impl_->world->unshared;
  return impl_->backend->explain(type, bytes) + (unshared.empty() ? "" : "; " + unshared);
}

}  // namespace muster::collective
