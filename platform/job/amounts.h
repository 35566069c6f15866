// How much of what: the three resources that are shared out, in units that need no fractions, and
// what one task asks for.
//
// Plain values, exact integers: sums never drift, and equal inputs give equal plans.
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

/// No bound. A quarter of the range, so that a few of them can be added.
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

  /// No resource of this is more than it is in `bound`.
  bool within(const Amounts& bound) const {
    return gpu_milli <= bound.gpu_milli && cpu_milli <= bound.cpu_milli &&
           memory_bytes <= bound.memory_bytes;
  }
};

inline constexpr Amounts kNothing{};
inline constexpr Amounts kBoundless{kUnlimited, kUnlimited, kUnlimited};

inline constexpr int kWholeGpu = 1000;

/// What one task asks of one node. Zero means: no claim.
struct Claim {
  int gpus = 0;             ///< whole ones; 0 where it asks for a part of one
  int gpu_share_milli = 0;  ///< 1 to 999: a part of one GPU
  /// Or a part by its memory: as much share as that is of the device.
  int64_t gpu_memory_bytes = 0;
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;

  bool operator==(const Claim&) const = default;
};

// Amounts as people read them.

using base::count_text;
using base::listed;

/// "2 GPUs", "0.5 GPU", "3.5 CPUs", "16 GiB of memory", "unlimited CPUs".
std::string amount_text(Resource resource, int64_t amount);
/// All that are not zero: "2 GPUs, 4 CPUs and 16 GiB of memory"; "nothing".
std::string amounts_text(const Amounts& amounts);
/// What one task asks for: "0.5 GPU and 2 CPUs", "10 GiB of GPU memory"; empty where it claims
/// nothing.
std::string claim_text(const Claim& claim);

}  // namespace muster::job
