// What one rank streams to its right neighbour and takes from its left one in a collective. All
// collectives of the library are such plans; pass.h carries any of them out.
//
// The idea that they share: what a rank sends is what it contributes itself, then what it has
// received, in the order of its arrival. So a byte may go out as soon as the byte that lies
// `lead_bytes` before it in the stream has come in, and no step has to wait for the end of the one
// before: the ring works as a pipeline whose depth is the sockets' buffers, whatever the size of
// the data (cut-through instead of store-and-forward).
//
// Pure: a plan only points into the caller's buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/collective/types.h"

namespace muster::collective {

/// Bytes to send, in place.
struct Outgoing {
  const std::byte* data;
  std::uint64_t bytes;
};

/// Where received bytes go, and what is done to them there.
struct Incoming {
  enum class Landing {
    kStore,             // copied over what is there
    kReduce,            // combined with what is there
    kReduceAndAverage,  // the same, for the last of all ranks: the sum becomes the average
  };
  std::byte* data;
  std::uint64_t bytes;
  Landing landing = Landing::kStore;
};

struct Plan {
  std::vector<Outgoing> outgoing = {};
  std::vector<Incoming> incoming = {};
  std::uint64_t lead_bytes = 0;  // what may be sent before anything was received
  // How kReduce combines; any valid pair where nothing is reduced.
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
};

/// The place of a rank in its ring. The right neighbour is rank + 1, modulo size; size >= 2.
struct Place {
  int rank;
  int size;
};

/// Ring all-reduce: a reduce-scatter, then an all-gather (P. Patarasuk and X. Yuan, "Bandwidth
/// optimal all-reduce algorithms for clusters of workstations", JPDC 69(2), 2009). Each rank sends
/// 2 (size - 1) / size of the buffer, which is the least that is possible.
///
/// Segment i starts at rank i and is complete at rank i - 1, reduced in the order of the ranks.
Plan plan_all_reduce(Place place, std::byte* data, std::uint64_t count, DataType type, ReduceOp op);

/// A chain from the root to the rank at its left.
Plan plan_broadcast(Place place, std::byte* data, std::uint64_t bytes, int root);

/// Each part goes once round the ring. The rank's own part already lies in its place in `all`.
Plan plan_all_gather(Place place, std::byte* all, std::uint64_t bytes_per_rank);

}  // namespace muster::collective
