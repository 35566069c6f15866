#include "control/line.h"

#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <span>
#include <utility>

#include "transport/socket.h"

namespace muster::collective {
namespace {

// Read at once: many small frames, or a good part of a large one.
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
// Pieces until the other connections have their turn.
constexpr int kPieces = 16;

}  // namespace

bool Line::send(Bytes bytes) {
  if (!is_open_) return true;
  waiting_bytes_ += bytes.size();
  waiting_.push_back(std::move(bytes));
  if (waiting_.size() == 1) flush();
  return waiting_bytes_ <= kMostWaiting;
}

void Line::flush() {
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

void Line::finish() {
  if (!is_open_) return;
  is_open_ = false;
  waiting_.clear();
  waiting_bytes_ = 0;
  ::shutdown(socket_.get(), SHUT_WR);
}

Line::Heard Line::listen() {
  Heard heard;
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kPieceBytes);
  for (int piece = 0; piece < kPieces; ++piece) {
    const Transfer got = receive_some(socket_, std::span(buffer.get(), kPieceBytes));
    if (got.outcome == Transfer::Outcome::kWouldBlock) return heard;
    if (got.outcome == Transfer::Outcome::kEnded) {
      heard.ended = got.reason;
      return heard;
    }
    reader_.feed(ByteView(buffer.get(), got.bytes));
    while (std::optional<Frame> frame = reader_.next()) heard.frames.push_back(*std::move(frame));
    if (reader_.broken()) {
      heard.ended = EPROTO;
      return heard;
    }
    if (got.bytes < kPieceBytes) return heard;
  }
  return heard;
}

}  // namespace muster::collective
