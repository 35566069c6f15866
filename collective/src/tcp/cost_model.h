// Which all_reduce is the fastest: the usual model of n ranks that each can send and receive at the
// same time, with a latency, a time a byte, and a time a byte reduced.
//
//   exchange        a + (n-2) m           + (n-1) S b         + (n-1) S g
//   doubling        log n (a + S b + S g)                                    n a power of two, or
//   rabenseifner    2 log n a             + 2 S (n-1)/n b c   + S (n-1)/n g  2 (a + S b) more
//   ring            2 (n-1) a             + 2 S (n-1)/n b     + S (n-1)/n g
//   direct          2 (a + (n-2) m)       + 2 S (n-1)/n b c j + S (n-1)/n g
//
// S are the bytes, m is the time to hand over one more message. Ranks of one host share its way
// out: c of them make a byte c times as dear where nearly all partners are on other hosts, while a
// ring enters and leaves a host once. j is what many connections into one port cost each other.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::collective::tcp {

enum class Algorithm : std::uint8_t { kExchange, kDoubling, kRabenseifner, kRing, kDirect };

/// As in options and messages: "ring".
std::string_view to_string(Algorithm algorithm);

/// Nothing for "auto", for an empty text and for an unknown one.
std::optional<Algorithm> algorithm_named(std::string_view name);

/// In microseconds. The defaults are those of a usual network of 10 Gb/s.
struct Costs {
  double latency = 30;
  double message = 3;
  double byte = 1.0 / 1'000;  // 1 GB/s, both ways at once
  double reduced_byte = 1.0 / 8'000;
};

struct Party {
  int ranks = 2;
  int crowd = 1;  // ranks that share a host's way out
};

double predict(Algorithm algorithm, Party party, std::uint64_t bytes, const Costs& costs);

/// One algorithm with what it is expected to take.
struct Candidate {
  Algorithm algorithm;
  double microseconds;
};

/// The best first. `sees_all_inputs`: only algorithms that reduce all n inputs of an element at
/// once, in the order of the ranks: exchange and direct, which give the same bits.
///
/// What was measured differs a little from run to run, and must not change results. So it chooses
/// between algorithms that give the same bits; whether to leave these for another is decided with
/// the fixed costs above, and up to kFewRanks never.
std::vector<Candidate> rank_algorithms(Party party, std::uint64_t bytes, const Costs& measured,
                                       bool sees_all_inputs);

inline constexpr int kFewRanks = 8;

/// Of more than two ranks: an exchange of more bytes does not fit in the sockets' buffers, and a
/// rank that works in place has to wait for room before it may overwrite what it has not sent. Two
/// ranks send as much either way, and an exchange has no second phase to wait for.
inline constexpr std::uint64_t kMostToExchange = 128 * 1024;

/// "ring, 2 streams (predicted 812 us; direct 901, rabenseifner 850)"
std::string describe(std::span<const Candidate> candidates, int streams);

}  // namespace muster::collective::tcp
