#include "engine/log_frame.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

// More than the longest frame, so that one read holds at least one whole frame.
constexpr size_t kReadStep = 256 << 10;
static_assert(kReadStep > kFrameHeader + kMaxFrame);

void append_little_endian(std::string& text, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xff);
}

uint64_t little_endian(std::string_view text) {
  uint64_t number = 0;
  for (size_t i = text.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(text[i]);
  return number;
}

}  // namespace

std::string encode_frame(base::Time time, job::LogStream stream, std::string_view bytes,
                         std::optional<int> rank) {
  std::string frame;
  frame.reserve(kFrameHeader + bytes.size());
  append_little_endian(frame, static_cast<uint64_t>(time.time_since_epoch().count()), 8);
  append_little_endian(frame, bytes.size(), 4);
  append_little_endian(frame, static_cast<uint64_t>(stream), 1);
  append_little_endian(frame, rank ? static_cast<uint64_t>(*rank) + 1 : 0, 3);
  frame += bytes;
  return frame;
}

/// The size of the frame at at_, or 0 while not all of it is in the buffer.
Result<size_t> FileLogCursor::whole_frame() const {
  const std::string_view rest = std::string_view(buffer_).substr(at_);
  if (rest.size() < kFrameHeader) return size_t{0};
  const uint64_t length = little_endian(rest.substr(8, 4));
  const uint64_t stream = little_endian(rest.substr(12, 1));
  if (length > kMaxFrame || stream > static_cast<uint64_t>(job::LogStream::kNotice)) {
    return Error{.code = ErrorCode::kInternal,
                 .what = "the log is damaged: a frame claims " + std::to_string(length) +
                         " bytes of stream " + std::to_string(stream)};
  }
  const size_t size = kFrameHeader + length;
  return rest.size() < size ? size_t{0} : size;
}

// From the start of a frame, and all of it in one read: the writer takes back what a full disk cut
// of a frame, so that two parts read at different times may be of different frames.
Result<void> FileLogCursor::refill() {
  offset_ += static_cast<off_t>(at_);
  at_ = 0;
  buffer_.resize(kReadStep);
  const ssize_t count = ::pread(file_.get(), buffer_.data(), buffer_.size(), offset_);
  const int error = errno;
  buffer_.resize(static_cast<size_t>(count > 0 ? count : 0));
  if (count < 0) return base::system_error("cannot read a log", error);
  return {};
}

Result<bool> FileLogCursor::next(LogFrame& frame) {
  MUSTER_TRY(size_t size, whole_frame());
  if (size == 0) {
    MUSTER_CHECK(refill());
    MUSTER_TRY(size, whole_frame());
  }
  if (size == 0) {
    buffer_.clear();
    return false;
  }
  const std::string_view whole = std::string_view(buffer_).substr(at_, size);
  const auto nanoseconds = static_cast<int64_t>(little_endian(whole.substr(0, 8)));
  frame.time = base::Time(std::chrono::nanoseconds(nanoseconds));
  frame.stream = static_cast<job::LogStream>(little_endian(whole.substr(12, 1)));
  const auto rank = static_cast<int>(little_endian(whole.substr(13, 3)));
  frame.rank = rank == 0 ? std::nullopt : std::optional(rank - 1);
  frame.bytes.assign(whole.substr(kFrameHeader));
  at_ += size;
  return true;
}

Result<void> LogCursor::seek(uint64_t offset) {
  LogFrame frame;
  for (uint64_t at = 0; at < offset; at += kFrameHeader + frame.bytes.size()) {
    MUSTER_TRY(const bool more, next(frame));
    if (!more) break;
  }
  return {};
}

Result<void> FileLogCursor::seek(uint64_t offset) {
  offset_ = static_cast<off_t>(offset);
  return {};
}

// Frames have no mark to find them by from behind, so it hops from header to header from the front,
// within windows of the file that are read at once.
Result<void> FileLogCursor::seek_near_end(size_t bytes) {
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  std::string window;
  off_t window_start = 0;
  off_t at = 0;
  while (end - at > static_cast<off_t>(bytes)) {
    if (at + static_cast<off_t>(kFrameHeader) > window_start + static_cast<off_t>(window.size())) {
      window.resize(kReadStep);
      window_start = at;
      const ssize_t count = ::pread(file_.get(), window.data(), window.size(), at);
      window.resize(static_cast<size_t>(count > 0 ? count : 0));
      if (window.size() < kFrameHeader) break;
    }
    const auto offset = static_cast<size_t>(at - window_start);
    const uint64_t length = little_endian(std::string_view(window).substr(offset + 8, 4));
    if (length > kMaxFrame) break;
    at += static_cast<off_t>(kFrameHeader + length);
  }
  offset_ = at;
  return {};
}

}  // namespace muster::engine
