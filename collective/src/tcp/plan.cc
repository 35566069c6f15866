#include "tcp/plan.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace muster::collective::tcp {
namespace {

Range all_of(Space space, Extent extent) {
  return {space, 0, extent.bytes()};
}

// The other ranks, beginning after this rank, so that not all ranks send to rank 0 first.
std::vector<int> others_of(Place place) {
  std::vector<int> others;
  for (int step = 1; step < place.size; ++step) others.push_back((place.rank + step) % place.size);
  return others;
}

// This rank's inputs of `range` and those of all other ranks, in the order of the ranks.
std::vector<Source> one_of_each(Program& program, Place place, Range range) {
  std::vector<Source> sources(static_cast<std::size_t>(place.size));
  for (const int other : others_of(place)) {
    sources[static_cast<std::size_t>(other)] = program.stage(other, range.bytes);
  }
  sources[static_cast<std::size_t>(place.rank)] = Program::local(range);
  return sources;
}

// The reduce-scatter of direct algorithms: slice p of the input goes to rank p, and this rank's own
// slice is reduced into `out`.
template <typename SliceOf>
Track scatter_directly(Program& program, Place place, const SliceOf& slice_of, Range out,
                       const Kernel& whole) {
  for (const int other : others_of(place)) program.send(other, slice_of(other));
  return program.merge(one_of_each(program, place, slice_of(place.rank)), out, whole);
}

// Two partial results in the order of their ranks.
std::vector<Source> pair_of(Place place, int other, Source mine, Source theirs) {
  if (place.rank < other) return {mine, theirs};
  return {theirs, mine};
}

}  // namespace

Program plan_exchange(Place place, Extent extent, const Kernel& whole) {
  Program program;
  std::vector<Unsent> unsent;
  const Range in = all_of(Space::kIn, extent);
  for (const int other : others_of(place)) unsent.push_back(program.send(other, in));
  program.merge(one_of_each(program, place, in), all_of(Space::kOut, extent), whole,
                std::move(unsent));
  return program;
}

// In the second phase bytes arrive in slices that this rank has already sent: another rank cannot
// complete a slice without this rank's share. Therefore a buffer may be reduced in place.
Program plan_direct(Place place, Extent extent, const Kernel& whole) {
  Program program;
  const Slices slices(extent, place.size);
  const Range own = slices(Space::kOut, place.rank);
  const Track reduced = scatter_directly(
      program, place, [&](int rank) { return slices(Space::kIn, rank); }, own, whole);
  for (const int other : others_of(place)) {
    program.send(other, own, {reduced});
    program.store(other, slices(Space::kOut, other));
  }
  return program;
}

// Slice i starts at rank i and is complete at rank i - 1, reduced in the order of the ranks.
Program plan_ring(Place place, Extent extent, const Steps& steps) {
  Program program;
  const Slices slices(extent, place.size);
  const int right = (place.rank + 1) % place.size;
  const int left = (place.rank + place.size - 1) % place.size;
  program.send(right, slices(steps.from, place.rank));
  for (int step = 1; step < place.size; ++step) {
    const Range mine = slices(steps.from, place.rank - step);
    const Range out = slices(Space::kOut, place.rank - step);
    const Kernel& kernel = step == place.size - 1 ? steps.last : steps.partial;
    const Track track =
        program.merge({program.stage(left, out.bytes), Program::local(mine)}, out, kernel);
    program.send(right, out, {track});
  }
  for (int step = 0; step < place.size - 1; ++step) {
    const Range slice = slices(Space::kOut, place.rank - step);
    const Track track = program.store(left, slice);
    if (step < place.size - 2) program.send(right, slice, {track});
  }
  return program;
}

namespace {

// A world whose size is not a power of two folds: each rank beyond the largest power of two sends
// its input to a partner below, and receives the result from it.
struct Folded {
  int power;  // ranks that remain
  bool outside;
  int partner;  // this rank's, or -1
};

Folded fold(Place place) {
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(place.size)));
  const bool outside = place.rank >= power;
  int partner = outside ? place.rank - power : place.rank + power;
  if (partner >= place.size) partner = -1;
  return {power, outside, partner};
}

void follow(Program& program, Extent extent, Space from, int partner) {
  program.send(partner, all_of(from, extent));
  program.store(partner, all_of(Space::kOut, extent));
}

// The starting values of the remaining ranks: their input, merged with their partner's.
Source folded_in(Program& program, Place place, Extent extent, const Steps& steps, Folded folded) {
  const Source mine = Program::local(all_of(steps.from, extent));
  if (folded.partner < 0) return mine;
  const bool is_all = folded.power == 1;
  const Track track = program.merge(
      pair_of(place, folded.partner, mine, program.stage(folded.partner, extent.bytes())),
      all_of(Space::kOut, extent), is_all ? steps.last : steps.partial);
  return Program::local(all_of(Space::kOut, extent), {track});
}

// A part of a source in memory.
Source part_of(Source whole, std::uint64_t offset, std::uint64_t bytes) {
  whole.range.offset += offset;
  whole.range.bytes = bytes;
  whole.after.offset += offset;
  return whole;
}

}  // namespace

Program plan_doubling(Place place, Extent extent, const Steps& steps) {
  Program program;
  const Folded folded = fold(place);
  if (folded.outside) {
    follow(program, extent, steps.from, folded.partner);
    return program;
  }
  Source mine = folded_in(program, place, extent, steps, folded);
  for (int distance = 1; distance < folded.power; distance *= 2) {
    const int other = place.rank ^ distance;
    const Unsent unsent = program.send(other, mine.range, mine.after);
    const bool is_last = 2 * distance == folded.power;
    const Track track =
        program.merge(pair_of(place, other, mine, program.stage(other, extent.bytes())),
                      all_of(Space::kOut, extent), is_last ? steps.last : steps.partial, {unsent});
    mine = Program::local(all_of(Space::kOut, extent), {track});
  }
  if (folded.partner >= 0) program.send(folded.partner, mine.range, mine.after);
  return program;
}

namespace {

// One halving step: the part that this rank keeps, and the part that its partner keeps.
struct Halved {
  int other;
  Source kept;
  Range given;
};

Halved halve(Program& program, Place place, Extent extent, const Source& mine, int distance,
             const Kernel& kernel) {
  const int other = place.rank ^ distance;
  const std::uint64_t low = mine.range.bytes / extent.element / 2 * extent.element;
  const Source lower = part_of(mine, 0, low);
  const Source upper = part_of(mine, low, mine.range.bytes - low);
  const bool keeps_upper = (place.rank & distance) != 0;
  const Source& kept = keeps_upper ? upper : lower;
  const Source& given = keeps_upper ? lower : upper;
  program.send(other, given.range, given.after);
  Range out = kept.range;
  out.space = Space::kOut;
  const Track track = program.merge(
      pair_of(place, other, kept, program.stage(other, kept.range.bytes)), out, kernel);
  Range theirs = given.range;
  theirs.space = Space::kOut;
  return {other, Program::local(out, {track}), theirs};
}

// The parts of the result that this rank has, in the order of their offsets. Together they are
// contiguous.
using Held = std::vector<Source>;

void send_held(Program& program, int other, const Held& held) {
  for (const Source& part : held) program.send(other, part.range, part.after);
}

}  // namespace

Program plan_rabenseifner(Place place, Extent extent, const Steps& steps) {
  Program program;
  const Folded folded = fold(place);
  if (folded.outside) {
    follow(program, extent, steps.from, folded.partner);
    return program;
  }
  Source mine = folded_in(program, place, extent, steps, folded);
  std::vector<Halved> halvings;
  for (int distance = folded.power / 2; distance > 0; distance /= 2) {
    const Kernel& kernel = distance == 1 ? steps.last : steps.partial;
    halvings.push_back(halve(program, place, extent, mine, distance, kernel));
    mine = halvings.back().kept;
  }
  Held held = {mine};
  for (auto step = halvings.rbegin(); step != halvings.rend(); ++step) {
    send_held(program, step->other, held);
    const Source theirs = Program::local(step->given, {program.store(step->other, step->given)});
    const bool is_above = step->given.offset >= held.front().range.offset;
    held.insert(is_above ? held.end() : held.begin(), theirs);
  }
  if (folded.partner >= 0) send_held(program, folded.partner, held);
  return program;
}

Program plan_at_once(Algorithm algorithm, Place place, Extent extent, const Kernel& whole) {
  return algorithm == Algorithm::kDirect ? plan_direct(place, extent, whole)
                                         : plan_exchange(place, extent, whole);
}

Program plan_in_steps(Algorithm algorithm, Place place, Extent extent, const Steps& steps) {
  if (algorithm == Algorithm::kRing) return plan_ring(place, extent, steps);
  if (algorithm == Algorithm::kDoubling) return plan_doubling(place, extent, steps);
  return plan_rabenseifner(place, extent, steps);
}

Program plan_reduce_scatter(Place place, std::span<const std::uint64_t> counts, std::size_t element,
                            const Kernel& whole) {
  std::vector<Range> ranges;
  std::uint64_t offset = 0;
  for (const std::uint64_t count : counts) {
    ranges.push_back({Space::kIn, offset, count * element});
    offset += count * element;
  }
  Program program;
  const auto slice_of = [&](int rank) { return ranges[static_cast<std::size_t>(rank)]; };
  scatter_directly(program, place, slice_of, {Space::kOut, 0, slice_of(place.rank).bytes}, whole);
  return program;
}

Program plan_reduce_at_root(Place place, Extent extent, int root, const Kernel& whole) {
  Program program;
  const Range in = all_of(Space::kIn, extent);
  if (place.rank != root) {
    program.send(root, in);
    return program;
  }
  program.merge(one_of_each(program, place, in), all_of(Space::kOut, extent), whole);
  return program;
}

Program plan_reduce_sliced(Place place, Extent extent, int root, const Kernel& whole) {
  Program program;
  const Slices slices(extent, place.size);
  const bool is_root = place.rank == root;
  Range own = slices(Space::kOut, place.rank);
  if (!is_root) {
    own = {Space::kSpare, 0, own.bytes};
    program.spare_bytes = own.bytes;
  }
  const Track reduced = scatter_directly(
      program, place, [&](int rank) { return slices(Space::kIn, rank); }, own, whole);
  if (!is_root) program.send(root, own, {reduced});
  for (const int other : others_of(place)) {
    if (is_root) program.store(other, slices(Space::kOut, other));
  }
  return program;
}

namespace {

// The offset of each rank's part if they are packed by rank.
std::vector<Range> packed(Space space, std::span<const std::uint64_t> bytes) {
  std::vector<Range> ranges;
  std::uint64_t offset = 0;
  for (const std::uint64_t length : bytes) {
    ranges.push_back({space, offset, length});
    offset += length;
  }
  return ranges;
}

// The number of a rank, counted from the root.
int distance_from(int root, Place place) {
  return (place.rank - root + place.size) % place.size;
}

}  // namespace

Program plan_broadcast_tree(Place place, std::uint64_t bytes, int root) {
  Program program;
  const Range all = {Space::kOut, 0, bytes};
  const int self = distance_from(root, place);
  // The lowest set bit of `self`; for the root, the first power of two above all ranks.
  int step = 1;
  while (step < place.size && (self & step) == 0) step *= 2;
  After after;
  if (self != 0) after.track = program.store((self - step + root) % place.size, all);
  for (step /= 2; step > 0; step /= 2) {
    if (self + step < place.size) program.send((self + step + root) % place.size, all, after);
  }
  return program;
}

Program plan_broadcast_chain(Place place, std::uint64_t bytes, int root) {
  Program program;
  const Range all = {Space::kOut, 0, bytes};
  const int self = distance_from(root, place);
  After after;
  if (self != 0) after.track = program.store((place.rank + place.size - 1) % place.size, all);
  if (self != place.size - 1) program.send((place.rank + 1) % place.size, all, after);
  return program;
}

Program plan_all_gather_direct(Place place, std::span<const std::uint64_t> bytes) {
  Program program;
  const std::vector<Range> parts = packed(Space::kOut, bytes);
  for (int step = 1; step < place.size; ++step) {
    const int other = (place.rank + step) % place.size;
    program.send(other, parts[static_cast<std::size_t>(place.rank)]);
    program.store(other, parts[static_cast<std::size_t>(other)]);
  }
  return program;
}

Program plan_all_gather_ring(Place place, std::span<const std::uint64_t> bytes) {
  Program program;
  const std::vector<Range> parts = packed(Space::kOut, bytes);
  const int right = (place.rank + 1) % place.size;
  const int left = (place.rank + place.size - 1) % place.size;
  program.send(right, parts[static_cast<std::size_t>(place.rank)]);
  for (int step = 1; step < place.size; ++step) {
    const int origin = (place.rank + place.size - step) % place.size;
    const Range part = parts[static_cast<std::size_t>(origin)];
    const Track track = program.store(left, part);
    if (step < place.size - 1) program.send(right, part, {track});
  }
  return program;
}

Program plan_all_to_all(Place place, std::span<const std::uint64_t> sent,
                        std::span<const std::uint64_t> received) {
  Program program;
  const std::vector<Range> outgoing = packed(Space::kIn, sent);
  const std::vector<Range> incoming = packed(Space::kOut, received);
  for (int step = 1; step < place.size; ++step) {
    const auto to = static_cast<std::size_t>((place.rank + step) % place.size);
    program.send(static_cast<int>(to), outgoing[to]);
    program.store(static_cast<int>(to), incoming[to]);
  }
  return program;
}

// The message of a round has one byte for each earlier round. Each byte is sent once the message of
// its round has arrived, so a message is complete when the sender has received everything that it
// passes on.
Program plan_barrier(Place place) {
  Program program;
  std::vector<Track> arrived;
  for (int distance = 1; distance < place.size; distance *= 2) {
    const int to = (place.rank + distance) % place.size;
    const int from = (place.rank + place.size - distance) % place.size;
    const std::uint64_t bytes = std::max<std::uint64_t>(1, arrived.size());
    for (std::uint64_t i = 0; i < bytes; ++i) {
      program.send(to, {Space::kSpare, 0, 1}, {arrived.empty() ? kReady : arrived[i]});
    }
    Track last = kReady;
    for (std::uint64_t i = 0; i < bytes; ++i) last = program.store(from, {Space::kSpare, 0, 1});
    arrived.push_back(last);
  }
  program.spare_bytes = 1;
  return program;
}

}  // namespace muster::collective::tcp
