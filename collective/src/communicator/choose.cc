#include "communicator/choose.h"

#include "communicator/solo_backend.h"
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
  host.monitor = world.monitor.get();
  return host;
}

bool shares_memory(const World& world) {
  const auto host =
      static_cast<std::size_t>(world.topology.host_of[static_cast<std::size_t>(world.rank)]);
  return world.topology.memory_on[host];
}

// Some host has several ranks, and all that have do share memory.
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

}  // namespace muster::collective
