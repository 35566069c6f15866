// The algorithms that only move bytes.
//
// Pure.
#pragma once

#include <cstdint>
#include <span>

#include "tcp/plan_reduce.h"

namespace muster::collective::tcp {

/// Down a binomial tree: log2(n) steps, the root sends log2(n) times.
Program plan_broadcast_tree(Place place, std::uint64_t bytes, int root);

/// From rank to rank: n - 1 steps, but each sends once. All links work at the same time as soon as
/// the first bytes are through.
Program plan_broadcast_chain(Place place, std::uint64_t bytes, int root);

/// Everyone sends its part to everyone; or each part goes round the ring. A rank's own part lies in
/// its place in the output already.
Program plan_all_gather_direct(Place place, std::span<const std::uint64_t> bytes);
Program plan_all_gather_ring(Place place, std::span<const std::uint64_t> bytes);

/// Both memories are packed by rank.
Program plan_all_to_all(Place place, std::span<const std::uint64_t> sent,
                        std::span<const std::uint64_t> received);

/// Dissemination (D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization",
/// IJPP 17(1), 1988): in round k each rank tells the one 2^k behind it what it has heard so far.
Program plan_barrier(Place place);

}  // namespace muster::collective::tcp
