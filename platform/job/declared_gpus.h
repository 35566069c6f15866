// The GPUs that an administrator declares for a machine instead of the detected ones. Declared GPUs
// let the scheduler be tried on a machine without GPUs.
//
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::job {

inline constexpr int kMostDeclaredGpus = 64;

struct DeclaredGpus {
  int count = 0;
  std::string model;         ///< empty: unknown
  int64_t memory_bytes = 0;  ///< of each; 0: unknown

  bool operator==(const DeclaredGpus&) const = default;
};

/// "N[:MODEL[:MEMORY]]": 2, 8:A100, 4:NVIDIA H100 80GB HBM3:80G. 0 hides the machine's GPUs.
/// kInvalid: lists every fault of the text. Pure.
base::Result<DeclaredGpus> parse_declared_gpus(std::string_view text);

}  // namespace muster::job
