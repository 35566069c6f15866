// A number that tells two sets of weights apart.
//
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace muster::digits {

/// FNV-1a, 64 bits, over the bytes (G. Fowler, L. C. Noll, K.-P. Vo).
std::uint64_t checksum_of(std::span<const float> weights);

/// As it is shown: 0x and 16 digits.
std::string checksum_text(std::uint64_t checksum);

}  // namespace muster::digits
