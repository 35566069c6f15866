// The algorithms that reduce. All of them give every rank the same bits: a slice is reduced once
// and copied, or reduced everywhere from the same inputs in the same order.
//
//   exchange      everyone sends all to everyone and reduces all n inputs: one step
//   doubling      R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
//                 operations in MPICH", IJHPCA 19(1), 2005: pairs at distance 1, 2, 4 ...
//   rabenseifner  the same source: recursive halving, then recursive doubling
//   ring          P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
//                 workstations", JPDC 69(2), 2009
//   direct        each rank gets all n inputs of its slice, reduces them in the order of the ranks
//                 and sends the result to everyone: two steps
//
// Exchange and direct see all inputs of an element at once: they can round once, and scale each
// input on the way. The others combine partial results, and take inputs that were scaled before.
//
// Pure. The kernels outlive the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tcp/program.h"

namespace muster::collective::tcp {

/// This rank among those that take part.
struct Place {
  int rank = 0;
  int size = 1;
};

/// What is reduced: `count` elements of `element` bytes.
struct Extent {
  std::uint64_t count = 0;
  std::size_t element = 1;

  std::uint64_t bytes() const { return count * element; }
};

/// `whole` reduces all inputs in one step.
Program plan_exchange(Place place, Extent extent, const Kernel& whole);
Program plan_direct(Place place, Extent extent, const Kernel& whole);

/// Kernels of an algorithm that goes step by step. The input is read from `from`: the caller's, or
/// the output where it lies scaled.
struct Steps {
  const Kernel& partial;
  const Kernel& last;
  Space from = Space::kIn;
};
Program plan_ring(Place place, Extent extent, const Steps& steps);
Program plan_doubling(Place place, Extent extent, const Steps& steps);
Program plan_rabenseifner(Place place, Extent extent, const Steps& steps);

/// Rank r gets the `counts[r]` elements that follow those of the ranks before it.
Program plan_reduce_scatter(Place place, std::span<const std::uint64_t> counts, std::size_t element,
                            const Kernel& whole);

/// All send to the root, which reduces.
Program plan_reduce_at_root(Place place, Extent extent, int root, const Kernel& whole);

/// Each reduces its slice and sends it to the root.
Program plan_reduce_sliced(Place place, Extent extent, int root, const Kernel& whole);

}  // namespace muster::collective::tcp
