#include "engine/shim/follow_wire.h"

#include "engine/little_endian.h"

namespace muster::engine {

namespace {

constexpr size_t kLengthAt = 4;
constexpr size_t kOffsetAt = 8;

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

bool is_header(std::string_view header) {
  return is_known(header[0]) && header.substr(1, 3) == std::string_view("\0\0\0", 3) &&
         little_endian<4>(header.data() + kLengthAt) <= kMaxFollowRecord;
}

}  // namespace

std::string encode(const FollowRecord& record) {
  std::string text(1, static_cast<char>(record.kind));
  text.reserve(kFollowHeader + record.bytes.size());
  text.append(3, '\0');
  append_little_endian(text, record.bytes.size(), 4);
  append_little_endian(text, record.offset, 8);
  return text + record.bytes;
}

std::optional<FollowRecord> FollowReader::next() {
  const std::string_view rest = waiting_.front();
  if (broken_ || rest.size() < kFollowHeader) return std::nullopt;
  if (!is_header(rest.substr(0, kFollowHeader))) {
    broken_ = true;
    return std::nullopt;
  }
  const size_t length = little_endian<4>(rest.data() + kLengthAt);
  if (rest.size() < kFollowHeader + length) return std::nullopt;
  FollowRecord record{.kind = static_cast<FollowKind>(rest[0]),
                      .offset = little_endian<8>(rest.data() + kOffsetAt),
                      .bytes = std::string(rest.substr(kFollowHeader, length))};
  waiting_.take(kFollowHeader + length);
  return record;
}

}  // namespace muster::engine
