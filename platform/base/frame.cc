#include "base/frame.h"

#include "base/bytes.h"

namespace muster::base {

namespace {

constexpr size_t kLengthAt = 1;
constexpr size_t kLengthBytes = 4;

}  // namespace

void append_frame(std::string& out, char tag, std::string_view bytes) {
  out += tag;
  append_little_endian(out, bytes.size(), kLengthBytes);
  out += bytes;
}

std::string encode_frame(char tag, std::string_view bytes) {
  std::string out;
  out.reserve(kFrameHead + bytes.size());
  append_frame(out, tag, bytes);
  return out;
}

size_t begin_frame(std::string& out, char tag) {
  const size_t begin = out.size();
  append_frame(out, tag, {});
  return begin;
}

void end_frame(std::string& out, size_t begin) {
  std::string length;
  append_little_endian(length, out.size() - begin - kFrameHead, kLengthBytes);
  out.replace(begin + kLengthAt, kLengthBytes, length);
}

Result<std::optional<Frame>> first_frame(std::string_view bytes, size_t most) {
  if (bytes.size() < kFrameHead) return std::optional<Frame>();
  const size_t length = little_endian<kLengthBytes>(bytes.data() + kLengthAt);
  if (length > most) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "a frame of " + std::to_string(length) + " bytes is too long: at most " +
                         std::to_string(most) + " are allowed"};
  }
  if (bytes.size() < kFrameHead + length) return std::optional<Frame>();
  return std::optional(Frame{.tag = bytes.front(), .bytes = bytes.substr(kFrameHead, length)});
}

}  // namespace muster::base
