// A task's log on disk: frames of a time, a stream and raw bytes, one after the other.
//
//   offset  size  field
//   0       8     time the bytes were read, nanoseconds since the Unix epoch, little endian
//   8       4     length of the bytes, little endian, at most kMaxFrame
//   12      1     stream: 0 output, 1 error, 2 notice
//   13      3     the rank that printed it plus one, little endian; 0: no rank is known
//   16      ...   the bytes
//
// Written by one shim alone. A reader that meets half a frame at the end has read all that is
// complete and tries again later from the frame's start: a half that a full disk cut is taken back.
// See docs/decisions/0005.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "job/log_record.h"

namespace muster::engine {

inline constexpr size_t kMaxFrame = 64 << 10;
inline constexpr size_t kFrameHeader = 16;

struct LogFrame {
  base::Time time;
  job::LogStream stream = job::LogStream::kOutput;
  std::string bytes;
  std::optional<int> rank;

  bool operator==(const LogFrame&) const = default;
};

/// The header and the bytes. REQUIRES: bytes.size() <= kMaxFrame.
std::string encode_frame(base::Time time, job::LogStream stream, std::string_view bytes,
                         std::optional<int> rank = std::nullopt);

/// Reads a log from where the last call ended. Not thread-safe.
class LogCursor {
 public:
  virtual ~LogCursor() = default;
  /// The next frame: true. Nothing complete for now: false. A damaged log: an error, once; what
  /// follows the damage cannot be read.
  virtual base::Result<bool> next(LogFrame& frame) = 0;

  /// Goes to a frame so near the end that about `bytes` bytes follow, without reading what is
  /// passed over. REQUIRES: next() was not called yet.
  virtual base::Result<void> seek_near_end(size_t bytes) = 0;

  /// Goes to the frame that begins at `offset` of the log: so many bytes of frames, with their
  /// headers, stand in front of it. REQUIRES: next() was not called yet.
  virtual base::Result<void> seek(uint64_t offset);
};

/// A cursor over a log file. The file may still grow.
class FileLogCursor : public LogCursor {
 public:
  explicit FileLogCursor(base::UniqueFd file) : file_(std::move(file)) {}
  base::Result<bool> next(LogFrame& frame) override;
  base::Result<void> seek_near_end(size_t bytes) override;
  base::Result<void> seek(uint64_t offset) override;

 private:
  base::Result<size_t> whole_frame() const;
  base::Result<void> refill();

  base::UniqueFd file_;
  off_t offset_ = 0;  ///< of buffer_ in the file
  std::string buffer_;
  size_t at_ = 0;  ///< start of the next frame in buffer_
};

}  // namespace muster::engine
