#include <gtest/gtest.h>
#include <muster/collective/testing/worlds.h>
#include <unistd.h>

#include <thread>

#include "transport/socket.h"
#include "world/join.h"

namespace muster::collective::testing {
namespace {

std::string address_of_this_process() {
  const int pid = ::getpid();
  return "127." + std::to_string(64 + pid / 256 % 128) + "." + std::to_string(pid % 256) + ".1";
}

}  // namespace

std::vector<Options> world_of(int size, std::chrono::milliseconds timeout, Placement placement) {
  Result<std::vector<Address>> address = resolve(address_of_this_process() + ":0");
  Result<Descriptor> listener = listen_on(address->front());
  const std::string endpoint = local_address(listener->get()).to_string();
  std::vector<Options> world;
  for (int rank = 0; rank < size; ++rank) {
    const int host = rank / placement.ranks_per_host;
    world.push_back({.rank = rank,
                     .size = size,
                     .rendezvous = endpoint,
                     .key = "000102030405060708090a0b0c0d0e0f",
                     .host = "host-" + std::to_string(rank),
                     .host_id = endpoint + "/" + std::to_string(host),
                     .timeout = timeout,
                     .silence = kPatience,
                     .arena_bytes = std::uint64_t{64} << 20});
  }
  // A world of one rank has no rendezvous, and would not take over the listener.
  if (size > 1) world[0].listener = listener->release();
  return world;
}

void on_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
}

std::uint64_t ample_memory(int ranks, std::uint64_t arena_bytes) {
  constexpr std::uint64_t kFixed = std::uint64_t{64} << 20;
  constexpr std::uint64_t kPerRank = std::uint64_t{16} << 20;
  return kFixed + static_cast<std::uint64_t>(ranks) * (arena_bytes + kPerRank);
}

void join_all(const std::vector<Options>& options, const std::function<void(World&)>& body,
              const MemoryBytes& memory_bytes) {
  on_threads(static_cast<int>(options.size()), [&](int rank) {
    Result<std::unique_ptr<World>> world =
        join(options[static_cast<std::size_t>(rank)], memory_bytes);
    ASSERT_TRUE(world) << world.error().to_string();
    body(**world);
  });
}

void spawn_worlds(int size, Placement placement, const std::function<void(World&)>& body,
                  std::chrono::milliseconds timeout, const MemoryBytes& memory_bytes) {
  join_all(world_of(size, timeout, placement), body, memory_bytes);
}

}  // namespace muster::collective::testing
