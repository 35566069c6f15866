// Worlds of Communicators for tests: N ranks as N threads of one process (options.h documents where
// they meet).
//
//   spawn_ranks(4, [](Communicator& world) {
//     float x = world.rank();
//     EXPECT_TRUE(world.all_reduce(&x, 1, ReduceOp::kSum));
//   });
#pragma once

#include <muster/collective/testing/options.h>

#include <chrono>
#include <functional>

#include "muster/collective/communicator.h"

namespace muster::collective::testing {

/// Connects all ranks of such a world and runs `body` on each. A rank that cannot connect is a
/// failure of the calling test.
void spawn_ranks(int size, const std::function<void(Communicator&)>& body,
                 std::chrono::milliseconds timeout = kPatience,
                 Placement placement = Placement::one_host());

}  // namespace muster::collective::testing
