// The frames of which Muster's own byte streams consist: what the server, its shims, muster-node
// and the remote shell send each other, and a log that is followed by a program of ours.
//
//   offset  size  field
//   0       1     tag: which message it is; each stream has tags of its own
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

/// A frame in a buffer, which holds the bytes.
struct Frame {
  char tag = 0;
  std::string_view bytes;

  size_t size() const { return kFrameHead + bytes.size(); }
  bool operator==(const Frame&) const = default;
};

/// Appends a frame to `out`.
void append_frame(std::string& out, char tag, std::string_view bytes);
/// A frame by itself.
std::string encode_frame(char tag, std::string_view bytes);

/// The same for bytes that are appended piece by piece: begin_frame() leaves room for the length
/// and returns where, end_frame() fills it in.
size_t begin_frame(std::string& out, char tag);
void end_frame(std::string& out, size_t begin);

/// The frame at the front of `bytes`; nothing: more has to come. kInvalid: its length is past
/// `most`.
Result<std::optional<Frame>> first_frame(std::string_view bytes, size_t most);

/// Cuts a stream that comes in pieces into frames.
class FrameReader {
 public:
  /// `most`: the most bytes of a frame.
  explicit FrameReader(size_t most) : most_(most) {}

  void add(std::string_view bytes) { waiting_.add(bytes); }

  /// The first frame, until pop() or add(); nothing: more has to come. kInvalid: the stream cannot
  /// be read on.
  Result<std::optional<Frame>> front() const { return first_frame(waiting_.front(), most_); }
  /// Takes the frame that front() has returned.
  void pop(const Frame& frame) { waiting_.take(frame.size()); }

  /// Bytes that were not popped.
  size_t waiting() const { return waiting_.size(); }
  size_t kept() const { return waiting_.kept(); }  ///< in memory, with what was popped

 private:
  size_t most_;
  ByteQueue waiting_;
};

}  // namespace muster::base
