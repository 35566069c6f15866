#include "engine/shim/follow_wire.h"

#include "base/bytes.h"

namespace muster::engine {

namespace {

bool is_known(char kind) {
  switch (static_cast<FollowKind>(kind)) {
    case FollowKind::kRunning:
    case FollowKind::kRefused:
    case FollowKind::kAnswered:
    case FollowKind::kMpi:
    case FollowKind::kRank:
    case FollowKind::kLog:
    case FollowKind::kLogStart:
    case FollowKind::kMetrics:
    case FollowKind::kExit:
      return true;
  }
  return false;
}

/// Nothing: the frame is no record.
std::optional<FollowRecord> record_of(const base::Frame& frame) {
  if (frame.bytes.size() < kFollowOffset || !is_known(frame.tag)) return std::nullopt;
  return FollowRecord{.kind = static_cast<FollowKind>(frame.tag),
                      .offset = base::little_endian<kFollowOffset>(frame.bytes.data()),
                      .bytes = std::string(frame.bytes.substr(kFollowOffset))};
}

}  // namespace

std::string encode(const FollowRecord& record) {
  std::string text;
  text.reserve(base::kFrameHead + kFollowOffset + record.bytes.size());
  const size_t begin = base::begin_frame(text, static_cast<char>(record.kind));
  base::append_little_endian(text, record.offset, kFollowOffset);
  text += record.bytes;
  base::end_frame(text, begin);
  return text;
}

std::optional<FollowRecord> FollowReader::next() {
  if (broken_) return std::nullopt;
  const auto frame = frames_.front();
  broken_ = !frame;
  if (broken_ || !*frame) return std::nullopt;
  auto record = record_of(**frame);
  frames_.pop(**frame);
  broken_ = !record;
  return record;
}

}  // namespace muster::engine
