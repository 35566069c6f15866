// Worlds for tests of backends: N of them in one process, joined over real sockets on 127.0.0.1,
// with real monitors, but without a rendezvous.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "world/world.h"

namespace muster::collective::testing {

struct WorldSpec {
  int size = 2;
  int streams = 2;
  std::string algorithm = {};
  std::vector<int> host_of = {};  // by rank; empty: each rank on a host of its own
  std::chrono::milliseconds timeout{20'000};
};

using Worlds = std::vector<std::unique_ptr<World>>;

Worlds make_worlds(const WorldSpec& spec);

/// Runs body(world) on all ranks at the same time, each on a thread, and waits for all.
void on_all(const Worlds& worlds, const std::function<void(World&)>& body);

}  // namespace muster::collective::testing
