#include "tcp/program.h"

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

}  // namespace muster::collective::tcp
