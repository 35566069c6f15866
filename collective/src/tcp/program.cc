#include "tcp/program.h"

#include <algorithm>
#include <utility>

namespace muster::collective::tcp {

int Program::dialogue_with(int peer) {
  for (std::size_t i = 0; i < dialogues.size(); ++i) {
    if (dialogues[i].peer == peer) return static_cast<int>(i);
  }
  dialogues.push_back({.peer = peer});
  return static_cast<int>(dialogues.size()) - 1;
}

void Program::greet(int peer) {
  dialogues[static_cast<std::size_t>(dialogue_with(peer))].sends = true;
}

void Program::expect(int peer) {
  dialogues[static_cast<std::size_t>(dialogue_with(peer))].receives = true;
}

Unsent Program::send(int peer, Range range, After after) {
  const int index = dialogue_with(peer);
  Dialogue& dialogue = dialogues[static_cast<std::size_t>(index)];
  const std::uint64_t begin = dialogue.out_bytes;
  dialogue.sends = true;
  if (range.bytes > 0) dialogue.out.push_back({range, after, begin});
  dialogue.out_bytes += range.bytes;
  return {index, begin};
}

Track Program::store(int peer, Range range) {
  Dialogue& dialogue = dialogues[static_cast<std::size_t>(dialogue_with(peer))];
  dialogue.receives = true;
  const Track track = tracks++;
  if (range.bytes > 0) {
    dialogue.in.push_back({.range = range, .track = track, .begin = dialogue.in_bytes});
  }
  dialogue.in_bytes += range.bytes;
  return track;
}

Source Program::stage(int peer, std::uint64_t bytes) {
  const int index = dialogue_with(peer);
  Dialogue& dialogue = dialogues[static_cast<std::size_t>(index)];
  dialogue.receives = true;
  const std::uint64_t begin = dialogue.in_bytes;
  if (bytes > 0) {
    dialogue.in.push_back({.staged = true, .range = {.bytes = bytes}, .begin = begin});
  }
  dialogue.in_bytes += bytes;
  dialogue.staged_bytes += bytes;
  return {.dialogue = index, .begin = begin, .range = {}, .after = {}};
}

Track Program::merge(std::vector<Source> sources, Range out, const Kernel& kernel,
                     std::vector<Unsent> overwrites) {
  const Track track = tracks++;
  if (out.bytes > 0) {
    merges.push_back({std::move(sources), out, &kernel, std::move(overwrites), track});
  }
  return track;
}

Memory::Memory(const std::byte* data, std::uint64_t bytes) {
  append(data, bytes);
}

Memory Memory::inputs_of(Pieces pieces, std::size_t element) {
  Memory memory;
  for (const Piece& piece : pieces) memory.append(piece.in, piece.count * element);
  return memory;
}

Memory Memory::outputs_of(Pieces pieces, std::size_t element) {
  Memory memory;
  for (const Piece& piece : pieces) memory.append(piece.out, piece.count * element);
  return memory;
}

void Memory::append(const std::byte* data, std::uint64_t bytes) {
  if (bytes == 0) return;
  stretches_.push_back({const_cast<std::byte*>(data), bytes});
  starts_.push_back(bytes_);
  bytes_ += bytes;
}

Segment Memory::at(std::uint64_t offset) const {
  std::size_t index = 0;
  if (stretches_.size() > 1) {
    const auto next = std::ranges::upper_bound(starts_, offset);
    index = static_cast<std::size_t>(next - starts_.begin()) - 1;
  }
  const std::uint64_t inside = offset - starts_[index];
  return {stretches_[index].data + inside, stretches_[index].bytes - inside};
}

}  // namespace muster::collective::tcp
