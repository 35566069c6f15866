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
  /// Fills `bytes`. SystemRandom is suitable for keys.
  virtual void fill(std::span<uint8_t> bytes) = 0;

  /// `N` random bytes.
  template <size_t N>
  std::array<uint8_t, N> bytes() {
    std::array<uint8_t, N> result{};
    fill(result);
    return result;
  }
};

/// The kernel's generator (getrandom). Thread-safe. Ends the program if the kernel has no
/// generator, because nothing could be done safely.
class SystemRandom : public RandomSource {
 public:
  void fill(std::span<uint8_t> bytes) override;
};

/// `length` characters of a-z and 2-7 (base 32): safe in DNS labels and paths.
std::string random_name(RandomSource& random, size_t length);

/// Lower-case hexadecimal.
std::string to_hex(std::span<const uint8_t> bytes);

}  // namespace muster::base
