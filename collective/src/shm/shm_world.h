// For tests: the ranks of a host as threads, with shared memory of their own and without a world.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "shm/shm_backend.h"
#include "world/shared_memory.h"

namespace muster::collective::shm {

/// Runs `body` on `size` ranks and waits for all of them. Without `monitors` no call fails.
inline void on_host(int size, const std::function<void(ShmBackend&, int rank)>& body,
                    std::uint64_t arena_bytes = 8 << 20,
                    const std::vector<std::unique_ptr<Monitor>>& monitors = {}) {
  const Layout layout = layout_of(size, arena_bytes);
  Result<Descriptor> file = SharedMemory::create(layout.total);
  ASSERT_TRUE(file) << file.error().to_string();
  Result<SharedMemory> memory = SharedMemory::map(*std::move(file));
  ASSERT_TRUE(memory) << memory.error().to_string();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Host host{.self = rank, .memory = memory->base(), .layout = layout};
      for (int other = 0; other < size; ++other) {
        host.ranks.push_back(other);
        host.names.emplace_back("here");
      }
      if (!monitors.empty()) host.monitor = monitors[static_cast<std::size_t>(rank)].get();
      Result<std::unique_ptr<ShmBackend>> backend = ShmBackend::create(std::move(host));
      ASSERT_TRUE(backend) << backend.error().to_string();
      body(**backend, rank);
    });
  }
}

}  // namespace muster::collective::shm
