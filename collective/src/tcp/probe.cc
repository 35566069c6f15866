#include "tcp/probe.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tcp/plan_move.h"

namespace muster::collective::tcp {
namespace {

constexpr std::uint64_t kLittle = 8;
constexpr std::uint64_t kMuch = 256 * 1024;
constexpr int kLatencyRounds = 16;
constexpr int kBandwidthRounds = 3;

using Microseconds = std::chrono::duration<double, std::micro>;

double microseconds_since(Deadline begin) {
  return Microseconds(Clock::now() - begin).count();
}

// Everyone sends to the right what it receives from the left: all links work, in both directions.
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

  // The median of some rounds.
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
  if (Status told = rig.run(plan_broadcast_tree(place, sizeof costs, 0), sizeof costs); !told) {
    return told.error();
  }
  std::memcpy(&costs, rig.out.data(), sizeof costs);
  return costs;
}

}  // namespace muster::collective::tcp
