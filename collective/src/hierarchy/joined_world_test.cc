// The backends in worlds that have joined as in production: ranks of a host share memory.
#include <gtest/gtest.h>
#include <muster/collective/testing/worlds.h>

#include "hierarchy/hierarchical_backend.h"
#include "shm/shm_backend.h"

namespace muster::collective {
namespace {

using testing::Placement;
using testing::spawn_worlds;

constexpr std::uint64_t kLengths[] = {0, 1, 1009, 1'500'007};

std::unique_ptr<Backend> shared_memory_of(World& world) {
  const std::vector<int>& neighbours = world.topology.neighbours_of(world.rank);
  if (neighbours.size() < 2) return nullptr;
  shm::Host host;
  host.self = world.topology.local_rank_of(world.rank);
  host.ranks = neighbours;
  for (const int rank : neighbours) {
    host.names.push_back(world.hosts[static_cast<std::size_t>(rank)]);
  }
  host.memory = world.memory.base();
  host.layout = shm::layout_of(static_cast<int>(neighbours.size()), *world.options.arena_bytes);
  host.monitor = world.monitor.get();
  Result<std::unique_ptr<shm::ShmBackend>> made = shm::ShmBackend::create(host);
  return made ? *std::move(made) : nullptr;
}

// Sums and broadcasts of every length.
void expect_to_work(World& world, Backend& backend) {
  std::uint64_t sequence = 0;
  for (const std::uint64_t count : kLengths) {
    std::vector<float> data(count, static_cast<float>(world.rank + 1));
    auto* const bytes = reinterpret_cast<std::byte*>(data.data());
    const Piece piece = {bytes, bytes, count};
    const Call sum = {.kind = CallKind::kAllReduce,
                      .type = DataType::kFloat32,
                      .reduction = ReduceOp::kAverage,
                      .count = count,
                      .sequence = ++sequence};
    world.monitor->entered(sequence);
    EXPECT_TRUE(backend.all_reduce(sum, {&piece, 1}));
    EXPECT_EQ(data, std::vector<float>(count, static_cast<float>(world.size + 1) / 2));

    std::ranges::fill(data, static_cast<float>(world.rank));
    const Call broadcast = {.kind = CallKind::kBroadcast,
                            .root = world.size - 1,
                            .count = count * sizeof(float),
                            .sequence = ++sequence};
    world.monitor->entered(sequence);
    EXPECT_TRUE(backend.broadcast(broadcast, bytes));
    EXPECT_EQ(data, std::vector<float>(count, static_cast<float>(world.size - 1)));
  }
  const Call barrier = {.kind = CallKind::kBarrier, .sequence = ++sequence};
  EXPECT_TRUE(backend.barrier(barrier));
}

TEST(JoinedWorld, RanksOnDifferentHostsUseTcp) {
  spawn_worlds(4, Placement::host_each(), [](World& world) {
    tcp::TcpBackend backend(world);
    expect_to_work(world, backend);
  });
}

TEST(JoinedWorld, HostsOfEqualWidthReduceInSlices) {
  spawn_worlds(6, Placement{3}, [](World& world) {
    HierarchicalBackend backend(world, shared_memory_of(world));
    expect_to_work(world, backend);
  });
}

TEST(JoinedWorld, HostsOfUnequalWidthReduceAtTheirFirstRanks) {
  spawn_worlds(5, Placement{3}, [](World& world) {
    HierarchicalBackend backend(world, shared_memory_of(world));
    expect_to_work(world, backend);
  });
}

TEST(JoinedWorld, AHostWithOneRankWorksWithAHostOfSeveral) {
  spawn_worlds(3, Placement{2}, [](World& world) {
    HierarchicalBackend backend(world, shared_memory_of(world));
    expect_to_work(world, backend);
  });
}

}  // namespace
}  // namespace muster::collective
