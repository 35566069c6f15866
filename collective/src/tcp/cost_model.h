// The choice of the fastest all_reduce: the usual cost model for n ranks that send and receive at
// the same time, with a latency, a time for each byte, and a time for each reduced byte; and the
// measurement of these costs.
//
//   exchange        a + (n-2) m           + (n-1) S b         + (n-1) S g
//   doubling        log n (a + S b + S g)                                    n a power of two, or
//   rabenseifner    2 log n a             + 2 S (n-1)/n b c   + S (n-1)/n g  2 (a + S b) more
//   ring            the larger of 2 (n-1) (a + min(S/n, p) b) and a + 2 S (n-1)/n b,
//                   and in addition                             S (n-1)/n g
//   direct          2 (a + (n-2) m)       + 2 S (n-1)/n b c j + S (n-1)/n g
//
// S: the bytes. m: the time for one more message. c: the ranks of a host that share its network
// port, which makes a byte c times as expensive if nearly all partners are on other hosts; a ring
// enters and leaves each host once. j: the slowdown by many connections into one port. p: the bytes
// after which a ring passes on a slice that is still arriving: long slices hide the latency.
//
// collective/tools/model executes the algorithms on a simulated network; these formulas agree with
// it where it has no contention that they do not count (schedules_test.cc).
//
// Pure, except for probe().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/collective/result.h"
#include "tcp/exchange.h"
#include "tcp/plan.h"

namespace muster::collective::tcp {

/// For options and messages: "ring".
std::string_view to_string(Algorithm algorithm);

/// Empty for "auto", for an empty text and for an unknown name.
std::optional<Algorithm> algorithm_named(std::string_view name);

/// Costs in microseconds. The defaults are those of a typical network of 10 Gb/s.
struct Costs {
  double latency = 30;
  double message = 3;
  double byte = 1.0 / 1'000;  // 1 GB/s, both ways at once
  double reduced_byte = 1.0 / 8'000;
};

struct Party {
  int ranks = 2;
  int crowd = 1;  // ranks that share a host's network port
};

double predict(Algorithm algorithm, Party party, std::uint64_t bytes, const Costs& costs);

/// An algorithm with its predicted time.
struct Candidate {
  Algorithm algorithm;
  double microseconds;
};

/// The best first. `at_once_only`: only algorithms that reduce all n inputs of an element at once, in the order of the ranks: exchange and direct, which give the same bits.
///
/// Measurements differ a little from run to run, and must not change results. They therefore decide
/// between algorithms that give the same bits. Whether to use another algorithm is decided with the
/// default costs above, and up to kFewRanks never.
std::vector<Candidate> rank_algorithms(Party party, std::uint64_t bytes, const Costs& measured,
                                       bool at_once_only);

inline constexpr int kFewRanks = 8;

/// The limit of exchange for more than two ranks. A larger exchange does not fit in the buffers of
/// the sockets, and a rank that works in place has to wait before it may overwrite unsent bytes.
/// Two ranks send the same number of bytes in any case, and an exchange has no second phase.
inline constexpr std::uint64_t kMostToExchange = 128 * 1024;

/// "ring, 2 streams (predicted 812 us; direct 901, rabenseifner 850)"
std::string describe(std::span<const Candidate> candidates, int streams);

/// Measures the costs in a few milliseconds. All ranks get the figures of the first rank, so that
/// all choose the same algorithm. Called by all members of the mesh, before any call.
///
/// Errors: the failure of the world.
Result<Costs> probe(const Mesh& mesh, Scratch& scratch);

}  // namespace muster::collective::tcp
