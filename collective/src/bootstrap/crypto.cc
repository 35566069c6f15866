#include "bootstrap/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

namespace muster::collective {
namespace {

unsigned char* raw(std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}
const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}

int hex_digit_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

Status fill_random(std::span<std::byte> bytes) {
  if (::RAND_bytes(raw(bytes.data()), static_cast<int>(bytes.size())) == 1) return {};
  return Error{ErrorCode::kSystem, "the random generator of the system failed"};
}

Digest hmac(ByteView key, std::initializer_list<ByteView> parts) {
  ByteWriter message;
  for (const ByteView part : parts) {
    message.number(static_cast<std::uint64_t>(part.size())).raw(part);
  }
  const Bytes bytes = message.take();
  Digest digest = {};
  ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(bytes.data()), bytes.size(),
         raw(digest.data()), nullptr);
  return digest;
}

Digest sha256(ByteView bytes) {
  Digest digest = {};
  ::EVP_Digest(bytes.data(), bytes.size(), raw(digest.data()), nullptr, ::EVP_sha256(), nullptr);
  return digest;
}

bool equal_in_constant_time(const Digest& a, ByteView b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_hex(ByteView bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

std::optional<Bytes> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  Bytes bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit_value(text[i]);
    const int low = hex_digit_value(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

Result<Bytes> parse_key(std::string_view hex) {
  const char* const advice =
      "set MUSTER_RENDEZVOUS_KEY on all ranks to the same secret, as from: openssl rand -hex 32";
  if (hex.empty()) {
    return Error{ErrorCode::kConfiguration, "the rendezvous has no key", advice};
  }
  std::optional<Bytes> key = from_hex(hex);
  if (!key) return Error{ErrorCode::kConfiguration, "the rendezvous key is not hex", advice};
  if (key->size() < kShortestKeyBytes) {
    return Error{ErrorCode::kConfiguration,
                 "the rendezvous key has " + std::to_string(key->size()) + " bytes, and needs " +
                     std::to_string(kShortestKeyBytes) + " or more",
                 advice};
  }
  return *std::move(key);
}

}  // namespace muster::collective
