#include "engine/log_frame.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <limits>
#include <utility>

#include "base/bytes.h"
#include "base/units.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

// Longer than the longest frame, so that one read contains at least one complete frame.
constexpr size_t kReadStep = 256 << 10;
static_assert(kReadStep > kFrameHeader + kMaxFrame);

std::string cut_notice(uint64_t bytes, uint64_t quota) {
  return readable_bytes(bytes) + " of output before this were cut: the log of a task may have " +
         readable_bytes(quota) + " (log_quota)\n";
}

}  // namespace

std::string encode_frame(base::Time time, job::LogStream stream, std::string_view bytes,
                         std::optional<int> rank) {
  std::string frame;
  frame.reserve(kFrameHeader + bytes.size());
  base::append_little_endian(frame, static_cast<uint64_t>(time.time_since_epoch().count()), 8);
  base::append_little_endian(frame, bytes.size(), 4);
  base::append_little_endian(frame, static_cast<uint64_t>(stream), 1);
  base::append_little_endian(frame, rank ? static_cast<uint64_t>(*rank) + 1 : 0, 3);
  frame += bytes;
  return frame;
}

std::string readable_bytes(uint64_t bytes) {
  std::string text = base::format_bytes(static_cast<int64_t>(bytes));
  const size_t unit = text.find_first_not_of("0123456789.");
  if (unit == std::string::npos) return text + " bytes";
  return text.insert(unit, " ") + "B";
}

std::string encode(const LogStart& start) {
  return std::to_string(start.offset) + " " + std::to_string(start.quota) + "\n";
}

Result<LogStart> read_log_start(const std::filesystem::path& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return LogStart{};
  if (!file) return base::system_error("cannot read the start of a log", errno);
  std::array<char, 64> buffer;
  const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
  const std::string_view text(buffer.data(), static_cast<size_t>(std::max<ssize_t>(0, count)));
  const size_t blank = text.find(' ');
  const auto offset = base::number_of<uint64_t>(text.substr(0, blank));
  const auto quota =
      blank == std::string_view::npos || !text.ends_with('\n')
          ? std::nullopt
          : base::number_of<uint64_t>(text.substr(blank + 1, text.size() - blank - 2));
  if (!offset || !quota || *offset > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
    return Error{.code = ErrorCode::kInternal, .what = "the start of a log cannot be read"};
  }
  return LogStart{.offset = *offset, .quota = *quota};
}

/// The size of the frame at at_, or 0 if the buffer contains only part of it.
Result<size_t> FileLogCursor::whole_frame() const {
  const std::string_view rest = this->rest();
  if (rest.size() < kFrameHeader) return size_t{0};
  const uint64_t length = base::little_endian<4>(rest.data() + 8);
  const uint64_t stream = base::little_endian<1>(rest.data() + 12);
  const bool is_hole = length == 0 && base::little_endian<8>(rest.data()) == 0;
  if (length > kMaxFrame || stream > static_cast<uint64_t>(job::LogStream::kNotice) || is_hole) {
    return Error{.code = ErrorCode::kInternal,
                 .what = "the log is damaged: a frame claims " + std::to_string(length) +
                         " bytes of stream " + std::to_string(stream)};
  }
  const size_t size = kFrameHeader + length;
  return rest.size() < size ? size_t{0} : size;
}

/// Fills the buffer from `offset`.
Result<void> FileLogCursor::read_at(off_t offset) {
  if (buffer_ == nullptr) buffer_ = std::make_unique_for_overwrite<char[]>(kReadStep);
  at_ = 0;
  const ssize_t count = ::pread(file_.get(), buffer_.get(), kReadStep, offset);
  filled_ = static_cast<size_t>(count > 0 ? count : 0);
  if (count < 0) return base::system_error("cannot read a log", errno);
  return {};
}

/// Whether bytes that were read from `offset` may be part of a hole; to be called after the read.
/// If so, moves `offset` to the beginning of the log.
Result<bool> FileLogCursor::skip_cut(off_t& offset) {
  if (start_.empty()) return false;
  MUSTER_TRY(const LogStart start, read_log_start(start_));
  if (start.offset <= static_cast<uint64_t>(offset)) return false;
  cut_ += start.offset - static_cast<uint64_t>(offset);
  quota_ = start.quota;
  offset = static_cast<off_t>(start.offset);
  return true;
}

// Reads from the start of a frame, and all of it in one read: the writer removes a frame that a
// full disk truncated, so two parts that are read at different times may belong to different
// frames.
Result<void> FileLogCursor::refill() {
  offset_ += static_cast<off_t>(at_);
  auto kept = read_kept();
  if (kept) return kept;
  // What was read may be part of a hole.
  at_ = filled_ = 0;
  buffer_.reset();
  return kept;
}

/// Fills the buffer from `offset_`, or from the beginning of the log if that is later.
Result<void> FileLogCursor::read_kept() {
  bool again = true;
  while (again) {
    MUSTER_CHECK(read_at(offset_));
    MUSTER_TRY(again, skip_cut(offset_));
  }
  return {};
}

Result<bool> FileLogCursor::next(LogFrame& frame) {
  MUSTER_TRY(size_t size, whole_frame());
  if (size == 0) {
    MUSTER_CHECK(refill());
    MUSTER_TRY(size, whole_frame());
  }
  if (size == 0) {
    offset_ += static_cast<off_t>(at_);
    at_ = filled_ = 0;
    buffer_.reset();  // there may be a thousand that wait for more
    return false;
  }
  const char* const header = rest().data();
  frame.time =
      base::Time(std::chrono::nanoseconds(static_cast<int64_t>(base::little_endian<8>(header))));
  frame.cut = std::exchange(cut_, 0);
  if (frame.cut > 0) {
    frame.stream = job::LogStream::kNotice;
    frame.rank.reset();
    frame.bytes = cut_notice(frame.cut, quota_);
    return true;
  }
  frame.stream = static_cast<job::LogStream>(header[12]);
  const auto rank = static_cast<int>(base::little_endian<3>(header + 13));
  frame.rank = rank == 0 ? std::nullopt : std::optional(rank - 1);
  frame.bytes.assign(header + kFrameHeader, size - kFrameHeader);
  at_ += size;
  return true;
}

Result<void> LogCursor::seek(uint64_t offset) {
  LogFrame frame;
  for (uint64_t at = 0; at < offset; at += size_in_log(frame)) {
    MUSTER_TRY(const bool more, next(frame));
    if (!more) break;
  }
  return {};
}

Result<void> FileLogCursor::seek(uint64_t offset) {
  offset_ = static_cast<off_t>(offset);
  return {};
}

uint64_t FileLogCursor::size() const {
  struct stat found{};
  if (::fstat(file_.get(), &found) != 0) return 0;
  const auto end = static_cast<uint64_t>(found.st_size);
  if (start_.empty()) return end;
  const auto start = read_log_start(start_);
  return start ? end - std::min(end, start->offset) : end;
}

// Frames cannot be found from the end, so this follows the headers from the front, in large windows
// of the file.
Result<void> FileLogCursor::seek_near_end(size_t bytes) {
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  MUSTER_CHECK(refill());
  while (end - offset_ - static_cast<off_t>(at_) > static_cast<off_t>(bytes)) {
    if (rest().size() < kFrameHeader) {
      MUSTER_CHECK(refill());
      if (rest().size() < kFrameHeader) break;
    }
    const uint64_t length = base::little_endian<4>(rest().data() + 8);
    if (length > kMaxFrame) break;
    // Past the end of the buffer only the header of the next frame is needed.
    const size_t hop = kFrameHeader + length;
    if (hop > rest().size()) {
      offset_ += static_cast<off_t>(at_ + hop);
      at_ = filled_ = 0;
    } else {
      at_ += hop;
    }
  }
  offset_ += static_cast<off_t>(at_);
  at_ = filled_ = 0;
  cut_ = 0;  // a reader of the end alone does not get the beginning
  return {};
}

}  // namespace muster::engine
