#include "pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "arguments.h"

namespace bench {
namespace {

// 16 ranks of at most 15 sum to 240: bfloat16 holds whole numbers up to 256.
constexpr int kValues = 16;
constexpr std::uint64_t kPeriod = 61;
constexpr std::uint64_t kBlock = kPeriod * 32;  // elements that are written or compared at a time

int value_of(std::uint64_t element, int rank) {
  const std::uint64_t place = (element + 7 * static_cast<std::uint64_t>(rank)) % kPeriod;
  return static_cast<int>(place * place % kPeriod % kValues);
}

// Whole numbers below 2048 are exact in binary16: exponent and mantissa are cut out of the float32.
std::uint16_t float16_bits(float value) {
  if (value == 0) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = ((bits >> 23) & 0xff) - 127 + 15;
  return static_cast<std::uint16_t>(exponent << 10 | (bits >> 13 & 0x3ff));
}

void store(Type type, int value, unsigned char* at) {
  const auto wide = static_cast<float>(value);
  const auto upper = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(wide) >> 16);
  const std::uint16_t half = float16_bits(wide);
  if (type == Type::kFloat32) std::memcpy(at, &wide, sizeof wide);
  if (type == Type::kBFloat16) std::memcpy(at, &upper, sizeof upper);
  if (type == Type::kFloat16) std::memcpy(at, &half, sizeof half);
}

}  // namespace

Type type_named(const std::string& name) {
  if (name == "float32") return Type::kFloat32;
  if (name == "float16") return Type::kFloat16;
  if (name == "bfloat16") return Type::kBFloat16;
  fail("no such type: " + name);
}

std::uint64_t size_of(Type type) {
  return type == Type::kFloat32 ? 4 : 2;
}

Pattern::Pattern(Type type, int rank, int ranks)
    : element_(size_of(type)),
      end_(kPeriod * element_),
      own_((kBlock + kPeriod) * element_),
      sum_((kBlock + kPeriod) * element_) {
  for (std::uint64_t i = 0; i < kBlock + kPeriod; i++) {
    int sum = 0;
    for (int other = 0; other < ranks; other++) sum += value_of(i, other);
    store(type, value_of(i, rank), &own_[i * element_]);
    store(type, sum, &sum_[i * element_]);
  }
}

void Pattern::write(void* data, std::uint64_t bytes) const {
  const unsigned char* from = own_.data() + place_;
  auto* to = static_cast<unsigned char*>(data);
  const std::uint64_t block = kBlock * element_;
  for (std::uint64_t done = 0; done < bytes; done += block) {
    std::memcpy(to + done, from, std::min(block, bytes - done));
  }
}

bool Pattern::is_sum(const void* data, std::uint64_t bytes) const {
  const unsigned char* expected = sum_.data() + place_;
  const auto* found = static_cast<const unsigned char*>(data);
  const std::uint64_t block = kBlock * element_;
  for (std::uint64_t done = 0; done < bytes; done += block) {
    if (std::memcmp(found + done, expected, std::min(block, bytes - done)) != 0) return false;
  }
  return true;
}

void read_through(const void* data, std::uint64_t bytes) {
  const auto* words = static_cast<const std::uint64_t*>(data);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < bytes / sizeof *words; i++) sum += words[i];
  // Keeps the loop: the compiler has to believe that somebody wants the sum.
  asm volatile("" : : "r"(sum));
}

}  // namespace bench
