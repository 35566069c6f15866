#include "communicator/impl.h"

#include "hierarchy/hierarchical_backend.h"
#include "plugins/loader.h"
#include "shm/shm_backend.h"
#include "tcp/tcp_backend.h"

namespace muster::collective {
namespace {

shm::Host local_host(World& world, const shm::Layout& layout) {
  shm::Host host;
  host.self = world.topology.local_rank_of(world.rank);
  host.ranks = world.topology.neighbours_of(world.rank);
  for (const int rank : host.ranks) {
    host.names.push_back(world.hosts[static_cast<std::size_t>(rank)]);
  }
  host.memory = world.memory.base();
  host.layout = layout;
  host.file = &world.memory;
  host.monitor = world.monitor.get();
  return host;
}

bool shares_memory(const World& world) {
  const auto host =
      static_cast<std::size_t>(world.topology.host_of[static_cast<std::size_t>(world.rank)]);
  return world.topology.memory_on[host];
}

// Whether some host has several ranks, and all such hosts have shared memory.
bool is_worth_two_levels(const Topology& topology) {
  bool any = false;
  for (std::size_t host = 0; host < topology.ranks_on.size(); ++host) {
    if (topology.ranks_on[host].size() < 2) continue;
    if (!topology.memory_on[host]) return false;
    any = true;
  }
  return any;
}

Result<std::unique_ptr<Backend>> natural_backend(World& world, const shm::Layout& layout) {
  if (world.size == 1) return std::unique_ptr<Backend>(std::make_unique<SoloBackend>());
  if (!is_worth_two_levels(world.topology)) {
    return std::unique_ptr<Backend>(std::make_unique<tcp::TcpBackend>(world));
  }
  std::unique_ptr<Backend> local;
  if (shares_memory(world)) {
    Result<std::unique_ptr<shm::ShmBackend>> made =
        shm::ShmBackend::create(local_host(world, layout));
    if (!made) return made.error();
    local = *std::move(made);
  }
  if (world.topology.is_one_shared_host()) return local;
  return std::unique_ptr<Backend>(std::make_unique<HierarchicalBackend>(world, std::move(local)));
}

}  // namespace

shm::Layout layout_of(const World& world) {
  if (!world.memory) return {};
  const int ranks = static_cast<int>(world.topology.neighbours_of(world.rank).size());
  return shm::layout_of(ranks, world.options.arena_bytes.value_or(0));
}

Result<std::unique_ptr<Backend>> choose_backend(World& world, const shm::Layout& layout) {
  Result<std::unique_ptr<Backend>> backend = natural_backend(world, layout);
  const std::string& transport = world.options.transport;
  if (!backend || (transport != "mpi" && transport != "nccl")) return backend;
  return load_plugin(world, *std::move(backend));
}

Status SoloBackend::move(const std::byte* from, std::byte* to, std::uint64_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, bytes);
  return {};
}

// Adasum of one vector is that vector, but its scales apply.
Status SoloBackend::all_reduce(const Call& call, Pieces pieces) {
  Reduction reduction = call.reduction;
  if (reduction.op == ReduceOp::kAdasum) reduction.op = ReduceOp::kSum;
  const Kernel kernel = Kernel::of(spec_of(call.type, reduction, 1));
  for (const Piece& piece : pieces) {
    if (piece.count > 0) kernel(&piece.in, 1, piece.out, piece.count);
  }
  return {};
}

Status SoloBackend::all_to_all(const Call&, const std::byte* in, PerRank sent, std::byte* out,
                               PerRank received) {
  if (sent[0] == received[0]) return move(in, out, sent[0]);
  return Error{ErrorCode::kMismatch, "rank 0 sends " + std::to_string(sent[0]) +
                                         " bytes to itself, but expects " +
                                         std::to_string(received[0])};
}

Status SoloBackend::send(const std::byte* data, std::uint64_t bytes, int) {
  mail_.emplace_back(data, data + bytes);
  return {};
}

Status SoloBackend::receive(std::byte* data, std::uint64_t bytes, int) {
  if (mail_.empty()) {
    return Error{ErrorCode::kMismatch,
                 "rank 0 receives a message from itself that it has not sent"};
  }
  const std::vector<std::byte> message = std::move(mail_.front());
  mail_.erase(mail_.begin());
  if (message.size() != bytes) {
    return Error{ErrorCode::kMismatch, "rank 0 sends " + std::to_string(message.size()) +
                                           " bytes to itself, but receives " +
                                           std::to_string(bytes)};
  }
  return move(message.data(), data, bytes);
}

}  // namespace muster::collective
