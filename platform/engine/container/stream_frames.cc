#include "engine/container/stream_frames.h"

#include <algorithm>
#include <string>

namespace muster::engine {

namespace {

enum FrameKind : unsigned char { kInput = 0, kOutput = 1, kError = 2, kEngineError = 3 };

}  // namespace

base::Result<void> FrameReader::put(std::string_view bytes, const OnOutput& on_output) {
  while (!bytes.empty()) {
    if (left_ == 0) {
      header_[header_size_++] = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      if (header_size_ == kHeader) MUSTER_CHECK(begin_frame());
      continue;
    }
    const std::string_view part = bytes.substr(0, std::min<uint64_t>(left_, bytes.size()));
    bytes.remove_prefix(part.size());
    left_ -= part.size();
    if (!on_output(part, is_error_)) return {};
  }
  return {};
}

base::Result<void> FrameReader::begin_frame() {
  const auto [kind, zero1, zero2, zero3, a, b, c, d] = header_;
  if (kind > kEngineError || zero1 != 0 || zero2 != 0 || zero3 != 0) {
    return base::Error{.code = base::ErrorCode::kInternal,
                       .what = "the engine's output is not in frames: one begins with byte " +
                               std::to_string(kind)};
  }
  header_size_ = 0;
  is_error_ = kind == kError || kind == kEngineError;
  left_ = uint64_t{a} << 24U | uint64_t{b} << 16U | uint64_t{c} << 8U | d;
  return {};
}

}  // namespace muster::engine
