// The frames of Muster's own byte streams: between the server, its shims, muster-node and the
// remote shell, and in log files.
//
//   offset  size  field
//   0       1     tag: the type of the message; each stream has its own tags
//   1       4     length of the bytes, little endian; at most what the stream allows
//   5       ...   the bytes
//
// Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace muster::base {

inline constexpr size_t kFrameHead = 5;

/// A frame in a buffer; the buffer owns the bytes.
struct Frame {
  char tag = 0;
  std::string_view bytes;

  size_t size() const { return kFrameHead + bytes.size(); }
  bool operator==(const Frame&) const = default;
};

/// Appends a frame to `out`.
void append_frame(std::string& out, char tag, std::string_view bytes);
/// A frame as a string of its own.
std::string encode_frame(char tag, std::string_view bytes);

/// The same for bytes that are appended piece by piece: begin_frame() reserves room for the length
/// and returns its offset, end_frame() fills it in.
size_t begin_frame(std::string& out, char tag);
void end_frame(std::string& out, size_t begin);

/// The frame at the front of `bytes`; nothing: it is incomplete. kInvalid: its length exceeds
/// `most`.
Result<std::optional<Frame>> first_frame(std::string_view bytes, size_t most);

/// Divides a stream that arrives in pieces into frames.
class FrameReader {
 public:
  /// `most`: the maximum size of a frame's bytes.
  explicit FrameReader(size_t most) : most_(most) {}

  void add(std::string_view bytes) { waiting_.add(bytes); }

  /// The first frame, valid until pop() or add(); nothing: it is incomplete. kInvalid: the stream
  /// is damaged.
  Result<std::optional<Frame>> front() const { return first_frame(waiting_.front(), most_); }
  /// Removes the frame that front() returned.
  void pop(const Frame& frame) { waiting_.take(frame.size()); }

  /// The number of bytes that were not popped.
  size_t waiting() const { return waiting_.size(); }
  size_t kept() const { return waiting_.kept(); }  ///< in memory, including popped bytes

 private:
  size_t most_;
  ByteQueue waiting_;
};

}  // namespace muster::base
