// Checks CBOR of untrusted origin before nlohmann's parser gets it. That parser recurses as deep as
// the text and creates a value for each byte, so a hostile text could exhaust the stack or memory.
//
// Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster::engine {

inline constexpr int kDeepestCbor = 16;
/// The limit for the number of values, each of which takes about 50 bytes in memory.
inline constexpr size_t kMostCborValues = 1 << 20;

/// Whether `text` is exactly one value within these limits, without tags and indefinite lengths,
/// which Muster never writes.
bool is_plain_cbor(std::string_view text);

}  // namespace muster::engine
