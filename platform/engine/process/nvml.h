// The GPUs of this machine as NVIDIA's driver tells of them.
//
// Blocking: as nvml_library.h says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::engine {

struct Gpu {
  std::string model;
  int64_t memory_bytes = 0;  ///< 0: unknown
  std::string uuid;          ///< empty: unknown

  bool operator==(const Gpu&) const = default;
};

struct NvmlGpus {
  std::vector<Gpu> gpus;               ///< that answered, in NVML's order
  std::vector<std::string> unreached;  ///< sentences: which did not, and why

  bool operator==(const NvmlGpus&) const = default;
};

/// Errors: kNotFound where there is no such library or it lacks a function, and so cannot be asked;
/// kUnavailable where it says that its driver does not work.
base::Result<NvmlGpus> ask_nvml(const std::string& library = "libnvidia-ml.so.1");

}  // namespace muster::engine
