// The format of a task's log on disk: a sequence of frames, each with a time, a stream and raw
// bytes.
//
//   offset  size  field
//   0       8     time when the bytes were read, nanoseconds since the Unix epoch, little endian
//   8       4     length of the bytes, little endian, at most kMaxFrame
//   12      1     stream: 0 output, 1 error, 2 notice
//   13      3     rank that printed the bytes plus one, little endian; 0: unknown
//   16      ...   the bytes
//
// Only one shim writes a log. A reader that finds an incomplete frame at the end tries again later
// from the start of that frame: the shim removes a frame that a full disk has truncated.
//
// When a log exceeds its quota, its front is cut: a hole is punched into the file, so all offsets
// stay valid. The file log.start beside it contains the offset of the first complete frame and the
// quota: "OFFSET QUOTA\n". It is written before the hole is punched. A reader that reads frames and
// then finds that log.start is not after them has therefore read no part of a hole. See
// docs/decisions/0005 and 0017.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
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
  /// Not 0: this frame is a notice that replaces so many bytes of the log that were cut. It is not
  /// in the log itself.
  uint64_t cut = 0;

  bool operator==(const LogFrame&) const = default;
};

/// The number of bytes of the log that the frame represents.
inline uint64_t size_in_log(const LogFrame& frame) {
  return frame.cut > 0 ? frame.cut : kFrameHeader + frame.bytes.size();
}

/// The header and the bytes. REQUIRES: bytes.size() <= kMaxFrame.
std::string encode_frame(base::Time time, job::LogStream stream, std::string_view bytes,
                         std::optional<int> rank = std::nullopt);

/// Reads a log from where the last call ended. Not thread-safe.
class LogCursor {
 public:
  virtual ~LogCursor() = default;
  /// True: `frame` is the next frame. False: no complete frame yet. kExhausted: the frame cannot be
  /// read now, for example because too many files are open; a later call tries again. Other errors,
  /// once: the log is damaged, and frames after the damage cannot be read.
  virtual base::Result<bool> next(LogFrame& frame) = 0;

  /// Moves to a frame with about `bytes` bytes after it, without reading the frames before it.
  /// REQUIRES: next() was not called yet.
  virtual base::Result<void> seek_near_end(size_t bytes) = 0;

  /// Moves to the frame at `offset` of the log: the number of bytes, including headers, of all
  /// frames before it. REQUIRES: next() was not called yet.
  virtual base::Result<void> seek(uint64_t offset);

  /// The bytes of the log now, including headers: about what seek_near_end() has to look through.
  virtual uint64_t size() const = 0;
};

/// The beginning of a log whose front was cut.
struct LogStart {
  uint64_t offset = 0;  ///< of the first complete frame
  uint64_t quota = 0;   ///< the quota that the log exceeded
};

/// "1.2 GiB", "100 bytes".
std::string readable_bytes(uint64_t bytes);

std::string encode(const LogStart& start);
/// Reads a log.start. A missing file means that the log was never cut.
base::Result<LogStart> read_log_start(const std::filesystem::path& path);

/// A cursor over a log file. Meanwhile the file may grow and its front may be cut, also past the
/// position of the cursor.
class FileLogCursor : public LogCursor {
 public:
  /// `start`: the path of log.start; empty: the front is never cut.
  explicit FileLogCursor(base::UniqueFd file, std::filesystem::path start = {})
      : file_(std::move(file)), start_(std::move(start)) {}
  base::Result<bool> next(LogFrame& frame) override;
  base::Result<void> seek_near_end(size_t bytes) override;
  base::Result<void> seek(uint64_t offset) override;
  uint64_t size() const override;

 private:
  base::Result<size_t> whole_frame() const;
  base::Result<void> refill();
  base::Result<void> read_kept();
  base::Result<void> read_at(off_t offset);
  base::Result<bool> skip_cut(off_t& offset);
  std::string_view rest() const { return {buffer_.get() + at_, filled_ - at_}; }

  base::UniqueFd file_;
  std::filesystem::path start_;
  off_t offset_ = 0;  ///< position of buffer_ in the file
  std::unique_ptr<char[]> buffer_;
  size_t filled_ = 0;
  size_t at_ = 0;     ///< start of the next frame in buffer_
  uint64_t cut_ = 0;  ///< bytes that were cut before the next frame; not reported yet
  uint64_t quota_ = 0;
};

}  // namespace muster::engine
