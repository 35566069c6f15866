// Control frames between ranks, whole and in pieces of the length that the first byte gives: both
// ways give the same frames. Encoding a decoded frame gives the same bytes.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "control/frame.h"

namespace {

using namespace muster::collective;

std::vector<Bytes> frames_in(ByteView bytes, std::size_t piece) {
  FrameReader reader;
  std::vector<Bytes> frames;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    while (const std::optional<Frame> frame = reader.next()) frames.push_back(encode(*frame));
    if (reader.broken()) break;
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const ByteView bytes = std::as_bytes(std::span(data + 1, size - 1));
  const std::vector<Bytes> whole = frames_in(bytes, bytes.size());
  if (frames_in(bytes, 1 + data[0]) != whole) std::abort();
  // An encoded frame decodes to the same frame.
  for (const Bytes& frame : whole) {
    if (frames_in(frame, frame.size()) != std::vector<Bytes>{frame}) std::abort();
  }
  return 0;
}
