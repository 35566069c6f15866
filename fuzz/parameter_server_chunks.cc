// The chunks of pushes and pulls, divided anywhere: nothing is written past the end of a buffer,
// and every accepted chunk is valid, however it was divided.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "parameter_server/chunk.h"

namespace {

using namespace muster::parameter_server;
using View = std::span<const std::byte>;

// The data of a message that arrives in pieces; nullopt if it is rejected.
std::optional<std::vector<std::byte>> read(View message, std::size_t piece) {
  ChunkReader reader;
  std::vector<std::byte> data;
  while (!message.empty()) {
    const std::size_t count = std::min(piece, message.size());
    const auto part = reader.take(message.first(count));
    if (!part) return std::nullopt;
    data.insert(data.end(), part->begin(), part->end());
    message = message.subspan(count);
  }
  if (!reader.is_complete()) return std::nullopt;
  return data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = 1 + data[0];
  const View bytes = std::as_bytes(std::span(data + 1, size - 1));

  const auto whole = read(bytes, bytes.size() + 1);
  if (read(bytes, piece) != whole) std::abort();

  std::vector<float> first(piece % 7);
  std::vector<float> second(piece);
  Filler filler({std::span(first), std::span(second)});
  const std::size_t room = (first.size() + second.size()) * sizeof(float);
  View rest = whole ? View(*whole) : bytes;
  const bool fits = rest.size() <= room;
  bool taken = true;
  while (taken && !rest.empty()) {
    const std::size_t count = std::min(piece, rest.size());
    taken = filler.take(rest.first(count));
    rest = rest.subspan(count);
  }
  if (taken != fits || filler.filled() > room) std::abort();
  return 0;
}
