// Randomness as an argument: ids and keys come from a source that tests replace by a fixed one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace muster::base {

class RandomSource {
 public:
  virtual ~RandomSource() = default;
  /// Fills `bytes`; fit for keys in SystemRandom.
  virtual void fill(std::span<uint8_t> bytes) = 0;

  /// `N` fresh bytes.
  template <size_t N>
  std::array<uint8_t, N> bytes() {
    std::array<uint8_t, N> result{};
    fill(result);
    return result;
  }
};

/// The kernel's generator (getrandom). Thread-safe. Ends the program where the kernel has none,
/// for nothing safe could be done without.
class SystemRandom : public RandomSource {
 public:
  void fill(std::span<uint8_t> bytes) override;
};

/// `length` characters of a-z and 2-7 (base 32): part of a DNS label, safe in a path.
std::string random_name(RandomSource& random, size_t length);

/// Lower-case hexadecimal.
std::string to_hex(std::span<const uint8_t> bytes);

}  // namespace muster::base
