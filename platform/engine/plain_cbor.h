// Whether CBOR that somebody else has sent may be given to the library that reads it: that one goes
// as deep as the text does, and makes a value of each byte, so a hostile text ends the program by
// its stack or its memory.
//
// Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster::engine {

inline constexpr int kDeepestCbor = 16;
/// Values in all: each takes some 50 bytes where it is read.
inline constexpr size_t kMostCborValues = 1 << 20;

/// One whole value and nothing behind it, no deeper and of no more parts than that; without tags
/// and without anything of indefinite length, which Muster never writes.
bool is_plain_cbor(std::string_view text);

}  // namespace muster::engine
