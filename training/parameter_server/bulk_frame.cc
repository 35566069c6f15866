#include "parameter_server/bulk_frame.h"

#include <algorithm>
#include <concepts>

namespace muster::parameter_server {
namespace {

template <std::unsigned_integral T>
void put_little_endian(T number, std::span<std::byte, sizeof(T)> to) {
  for (std::byte& byte : to) {
    byte = static_cast<std::byte>(number & 0xff);
    number >>= 8;
  }
}

template <std::unsigned_integral T>
T little_endian(std::span<const std::byte, sizeof(T)> from) {
  T number = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) {
    number = static_cast<T>(number << 8 | std::to_integer<T>(from[i]));
  }
  return number;
}

bool has_values(BulkKind kind) {
  return kind == BulkKind::kPushRequest || kind == BulkKind::kAnswer;
}

}  // namespace

std::array<std::byte, kBulkHeadBytes> encode(const BulkHead& head) {
  std::array<std::byte, kBulkHeadBytes> bytes = {static_cast<std::byte>(head.kind)};
  const std::span<std::byte, kBulkHeadBytes> all(bytes);
  put_little_endian(head.message_bytes, all.subspan<4, 4>());
  put_little_endian(head.value_bytes, all.subspan<8, 8>());
  return bytes;
}

std::optional<BulkHead> decode_bulk_head(std::span<const std::byte, kBulkHeadBytes> bytes) {
  const auto kind = std::to_integer<std::uint8_t>(bytes[0]);
  const BulkHead head = {.kind = static_cast<BulkKind>(kind),
                         .message_bytes = little_endian<std::uint32_t>(bytes.subspan<4, 4>()),
                         .value_bytes = little_endian<std::uint64_t>(bytes.subspan<8, 8>())};
  const auto reserved = bytes.subspan<1, 3>();
  const bool is_known = kind >= static_cast<std::uint8_t>(BulkKind::kHello) &&
                        kind <= static_cast<std::uint8_t>(BulkKind::kAnswer);
  const bool is_zero = std::all_of(reserved.begin(), reserved.end(),
                                   [](std::byte byte) { return byte == std::byte{0}; });
  if (!is_known || !is_zero || head.message_bytes > kMostBulkMessageBytes ||
      head.value_bytes % sizeof(float) != 0 || (head.value_bytes != 0 && !has_values(head.kind))) {
    return std::nullopt;
  }
  return head;
}

}  // namespace muster::parameter_server
