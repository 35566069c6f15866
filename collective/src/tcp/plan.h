// The algorithms of collectives over TCP: each writes a Program, which Exchange executes.
//
// The reductions give every rank the same bits: a slice is reduced once and copied, or reduced on
// every rank from the same inputs in the same order.
//
//   exchange      each rank sends its input to all ranks and reduces all n inputs: one step
//   doubling      R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
//                 operations in MPICH", IJHPCA 19(1), 2005: pairs at distance 1, 2, 4 ...
//   rabenseifner  the same source: recursive halving, then recursive doubling
//   ring          P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
//                 workstations", JPDC 69(2), 2009
//   direct        each rank gets all n inputs of its slice, reduces them in the order of the ranks
//                 and sends the result to all ranks: two steps
//
// Exchange and direct have all inputs of an element at once: they round once, and scale each input
// while they reduce. The other algorithms combine partial results, and need inputs that are already
// scaled.
//
// Pure. The kernels outlive the program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tcp/program.h"

namespace muster::collective::tcp {

/// This rank among the members of the collective.
struct Place {
  int rank = 0;
  int size = 1;
};

/// The size of a reduction: `count` elements of `element` bytes.
struct Extent {
  std::uint64_t count = 0;
  std::size_t element = 1;

  std::uint64_t bytes() const { return count * element; }
};

enum class Algorithm : std::uint8_t { kExchange, kDoubling, kRabenseifner, kRing, kDirect };

/// Whether the algorithm has all n inputs of an element at once: exchange and direct.
inline bool sees_all_inputs(Algorithm algorithm) {
  return algorithm == Algorithm::kExchange || algorithm == Algorithm::kDirect;
}

/// `whole` reduces all inputs in one step.
Program plan_exchange(Place place, Extent extent, const Kernel& whole);
Program plan_direct(Place place, Extent extent, const Kernel& whole);

/// The kernels of an algorithm with several steps. The input is read from `from`: the caller's
/// input, or the output if it holds the scaled input.
struct Steps {
  const Kernel& partial;
  const Kernel& last;
  Space from = Space::kIn;
};
Program plan_ring(Place place, Extent extent, const Steps& steps);
Program plan_doubling(Place place, Extent extent, const Steps& steps);
Program plan_rabenseifner(Place place, Extent extent, const Steps& steps);

/// The all-reduce of an algorithm that sees all inputs, and of any other algorithm.
Program plan_at_once(Algorithm algorithm, Place place, Extent extent, const Kernel& whole);
Program plan_in_steps(Algorithm algorithm, Place place, Extent extent, const Steps& steps);

/// Rank r gets the `counts[r]` elements that follow the elements of the ranks before it.
Program plan_reduce_scatter(Place place, std::span<const std::uint64_t> counts, std::size_t element,
                            const Kernel& whole);

/// All ranks send to the root, which reduces.
Program plan_reduce_at_root(Place place, Extent extent, int root, const Kernel& whole);

/// Each rank reduces its slice and sends it to the root.
Program plan_reduce_sliced(Place place, Extent extent, int root, const Kernel& whole);

/// A buffer divided into one slice of whole elements for each rank.
class Slices {
 public:
  Slices(Extent extent, int parts)
      : extent_(extent),
        parts_(static_cast<std::uint64_t>(parts)),
        unit_(extent.count >= parts_ * kWorthAligning ? kUnit : 1),
        units_(extent.count / unit_) {}

  /// `index` is taken modulo the number of parts and may be as low as -parts.
  Range operator()(Space space, int index) const {
    const std::uint64_t i = static_cast<std::uint64_t>(index + static_cast<int>(parts_)) % parts_;
    const std::uint64_t begin = start_of(i);
    return {space, begin * extent_.element, (start_of(i + 1) - begin) * extent_.element};
  }

 private:
  // Large slices begin at whole cache lines of an aligned buffer, whatever the type.
  static constexpr std::uint64_t kUnit = 64;
  static constexpr std::uint64_t kWorthAligning = 4096;

  std::uint64_t start_of(std::uint64_t i) const {
    if (i == parts_) return extent_.count;
    return (units_ / parts_ * i + std::min(i, units_ % parts_)) * unit_;
  }

  Extent extent_;
  std::uint64_t parts_;
  std::uint64_t unit_;
  std::uint64_t units_;
};

// The algorithms that only move bytes.

/// Down a binomial tree: log2(n) steps, the root sends log2(n) times.
Program plan_broadcast_tree(Place place, std::uint64_t bytes, int root);

/// From rank to rank: n - 1 steps, but each rank sends once. All links work at the same time as
/// soon as the first bytes have arrived.
Program plan_broadcast_chain(Place place, std::uint64_t bytes, int root);

/// Each rank sends its part to all ranks; or each part travels round the ring. The output must
/// contain a rank's own part already.
Program plan_all_gather_direct(Place place, std::span<const std::uint64_t> bytes);
Program plan_all_gather_ring(Place place, std::span<const std::uint64_t> bytes);

/// Both memories are packed by rank.
Program plan_all_to_all(Place place, std::span<const std::uint64_t> sent,
                        std::span<const std::uint64_t> received);

/// Dissemination (D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization",
/// IJPP 17(1), 1988): in round k each rank sends everything that it has received so far to the rank
/// 2^k after it.
Program plan_barrier(Place place);

}  // namespace muster::collective::tcp
