// How an engine sends two outputs over one connection: frames of 8 bytes of header (which output,
// and how many bytes) and the bytes. A terminal's output comes as it is, without frames.
//
// No I/O; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/result.h"

namespace muster::engine {

class FrameReader {
 public:
  /// Returns false to have no more.
  using OnOutput = std::function<bool(std::string_view bytes, bool is_error)>;

  /// Hands on what frames hold, as it comes: also parts of a frame. kInternal: these are no frames;
  /// nothing that follows can be read.
  base::Result<void> put(std::string_view bytes, const OnOutput& on_output);
  /// Whether the last frame is whole.
  bool at_border() const { return header_size_ == 0 && left_ == 0; }

 private:
  static constexpr size_t kHeader = 8;

  base::Result<void> begin_frame();

  std::array<unsigned char, kHeader> header_{};
  size_t header_size_ = 0;  ///< of it have come
  uint64_t left_ = 0;       ///< of the frame's bytes
  bool is_error_ = false;
};

}  // namespace muster::engine
