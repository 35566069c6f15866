// Amounts of the three shared resources, in units that need no fractions, and the claim of one
// task.
//
// Plain values, exact integers: sums have no rounding errors, and equal inputs give equal plans.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/text.h"

namespace muster::job {

enum class Resource { kGpu, kCpu, kMemory };
inline constexpr std::array<Resource, 3> kResources{Resource::kGpu, Resource::kCpu,
                                                    Resource::kMemory};

/// No limit. A quarter of the range, so that several can be added without overflow.
inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

struct Amounts {
  int64_t gpu_milli = 0;  ///< thousandths of a GPU
  int64_t cpu_milli = 0;  ///< thousandths of a CPU
  int64_t memory_bytes = 0;

  int64_t& operator[](Resource resource) {
    return resource == Resource::kGpu   ? gpu_milli
           : resource == Resource::kCpu ? cpu_milli
                                        : memory_bytes;
  }
  int64_t operator[](Resource resource) const { return const_cast<Amounts&>(*this)[resource]; }

  Amounts& operator+=(const Amounts& other) {
    gpu_milli += other.gpu_milli;
    cpu_milli += other.cpu_milli;
    memory_bytes += other.memory_bytes;
    return *this;
  }
  Amounts& operator-=(const Amounts& other) {
    gpu_milli -= other.gpu_milli;
    cpu_milli -= other.cpu_milli;
    memory_bytes -= other.memory_bytes;
    return *this;
  }
  friend Amounts operator+(Amounts left, const Amounts& right) { return left += right; }
  friend Amounts operator-(Amounts left, const Amounts& right) { return left -= right; }
  friend Amounts operator*(const Amounts& one, int64_t count) {
    return {one.gpu_milli * count, one.cpu_milli * count, one.memory_bytes * count};
  }
  bool operator==(const Amounts&) const = default;

  /// Whether no resource exceeds that of `bound`.
  bool within(const Amounts& bound) const {
    return gpu_milli <= bound.gpu_milli && cpu_milli <= bound.cpu_milli &&
           memory_bytes <= bound.memory_bytes;
  }
};

inline constexpr Amounts kNothing{};
inline constexpr Amounts kBoundless{kUnlimited, kUnlimited, kUnlimited};

inline constexpr int kWholeGpu = 1000;

/// The resources that one task needs on one node. Zero: no claim.
struct Claim {
  int gpus = 0;             ///< whole GPUs; 0 if it claims a fraction of one
  int gpu_share_milli = 0;  ///< 1 to 999: a fraction of one GPU
  /// Or a fraction by memory: the share of the device's memory.
  int64_t gpu_memory_bytes = 0;
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;

  bool operator==(const Claim&) const = default;
};

// Amounts as text for people.

using base::count_text;
using base::listed;

/// "2 GPUs", "0.5 GPU", "3.5 CPUs", "16 GiB of memory", "unlimited CPUs".
std::string amount_text(Resource resource, int64_t amount);
/// All amounts that are not zero: "2 GPUs, 4 CPUs and 16 GiB of memory"; "nothing".
std::string amounts_text(const Amounts& amounts);
/// The claim of one task: "0.5 GPU and 2 CPUs", "10 GiB of GPU memory"; empty without a claim.
std::string claim_text(const Claim& claim);

}  // namespace muster::job
