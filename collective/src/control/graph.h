// The ranks between which a world keeps control connections.
//
// Up to kMostComplete ranks, each rank has a connection to every other. In a larger world the ranks
// form a ring, and each rank is connected to the ranks at distance 1, 2, 4, ... on both sides: the
// fingers of I. Stoica et al., "Chord: a scalable peer-to-peer lookup service for internet
// applications", SIGCOMM 2001. A rank has at most 2 log2(n) neighbours, and a message that each
// rank passes on reaches all ranks in log2(n) steps or fewer.
//
// The graph needs no repair when ranks die: the first death ends the world, and each part of the
// graph that the dead ranks cut off has a rank that was the neighbour of a dead one. When ranks
// leave in order, the next rank on the ring takes the place of a neighbour that has left.
//
// Pure.
#pragma once

#include <functional>
#include <vector>

namespace muster::collective {

inline constexpr int kMostComplete = 16;

/// The neighbours of `rank` in a world of `size` ranks, ascending.
std::vector<int> neighbours_of(int rank, int size);

/// The ranks to which `rank` keeps connections once some ranks are `absent`: for each distance the
/// first rank that is not. Ascending, without duplicates and `rank` itself.
std::vector<int> successors_of(int rank, int size, const std::function<bool(int)>& absent);

}  // namespace muster::collective
