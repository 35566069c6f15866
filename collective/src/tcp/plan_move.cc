#include "tcp/plan_move.h"

#include <algorithm>

namespace muster::collective::tcp {
namespace {

// Where each rank's part lies when they are packed by rank.
std::vector<Range> packed(Space space, std::span<const std::uint64_t> bytes) {
  std::vector<Range> ranges;
  std::uint64_t offset = 0;
  for (const std::uint64_t length : bytes) {
    ranges.push_back({space, offset, length});
    offset += length;
  }
  return ranges;
}

// Ranks counted from the root.
int distance_from(int root, Place place) {
  return (place.rank - root + place.size) % place.size;
}

}  // namespace

Program plan_broadcast_tree(Place place, std::uint64_t bytes, int root) {
  Program program;
  const Range all = {Space::kOut, 0, bytes};
  const int self = distance_from(root, place);
  int step = 1;  // the lowest bit of `self`; for the root, past all of them
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

// A round's message is one byte for each round before it, and each of them goes out once that
// round's message is in: the message is complete when the sender has heard all it has to pass on.
Program plan_barrier(Place place) {
  Program program;
  std::vector<Track> heard;
  for (int distance = 1; distance < place.size; distance *= 2) {
    const int to = (place.rank + distance) % place.size;
    const int from = (place.rank + place.size - distance) % place.size;
    const std::uint64_t bytes = std::max<std::uint64_t>(1, heard.size());
    for (std::uint64_t i = 0; i < bytes; ++i) {
      program.send(to, {Space::kSpare, 0, 1}, {heard.empty() ? kReady : heard[i]});
    }
    Track last = kReady;
    for (std::uint64_t i = 0; i < bytes; ++i) last = program.store(from, {Space::kSpare, 0, 1});
    heard.push_back(last);
  }
  program.spare_bytes = 1;
  return program;
}

}  // namespace muster::collective::tcp
