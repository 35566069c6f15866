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
//
// The GPUs of this machine as NVIDIA's driver tells of them.
//
// Blocking: as nvml_library.h says.

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

// --- what the machine offers
//
// The GPUs that this machine offers to tasks.

/// GPUs of one model: a node has one, so that a task never trains on two that are unlike.
struct OfferedGpus {
  int count = 0;
  std::string model;         ///< empty: unknown
  int64_t memory_bytes = 0;  ///< what each has at least; 0: unknown
  /// What CUDA_VISIBLE_DEVICES calls each of them; empty: its number.
  std::vector<std::string> names;
  std::vector<std::string> left_out;  ///< sentences: what is not offered, and why

  bool operator==(const OfferedGpus&) const = default;
};

/// Offers the model of which there are most (of as many, the one with more memory), and says which
/// were left out. Where all are offered, numbers name them; where some are not, numbers would no
/// longer be those that CUDA counts, and they go by UUID.
///
/// Pure.
OfferedGpus offer(const NvmlGpus& found);

/// Asks NVML. Without that library it counts the device files (nvidia0, nvidia1 ...) in
/// `device_folder`, and no model is known; where the driver says that it does not work, it offers
/// none.
OfferedGpus offer_gpus(const std::string& library = "libnvidia-ml.so.1",
                       const std::filesystem::path& device_folder = "/dev");

}  // namespace muster::engine
