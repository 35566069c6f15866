#include "control/frame.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <span>
#include <utility>

#include "transport/bytes.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

constexpr std::uint32_t kFrameMagic = 0x5443534d;  // "MSCT"

// A buffer that has grown beyond this for one large message is not kept.
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

// What precedes the payload of a spread message.
constexpr std::size_t kSpreadHeadBytes = 4 + 8;

Bytes body_of(const Frame& frame) {
  ByteWriter writer;
  switch (frame.kind) {
    case FrameKind::kProbe:
      return writer.number(frame.entered).number(frame.reach).take();
    case FrameKind::kAlive:
      return writer.number(frame.entered).take();
    case FrameKind::kGoodbye:
      for (const Departure& departure : frame.departures) {
        writer.number(static_cast<std::int32_t>(departure.rank)).number(departure.entered);
      }
      return writer.take();
    case FrameKind::kAbort:
      write_error(writer, frame.cause);
      return writer.take();
    case FrameKind::kSpread:
      return writer.number(static_cast<std::int32_t>(frame.origin))
          .number(frame.number)
          .raw(frame.payload)
          .take();
    case FrameKind::kMessage:
    case FrameKind::kParting:
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
  // Removing returned frames moves the rest of the buffer, so they are removed only once they are
  // half of it.
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
      frame.entered = reader.number<std::uint64_t>();
      frame.reach = reader.number<std::uint8_t>();
      break;
    case FrameKind::kAlive:
      frame.entered = reader.number<std::uint64_t>();
      break;
    case FrameKind::kGoodbye:
      while (reader.ok() && !reader.at_end()) {
        const auto rank = reader.number<std::int32_t>();
        frame.departures.push_back({rank, reader.number<std::uint64_t>()});
      }
      break;
    case FrameKind::kParting:
      break;
    case FrameKind::kSpread: {
      frame.origin = reader.number<std::int32_t>();
      frame.number = reader.number<std::uint64_t>();
      const ByteView payload = reader.raw(body.size() - std::min(body.size(), kSpreadHeadBytes));
      frame.payload.assign(payload.begin(), payload.end());
      if (!reader.ok()) return std::nullopt;
      return frame;
    }
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

namespace {

// The size of one read: many small frames, or a good part of a large one.
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
// The number of reads before the other connections get their turn.
constexpr int kPieces = 16;

}  // namespace

bool ControlConnection::send(Bytes bytes) {
  if (!is_open_) return true;
  waiting_bytes_ += bytes.size();
  waiting_.push_back(std::move(bytes));
  if (waiting_.size() == 1) flush();
  return waiting_bytes_ <= kMostWaiting;
}

void ControlConnection::flush() {
  while (is_open_ && !waiting_.empty()) {
    const ByteView rest = ByteView(waiting_.front()).subspan(sent_);
    const Transfer sent = send_some(socket_, rest);
    if (sent.outcome == Transfer::Outcome::kWouldBlock) return;
    if (sent.outcome == Transfer::Outcome::kEnded) return finish();
    sent_ += sent.bytes;
    waiting_bytes_ -= sent.bytes;
    if (sent.bytes == rest.size()) {
      waiting_.pop_front();
      sent_ = 0;
    }
  }
}

void ControlConnection::finish() {
  if (!is_open_) return;
  is_open_ = false;
  waiting_.clear();
  waiting_bytes_ = 0;
  ::shutdown(socket_.get(), SHUT_WR);
}

ControlConnection::Received ControlConnection::listen() {
  Received received;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kPieceBytes);
  for (int piece = 0; piece < kPieces; ++piece) {
    const Transfer got = receive_some(socket_, std::span(buffer.get(), kPieceBytes));
    if (got.outcome == Transfer::Outcome::kWouldBlock) return received;
    if (got.outcome == Transfer::Outcome::kEnded) {
      received.ended = got.reason;
      return received;
    }
    reader_.feed(ByteView(buffer.get(), got.bytes));
    while (std::optional<Frame> frame = reader_.next()) {
      received.frames.push_back(*std::move(frame));
    }
    if (reader_.broken()) {
      received.ended = EPROTO;
      return received;
    }
    if (got.bytes < kPieceBytes) return received;
  }
  return received;
}

}  // namespace muster::collective
