// The cryptography of the handshake: random bytes, HMAC-SHA256 (RFC 2104), SHA-256 and hex, over
// libcrypto.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "muster/collective/key.h"
#include "muster/collective/result.h"
#include "transport/bytes.h"

namespace muster::collective {

inline constexpr std::size_t kDigestBytes = 32;
inline constexpr std::size_t kNonceBytes = 32;

using Digest = std::array<std::byte, kDigestBytes>;
using Nonce = std::array<std::byte, kNonceBytes>;

/// Fills `bytes` from the system's random generator. Errors: kSystem.
Status fill_random(std::span<std::byte> bytes);

/// HMAC-SHA256 over the parts, each preceded by its length, so that different lists of parts are
/// different messages.
Digest hmac(ByteView key, std::initializer_list<ByteView> parts);

/// SHA-256.
Digest sha256(ByteView bytes);

/// Compares in a time that does not depend on where the two differ.
bool equal_in_constant_time(const Digest& a, ByteView b);

std::string to_hex(ByteView bytes);

/// Empty if `text` is not a sequence of pairs of hex digits.
std::optional<Bytes> from_hex(std::string_view text);

}  // namespace muster::collective
