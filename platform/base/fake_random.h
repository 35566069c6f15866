// A fake of the kernel's generator for tests: equal seeds give equal bytes.
#pragma once

#include "base/random.h"

namespace muster::base {

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014): twelve
/// lines here, whereas <random> costs each including file a third of a second to compile.
class FakeRandom : public RandomSource {
 public:
  explicit FakeRandom(uint64_t seed = 1) : state_(seed) {}
  void fill(std::span<uint8_t> bytes) override {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(next());
  }

 private:
  uint64_t next() {
    uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }

  uint64_t state_;
};

}  // namespace muster::base
