#include "tcp/memory.h"

#include <algorithm>

namespace muster::collective::tcp {

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

Stretch Memory::at(std::uint64_t offset) const {
  std::size_t index = 0;
  if (stretches_.size() > 1) {
    const auto next = std::ranges::upper_bound(starts_, offset);
    index = static_cast<std::size_t>(next - starts_.begin()) - 1;
  }
  const std::uint64_t inside = offset - starts_[index];
  return {stretches_[index].data + inside, stretches_[index].bytes - inside};
}

}  // namespace muster::collective::tcp
