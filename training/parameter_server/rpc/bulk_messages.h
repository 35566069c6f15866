// Frames with their protobuf messages on a bulk connection. Both ends use these functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "parameter_server/bulk_frame.h"
#include "parameter_server/tls_stream.h"

namespace muster::parameter_server {

/// Writes a frame up to its values, without a flush. False if the connection ended.
template <typename Message>
bool send_message(TlsStream& stream, BulkKind kind, const Message& message,
                  std::uint64_t value_bytes = 0) {
  const std::string text = message.SerializeAsString();
  const auto head = encode({.kind = kind,
                            .message_bytes = static_cast<std::uint32_t>(text.size()),
                            .value_bytes = value_bytes});
  return stream.write(head) && stream.write(std::as_bytes(std::span(text)));
}

/// nullopt if the connection ended, or for a head that decode_bulk_head() rejects.
inline std::optional<BulkHead> read_head(TlsStream& stream) {
  std::array<std::byte, kBulkHeadBytes> bytes = {};
  if (!stream.read(bytes)) return std::nullopt;
  return decode_bulk_head(bytes);
}

/// Reads the message after its head. False if the connection ended, or for another message.
template <typename Message>
bool read_message(TlsStream& stream, const BulkHead& head, Message& message) {
  std::string text(head.message_bytes, '\0');
  return stream.read(std::as_writable_bytes(std::span(text))) && message.ParseFromString(text);
}

}  // namespace muster::parameter_server
