// Worlds for tests: N ranks as N threads of one process, joined over real sockets on 127.0.0.1.
//
//   spawn_ranks(4, [](Communicator& world) {
//     float x = world.rank();
//     EXPECT_TRUE(world.all_reduce(&x, 1, ReduceOp::kSum));
//   });
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "muster/collective/communicator.h"

namespace muster::collective::testing {

/// Far longer than any test takes, far shorter than the test runner's own limit.
inline constexpr std::chrono::milliseconds kPatience{30'000};

/// The options of a world whose rendezvous is open already, on a free port that rank 0's options
/// hold as a listener. The address is the test process's own (one of 127.0.0.0/8), so that no test
/// that runs beside it can take the port once it is closed. Rank r is on host "host-r". Each of
/// them is for one connect().
std::vector<Options> world_of(int size, std::chrono::milliseconds timeout = kPatience);

/// Runs body(0) .. body(count - 1) at the same time, each on a thread, and waits for all.
void on_threads(int count, const std::function<void(int)>& body);

/// Connects all ranks of such a world and runs `body` on each. A rank that cannot connect is a
/// failure of the calling test.
void spawn_ranks(int size, const std::function<void(Communicator&)>& body,
                 std::chrono::milliseconds timeout = kPatience);

}  // namespace muster::collective::testing
