#include "tcp/cost_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace muster::collective::tcp {
namespace {

struct Named {
  Algorithm algorithm;
  std::string_view name;
};

// If two algorithms are equally fast, the first in this list is chosen.
constexpr std::array<Named, 5> kNames = {{{Algorithm::kExchange, "exchange"},
                                          {Algorithm::kDirect, "direct"},
                                          {Algorithm::kDoubling, "doubling"},
                                          {Algorithm::kRabenseifner, "rabenseifner"},
                                          {Algorithm::kRing, "ring"}}};

// The relative slowdown of all connections into one port by each further connection. An estimate,
// since switches differ.
constexpr double kJam = 0.01;

// A ring passes on a slice while it arrives, once this many bytes have been reduced (kWorthMerging
// in exchange.cc).
constexpr double kPassedOn = 16 * 1024;

std::string rounded(double microseconds) {
  return std::to_string(std::llround(std::max(1.0, microseconds)));
}

}  // namespace

std::string_view to_string(Algorithm algorithm) {
  return std::ranges::find(kNames, algorithm, &Named::algorithm)->name;
}

std::optional<Algorithm> algorithm_named(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, &Named::name);
  if (found == kNames.end()) return std::nullopt;
  return found->algorithm;
}

double predict(Algorithm algorithm, Party party, std::uint64_t bytes, const Costs& costs) {
  const double n = party.ranks;
  if (party.ranks < 2) return 0;
  const auto size = static_cast<double>(bytes);
  const bool folds = !std::has_single_bit(static_cast<unsigned>(party.ranks));
  const double rounds = std::bit_width(static_cast<unsigned>(party.ranks)) - 1;
  const double sent = 2 * size * (n - 1) / n * costs.byte;
  const double reduced = size * (n - 1) / n * costs.reduced_byte;
  const double more_messages = (n - 2) * costs.message;
  const double jam = 1 + kJam * (n - 2);
  const double folding = folds ? 2 * (costs.latency + size * costs.byte) : 0;
  switch (algorithm) {
    case Algorithm::kExchange:
      return costs.latency + more_messages +
             (n - 1) * size * (costs.byte * party.crowd * jam + costs.reduced_byte);
    case Algorithm::kDoubling:
      return folding +
             rounds * (costs.latency + size * (costs.byte * party.crowd + costs.reduced_byte));
    case Algorithm::kRabenseifner:
      return folding + 2 * rounds * costs.latency + sent * party.crowd + reduced;
    case Algorithm::kRing: {
      const double first = std::min(size / n, kPassedOn) * costs.byte;
      return std::max(costs.latency + sent, 2 * (n - 1) * (costs.latency + first)) + reduced;
    }
    case Algorithm::kDirect:
      return 2 * (costs.latency + more_messages) + sent * party.crowd * jam + reduced;
  }
  return 0;
}

namespace {

std::vector<Candidate> ranked(Party party, std::uint64_t bytes, const Costs& costs,
                              bool at_once_only) {
  std::vector<Candidate> candidates;
  for (const auto& [algorithm, name] : kNames) {
    if (at_once_only && !sees_all_inputs(algorithm)) continue;
    const bool overflows =
        party.ranks > 2 && bytes * static_cast<std::uint64_t>(party.ranks - 1) > kMostToExchange;
    if (algorithm == Algorithm::kExchange && overflows) continue;
    if (algorithm == Algorithm::kDirect && party.ranks == 2) continue;
    candidates.push_back({algorithm, predict(algorithm, party, bytes, costs)});
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::microseconds);
  return candidates;
}

}  // namespace

std::vector<Candidate> rank_algorithms(Party party, std::uint64_t bytes, const Costs& measured,
                                       bool at_once_only) {
  if (at_once_only || party.ranks <= kFewRanks) return ranked(party, bytes, measured, true);
  std::vector<Candidate> fixed = ranked(party, bytes, Costs{}, false);
  if (sees_all_inputs(fixed.front().algorithm)) return ranked(party, bytes, measured, true);
  return fixed;
}

std::string describe(std::span<const Candidate> candidates, int streams) {
  const Candidate& best = candidates.front();
  std::string text = std::string(to_string(best.algorithm)) + ", " + std::to_string(streams) +
                     (streams == 1 ? " stream" : " streams") + " (predicted " +
                     rounded(best.microseconds) + " us";
  std::string separator = "; ";
  for (const Candidate& other : candidates.subspan(1)) {
    text += separator + std::string(to_string(other.algorithm)) + " " + rounded(other.microseconds);
    separator = ", ";
  }
  return text + ")";
}

namespace {

constexpr std::uint64_t kLittle = 8;
constexpr std::uint64_t kMuch = 256 * 1024;
constexpr int kLatencyRounds = 16;
constexpr int kBandwidthRounds = 3;

using Microseconds = std::chrono::duration<double, std::micro>;

double microseconds_since(Deadline begin) {
  return Microseconds(Clock::now() - begin).count();
}

// Every rank sends to its right neighbour and receives from its left one: all links work, in both
// directions.
Program shift(const Mesh& mesh, std::uint64_t bytes) {
  Program program;
  program.send((mesh.rank() + 1) % mesh.size(), {Space::kIn, 0, bytes});
  program.store((mesh.rank() + mesh.size() - 1) % mesh.size(), {Space::kOut, 0, bytes});
  return program;
}

struct Rig {
  const Mesh& mesh;
  Scratch& scratch;
  std::vector<std::byte> in = std::vector<std::byte>(kMuch);
  std::vector<std::byte> out = std::vector<std::byte>(kMuch);

  Status run(const Program& program, std::uint64_t bytes) {
    const Greeting greeting = {.call = {.kind = CallKind::kAllToAll, .count = bytes}};
    return Exchange(mesh, greeting, program, Memory(in.data(), bytes), Memory(out.data(), bytes),
                    scratch)
        .run();
  }

  // The median time of some rounds.
  Result<double> time(std::uint64_t bytes, int rounds) {
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
      const Deadline begin = Clock::now();
      if (Status ran = run(shift(mesh, bytes), bytes); !ran) return ran.error();
      times.push_back(microseconds_since(begin));
    }
    std::ranges::sort(times);
    return times[times.size() / 2];
  }
};

double time_of_reduction(Rig& rig) {
  const Kernel sum = Kernel::of({.type = DataType::kFloat32});
  const std::array<const std::byte*, 2> inputs = {rig.in.data(), rig.out.data()};
  sum(inputs.data(), 2, rig.out.data(), kMuch / 4);
  const Deadline begin = Clock::now();
  sum(inputs.data(), 2, rig.out.data(), kMuch / 4);
  return microseconds_since(begin) / static_cast<double>(kMuch);
}

}  // namespace

Result<Costs> probe(const Mesh& mesh, Scratch& scratch) {
  Rig rig{mesh, scratch};
  const Result<double> little = rig.time(kLittle, kLatencyRounds);
  if (!little) return little.error();
  const Result<double> much = rig.time(kMuch, kBandwidthRounds);
  if (!much) return much.error();
  Costs costs;
  costs.latency = *little;
  costs.byte = std::max(*much - *little, 1.0) / static_cast<double>(kMuch);
  costs.reduced_byte = time_of_reduction(rig);
  static_assert(sizeof costs <= kMuch);
  std::memcpy(rig.out.data(), &costs, sizeof costs);
  const Place place = {mesh.rank(), mesh.size()};
  if (Status shared = rig.run(plan_broadcast_tree(place, sizeof costs, 0), sizeof costs); !shared) {
    return shared.error();
  }
  std::memcpy(&costs, rig.out.data(), sizeof costs);
  return costs;
}

}  // namespace muster::collective::tcp
