// Numbers in the headers of what is stored and sent: little endian, whatever the machine is.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>

namespace muster::base {

/// The lowest `bytes` bytes of it.
inline void append_little_endian(std::string& text, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
}

/// REQUIRES: kBytes bytes are there.
template <size_t kBytes>
uint64_t little_endian(const char* bytes) {
  uint64_t number = 0;
  for (size_t i = kBytes; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

}  // namespace muster::base
