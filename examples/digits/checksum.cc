#include "checksum.h"

#include <array>
#include <cstddef>
#include <cstdio>

namespace muster::digits {

std::uint64_t checksum_of(std::span<const float> weights) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte byte : std::as_bytes(weights)) {
    hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  }
  return hash;
}

std::string checksum_text(std::uint64_t checksum) {
  std::array<char, 19> text;
  std::snprintf(text.data(), text.size(), "0x%016llx", static_cast<unsigned long long>(checksum));
  return text.data();
}

}  // namespace muster::digits
