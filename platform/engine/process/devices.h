// The GPUs that this machine has, as NVIDIA's driver reports them, and which of them it offers to
// tasks.
//
// Blocking: see nvml_library.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace muster::engine {

// --- what the driver reports

struct Gpu {
  std::string model;
  int64_t memory_bytes = 0;  ///< 0: unknown
  std::string uuid;          ///< empty: unknown

  bool operator==(const Gpu&) const = default;
};

struct NvmlGpus {
  std::vector<Gpu> gpus;               ///< in NVML's order
  std::vector<std::string> unreached;  ///< a sentence for each GPU that does not answer, with why

  bool operator==(const NvmlGpus&) const = default;
};

/// Asks the driver. kNotFound: the library does not exist, or lacks a function; kUnavailable: the
/// driver does not work.
base::Result<NvmlGpus> ask_nvml(const std::string& library = "libnvidia-ml.so.1");

// --- what the machine offers

/// GPUs of one model. A node offers only one model, so that a task never trains on two different
/// ones.
struct OfferedGpus {
  int count = 0;
  std::string model;         ///< empty: unknown
  int64_t memory_bytes = 0;  ///< the smallest memory of these GPUs; 0: unknown
  /// Their names in CUDA_VISIBLE_DEVICES; empty: their numbers from 0 on.
  std::vector<std::string> names;
  std::vector<std::string> left_out;  ///< a sentence for GPUs that are not offered, with why

  bool operator==(const OfferedGpus&) const = default;
};

/// Offers the most frequent model (among equals, the one with more memory). If some GPUs are left
/// out, the offered ones are named by UUID: their numbers would not be the numbers of CUDA.
///
/// Pure.
OfferedGpus offer(const NvmlGpus& found);

/// Offers the GPUs that NVML reports. Without the library, it counts the device files (nvidia0,
/// nvidia1 ...) in `device_folder`, and the model is unknown. If the driver does not work, it
/// offers none.
OfferedGpus offer_gpus(const std::string& library = "libnvidia-ml.so.1",
                       const std::filesystem::path& device_folder = "/dev");

}  // namespace muster::engine
