#include "engine/log_frame.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr size_t kReadStep = 256 << 10;

void append_little_endian(std::string& text, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xff);
}

uint64_t little_endian(std::string_view text) {
  uint64_t number = 0;
  for (size_t i = text.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(text[i]);
  return number;
}

}  // namespace

std::string encode_frame(base::Time time, job::LogStream stream, std::string_view bytes) {
  std::string frame;
  frame.reserve(kFrameHeader + bytes.size());
  append_little_endian(frame, static_cast<uint64_t>(time.time_since_epoch().count()), 8);
  append_little_endian(frame, bytes.size(), 4);
  append_little_endian(frame, static_cast<uint64_t>(stream), 4);
  frame += bytes;
  return frame;
}

Result<bool> FileLogCursor::fill(size_t wanted) {
  while (buffer_.size() - at_ < wanted) {
    if (at_ > 0) {
      buffer_.erase(0, at_);
      at_ = 0;
    }
    const size_t before = buffer_.size();
    buffer_.resize(before + kReadStep);
    const ssize_t count = ::read(file_.get(), buffer_.data() + before, kReadStep);
    const int error = errno;
    buffer_.resize(before + static_cast<size_t>(count > 0 ? count : 0));
    if (count < 0) return base::system_error("cannot read a log", error);
    if (count == 0) return false;
  }
  return true;
}

Result<bool> FileLogCursor::next(LogFrame& frame) {
  MUSTER_TRY(const bool header, fill(kFrameHeader));
  if (!header) return false;
  const std::string_view view(buffer_);
  const uint64_t length = little_endian(view.substr(at_ + 8, 4));
  const uint64_t stream = little_endian(view.substr(at_ + 12, 4));
  if (length > kMaxFrame || stream > static_cast<uint64_t>(job::LogStream::kNotice)) {
    return Error{.code = ErrorCode::kInternal,
                 .what = "the log is damaged: a frame claims " + std::to_string(length) +
                         " bytes of stream " + std::to_string(stream)};
  }
  MUSTER_TRY(const bool body, fill(kFrameHeader + length));
  if (!body) return false;
  const auto nanoseconds = static_cast<int64_t>(little_endian({buffer_.data() + at_, 8}));
  frame.time = base::Time(std::chrono::nanoseconds(nanoseconds));
  frame.stream = static_cast<job::LogStream>(stream);
  frame.bytes.assign(buffer_, at_ + kFrameHeader, length);
  at_ += kFrameHeader + length;
  return true;
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
  if (::lseek(file_.get(), at, SEEK_SET) < 0) return base::system_error("cannot read a log", errno);
  return {};
}

}  // namespace muster::engine
