#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace muster::base {

void SystemRandom::fill(std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) std::abort();
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

std::string random_name(RandomSource& random, size_t length) {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
  std::vector<uint8_t> bytes(length);  // at once: each fill() may be a call of the kernel
  random.fill(bytes);
  std::string name(length, '\0');
  for (size_t i = 0; i < length; ++i) name[i] = kAlphabet[bytes[i] % kAlphabet.size()];
  return name;
}

std::string to_hex(std::span<const uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace muster::base
