#include "schedules.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "hierarchy/hierarchical_backend.h"
#include "kernels/kernel.h"

namespace muster::collective::model {
namespace {

using tcp::Algorithm;
using tcp::Extent;
using tcp::Place;
using tcp::Program;
using tcp::Range;
using tcp::Source;
using tcp::Space;
using tcp::Steps;
using tcp::Track;

constexpr std::uint64_t kElement = sizeof(float);

// The trees are executed up to this size. Beyond, two executions with equal cells give the slope.
constexpr std::uint64_t kTreeBytes = std::uint64_t{2} << 20;
constexpr std::uint64_t kTreeCell = 64 * 1024;

const Kernel& sum() {
  static const Kernel kernel = Kernel::of({.type = DataType::kFloat32});
  return kernel;
}

Program program_of(Algorithm algorithm, Place place, Extent extent) {
  if (sees_all_inputs(algorithm)) return tcp::plan_at_once(algorithm, place, extent, sum());
  return tcp::plan_in_steps(algorithm, place, extent, {sum(), sum()});
}

// Rabenseifner is not symmetric: a rank sends the parts of the result in the order of their offsets,
// and ranks of upper halves wait for the first one.
Symmetry symmetry_of(Algorithm algorithm) {
  if (algorithm == Algorithm::kRabenseifner) return Symmetry::kNone;
  return algorithm == Algorithm::kDoubling ? Symmetry::kFlip : Symmetry::kShift;
}

// Equal slices: symmetric ranks have as many bytes as their stand-ins. Large slices consist of whole
// cache lines (tcp::Slices).
Extent even_extent(Algorithm algorithm, int parts, std::uint64_t bytes) {
  const std::uint64_t count = std::max<std::uint64_t>(1, bytes / kElement);
  const bool is_sliced = algorithm != Algorithm::kDoubling && algorithm != Algorithm::kExchange;
  if (!is_sliced) return {count, kElement};
  const auto slices = static_cast<std::uint64_t>(parts);
  const std::uint64_t unit = count >= slices * 4096 ? slices * 64 : slices;
  return {(count + unit - 1) / unit * unit, kElement};
}

// Cells are short enough that a rank passes on the beginning of a slice before its end: a quarter of
// a ring's slice, a sixteenth of what Rabenseifner sends at first.
std::uint64_t most_in_cell(Algorithm algorithm, int parts, Extent extent) {
  if (algorithm == Algorithm::kRabenseifner) return extent.bytes() / 32;
  if (algorithm != Algorithm::kRing) return ~std::uint64_t{0};
  return extent.bytes() / static_cast<std::uint64_t>(parts) / 4;
}

// A rank's neighbours in a tree. Ranks are in symmetric order: a subtree is a range of ranks, and
// odd ranks are leaves.
struct Branch {
  int parent = -1;
  std::vector<int> children = {};
};

Branch branch_of(Place place) {
  const int root_bit = static_cast<int>(std::bit_ceil(static_cast<unsigned>(place.size)));
  const int bit = place.rank == 0 ? root_bit : place.rank & -place.rank;
  Branch branch;
  if (place.rank != 0) {
    branch.parent = (place.rank ^ bit) | (bit << 1);
    if (branch.parent >= place.size) branch.parent = place.rank ^ bit;
  }
  int step = bit / 2;
  if (place.rank != 0 && step > 0) branch.children.push_back(place.rank - step);
  while (step > 0 && place.rank + step >= place.size) step /= 2;
  if (step > 0) branch.children.push_back(place.rank + step);
  return branch;
}

// The second tree is the first one with other numbers, such that its leaves are the inner ranks of
// the first one: from the end, or shifted by one.
Branch second_branch_of(Place place) {
  const bool is_even = place.size % 2 == 0;
  const auto number = [&](int rank) {
    return is_even ? place.size - 1 - rank : (rank + 1) % place.size;
  };
  const auto rank_with = [&](int one) {
    return is_even ? place.size - 1 - one : (one + place.size - 1) % place.size;
  };
  Branch branch = branch_of({number(place.rank), place.size});
  if (branch.parent >= 0) branch.parent = rank_with(branch.parent);
  for (int& child : branch.children) child = rank_with(child);
  return branch;
}

}  // namespace

Program plan_two_trees(Place place, Extent extent, const Steps& steps) {
  Program program;
  const tcp::Slices halves(extent, 2);
  const std::array<Branch, 2> branches = {branch_of(place), second_branch_of(place)};
  std::array<Track, 2> reduced = {tcp::kReady, tcp::kReady};
  for (int tree = 0; tree < 2; ++tree) {
    const Branch& branch = branches[static_cast<std::size_t>(tree)];
    const Range in = halves(steps.from, tree);
    const Range out = halves(Space::kOut, tree);
    std::vector<Source> sources = {Program::local(in)};
    for (const int child : branch.children) sources.push_back(program.stage(child, in.bytes));
    const bool is_leaf = branch.children.empty();
    const Kernel& kernel = branch.parent < 0 ? steps.last : steps.partial;
    Track& track = reduced[static_cast<std::size_t>(tree)];
    if (!is_leaf) track = program.merge(std::move(sources), out, kernel);
    if (branch.parent >= 0) program.send(branch.parent, is_leaf ? in : out, {track});
  }
  for (int tree = 0; tree < 2; ++tree) {
    const Branch& branch = branches[static_cast<std::size_t>(tree)];
    const Range out = halves(Space::kOut, tree);
    Track track = reduced[static_cast<std::size_t>(tree)];
    if (branch.parent >= 0) track = program.store(branch.parent, out);
    for (const int child : branch.children) program.send(child, out, {track});
  }
  return program;
}

double time_of_flat(const Network& network, Algorithm algorithm, int ranks, std::uint64_t bytes) {
  const Extent extent = even_extent(algorithm, ranks, bytes);
  return execute(
             network, ranks, symmetry_of(algorithm),
             [&](int rank) { return program_of(algorithm, {rank, ranks}, extent); },
             most_in_cell(algorithm, ranks, extent))
      .microseconds;
}

double time_of_trees(const Network& network, int ranks, std::uint64_t bytes) {
  const auto time_of = [&](std::uint64_t some, std::uint64_t cell) {
    const Extent extent = {std::max<std::uint64_t>(1, some / kElement), kElement};
    const auto program = [&](int rank) {
      return plan_two_trees({rank, ranks}, extent, {sum(), sum()});
    };
    return execute(network, ranks, Symmetry::kNone, program, cell).microseconds;
  };
  if (bytes < kTreeBytes) return time_of(bytes, kTreeCell);
  const std::uint64_t half = kTreeBytes / 2;
  const double some = time_of(half, kTreeCell);
  const double more = time_of(kTreeBytes, kTreeCell) - some;
  return some + more * static_cast<double>(bytes - half) / static_cast<double>(half);
}

double Hierarchy::time_of(std::uint64_t bytes) {
  if (network_.ranks_per_host == 1) return time_between_hosts(bytes);
  const std::uint64_t chunks = bytes / Chunks::kBytes;
  const auto whole = static_cast<double>(chunks);
  const std::uint64_t rest = bytes % Chunks::kBytes;
  double time = 0;
  if (whole > 0) time += whole * time_of_chunk(Chunks::kBytes);
  if (rest > 0) time += time_of_chunk(rest);
  return time;
}

Algorithm Hierarchy::between_hosts(std::uint64_t bytes) const {
  const std::uint64_t chunk =
      network_.ranks_per_host == 1 ? bytes : std::min(bytes, Chunks::kBytes);
  // The library counts one rank on each host: those that reduce the same slice.
  return tcp::rank_algorithms({hosts(), 1}, slice_of(chunk), network_.costs(), false)
      .front()
      .algorithm;
}

std::uint64_t Hierarchy::slice_of(std::uint64_t bytes) const {
  const tcp::Slices slices({std::max<std::uint64_t>(1, bytes / kElement), kElement},
                           network_.ranks_per_host);
  return slices(Space::kIn, 0).bytes;
}

double Hierarchy::time_of_chunk(std::uint64_t bytes) {
  const auto [known, is_new] = known_.try_emplace(bytes, 0);
  if (is_new) {
    known->second = time_on_host(bytes);
    if (hosts() > 1) known->second += time_between_hosts(slice_of(bytes));
  }
  return known->second;
}

// Shared memory: no processor time for messages and sockets.
double Hierarchy::time_on_host(std::uint64_t bytes) const {
  Network memory = network_;
  memory.message = 0;
  memory.touched_byte = 0;
  const int ranks = network_.ranks_per_host;
  const std::vector<std::uint64_t> counts(static_cast<std::size_t>(ranks),
                                          slice_of(bytes) / kElement);
  const std::vector<std::uint64_t> lengths(counts.size(), slice_of(bytes));
  const Outcome scattered = execute(memory, ranks, Symmetry::kNone, [&](int rank) {
    return tcp::plan_reduce_scatter({rank, ranks}, counts, kElement, sum());
  });
  const Outcome gathered = execute(memory, ranks, Symmetry::kNone, [&](int rank) {
    return tcp::plan_all_gather_direct({rank, ranks}, lengths);
  });
  return scattered.microseconds + gathered.microseconds;
}

// All ranks of a host reduce their slices at the same time, and share its port.
double Hierarchy::time_between_hosts(std::uint64_t slice) const {
  const Algorithm algorithm =
      tcp::rank_algorithms({hosts(), 1}, slice, network_.costs(), false).front().algorithm;
  const Extent extent = even_extent(algorithm, hosts(), slice);
  const int width = network_.ranks_per_host;
  return execute(
             network_, ranks_, symmetry_of(algorithm),
             [&](int rank) {
               Program program = program_of(algorithm, {rank / width, hosts()}, extent);
               for (tcp::Dialogue& dialogue : program.dialogues) {
                 dialogue.peer = dialogue.peer * width + rank % width;
               }
               return program;
             },
             most_in_cell(algorithm, hosts(), extent))
      .microseconds;
}

}  // namespace muster::collective::model
