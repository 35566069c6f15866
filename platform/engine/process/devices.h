// The GPUs that this machine offers to tasks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/process/nvml.h"

namespace muster::engine {

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
