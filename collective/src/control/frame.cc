#include "control/frame.h"

#include "transport/error_bytes.h"

namespace muster::collective {
namespace {

constexpr std::uint32_t kFrameMagic = 0x5443534d;  // "MSCT"

// A buffer that has grown beyond this for one large message is not kept.
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

Bytes body_of(const Frame& frame) {
  ByteWriter writer;
  switch (frame.kind) {
    case FrameKind::kProbe:
    case FrameKind::kAlive:
    case FrameKind::kGoodbye:
      return writer.number(frame.entered).take();
    case FrameKind::kAbort:
      write_error(writer, frame.cause);
      return writer.take();
    case FrameKind::kMessage:
      break;
  }
  return {};
}

}  // namespace

Bytes encode(const Frame& frame) {
  const Bytes small = body_of(frame);
  const ByteView body = frame.kind == FrameKind::kMessage ? ByteView(frame.payload) : small;
  return ByteWriter()
      .number(kFrameMagic)
      .number(static_cast<std::uint16_t>(frame.kind))
      .number(frame.topic)
      .number(static_cast<std::uint32_t>(body.size()))
      .raw(body)
      .take();
}

void FrameReader::feed(ByteView bytes) {
  if (broken_) return;
  // What was given out makes room, but not for every frame of many: each time half is over.
  if (taken_ == received_.size() && received_.capacity() > kKeptBytes) {
    received_ = {};
    taken_ = 0;
  } else if (taken_ * 2 >= received_.size()) {
    received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
  }
  received_.insert(received_.end(), bytes.begin(), bytes.end());
}

std::optional<Frame> FrameReader::next() {
  const ByteView rest = ByteView(received_).subspan(taken_);
  if (broken_ || rest.size() < kFrameHeadBytes) return std::nullopt;
  ByteReader head(rest);
  const bool ours = head.number<std::uint32_t>() == kFrameMagic;
  const auto kind = static_cast<FrameKind>(head.number<std::uint16_t>());
  const auto topic = head.number<std::uint16_t>();
  const std::size_t length = head.number<std::uint32_t>();
  if (!ours || length > kLargestPayload) {
    broken_ = true;
    return std::nullopt;
  }
  if (rest.size() - kFrameHeadBytes < length) return std::nullopt;
  std::optional<Frame> frame = decode(kind, topic, rest.subspan(kFrameHeadBytes, length));
  taken_ += kFrameHeadBytes + length;
  broken_ = !frame;
  return frame;
}

std::optional<Frame> FrameReader::decode(FrameKind kind, std::uint16_t topic, ByteView body) {
  Frame frame{.kind = kind, .topic = topic};
  ByteReader reader(body);
  switch (kind) {
    case FrameKind::kProbe:
    case FrameKind::kAlive:
    case FrameKind::kGoodbye:
      frame.entered = reader.number<std::uint64_t>();
      break;
    case FrameKind::kAbort:
      frame.cause = read_error(reader);
      break;
    case FrameKind::kMessage:
      frame.payload.assign(body.begin(), body.end());
      return frame;
    default:
      return std::nullopt;
  }
  if (!reader.ok() || !reader.at_end()) return std::nullopt;
  return frame;
}

}  // namespace muster::collective
