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
//
// Of a log that has grown past its quota the front is cut: a hole is punched into the file, so that
// all offsets stay what they are, and a file beside it, log.start, says where the first whole frame
// is that is left, and the quota: "OFFSET QUOTA\n". That is written before the hole is punched. So
// whoever reads frames and then finds that log.start does not stand behind them has read no part of
// a hole. See docs/decisions/0005 and 0017.
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
  /// Not 0: this frame is a notice that stands in the place of so many bytes of log that were cut,
  /// and is itself not in the log.
  uint64_t cut = 0;

  bool operator==(const LogFrame&) const = default;
};

/// How much of the log it stands for.
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

/// What is left of a log whose front was cut.
struct LogStart {
  uint64_t offset = 0;  ///< of the first whole frame that is left
  uint64_t quota = 0;   ///< why
};

/// "1.2 GiB", "100 bytes".
std::string readable_bytes(uint64_t bytes);

std::string encode(const LogStart& start);
/// Of a log.start; where there is none, of a log that was never cut.
base::Result<LogStart> read_log_start(const std::filesystem::path& path);

/// A cursor over a log file. The file may still grow, and its front may be cut, behind the place
/// where it reads or before it.
class FileLogCursor : public LogCursor {
 public:
  /// `start`: its log.start; empty: the front is never cut.
  explicit FileLogCursor(base::UniqueFd file, std::filesystem::path start = {})
      : file_(std::move(file)), start_(std::move(start)) {}
  base::Result<bool> next(LogFrame& frame) override;
  base::Result<void> seek_near_end(size_t bytes) override;
  base::Result<void> seek(uint64_t offset) override;

 private:
  base::Result<size_t> whole_frame() const;
  base::Result<void> refill();
  base::Result<void> read_at(off_t offset);
  base::Result<bool> skip_cut(off_t& offset);
  std::string_view rest() const { return {buffer_.get() + at_, filled_ - at_}; }

  base::UniqueFd file_;
  std::filesystem::path start_;
  off_t offset_ = 0;  ///< of buffer_ in the file
  std::unique_ptr<char[]> buffer_;
  size_t filled_ = 0;
  size_t at_ = 0;  ///< start of the next frame in buffer_
  uint64_t cut_ =
      0;  ///< so many bytes in front of the next frame are gone, which is yet to be told
  uint64_t quota_ = 0;
};

}  // namespace muster::engine
