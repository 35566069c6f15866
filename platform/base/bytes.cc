#include "base/bytes.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace muster::base {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNoDigit = 0xFF;

constexpr std::array<uint8_t, 256> digits() {
  std::array<uint8_t, 256> table{};
  table.fill(kNoDigit);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    table[static_cast<unsigned char>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return table;
}

constexpr std::array<uint8_t, 256> kDigits = digits();

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view three = bytes.substr(0, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8U | (i < three.size() ? static_cast<unsigned char>(three[i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      out += i <= three.size() ? kAlphabet[bits >> (18 - 6 * i) & 63U] : '=';
    }
    bytes.remove_prefix(three.size());
  }
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::string_view digits = text.substr(0, text.size() - padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  unsigned held = 0;
  for (const char letter : digits) {
    const uint8_t digit = kDigits[static_cast<unsigned char>(letter)];
    if (digit == kNoDigit) return std::nullopt;
    bits = bits << 6U | digit;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 0xFFU);
  }
  return bytes;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  append_base64(text, bytes);
  return text;
}

std::string to_base64_for_urls(std::string_view bytes) {
  std::string text = to_base64(bytes);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

}  // namespace muster::base
