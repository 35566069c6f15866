// The frames of a bulk connection, by which a worker pushes and pulls values beside gRPC. A frame is
// a head, a protobuf message (parameter_server.proto has their types) and values:
//
//   byte 0       kind (BulkKind)
//   bytes 1..3   zero
//   bytes 4..7   size of the message in bytes, little-endian
//   bytes 8..15  size of the values in bytes, little-endian
//
// The values are float32, little-endian. They follow in one piece: TLS detects that a connection
// was cut off, so a receiver needs no further marks to detect that all of them have arrived.
//
// Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace muster::parameter_server {

/// What a frame contains. Only kPushRequest and kAnswer have values.
enum class BulkKind : std::uint8_t {
  kHello = 1,        // worker: BulkHello
  kPullRequest = 2,  // worker: PullRequest
  kPushRequest = 3,  // worker: PushHead, then the gradients
  kAnswer = 4,       // server: BulkAnswer, then the values of a pull
};

struct BulkHead {
  BulkKind kind;
  std::uint32_t message_bytes;
  std::uint64_t value_bytes;

  bool operator==(const BulkHead&) const = default;
};

inline constexpr std::size_t kBulkHeadBytes = 16;

/// The limit of a message: that of gRPC, which receives the same messages on its own connection.
inline constexpr std::uint32_t kMostBulkMessageBytes = 4 * 1024 * 1024;

std::array<std::byte, kBulkHeadBytes> encode(const BulkHead& head);

/// nullopt if no sender of this protocol sends such a head: its kind is unknown, its message is too
/// long, its kind has no values but it announces some, or the last value would be incomplete.
std::optional<BulkHead> decode_bulk_head(std::span<const std::byte, kBulkHeadBytes> bytes);

}  // namespace muster::parameter_server
