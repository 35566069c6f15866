// How busy a task's GPUs are, as NVML tells. It speaks of whole GPUs: where tasks share one, each
// of them sees what all do.
//
// Blocking, as nvml_library.h says. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/nvml_library.h"

namespace muster::engine {

class GpuUsage {
 public:
  /// By the names of CUDA_VISIBLE_DEVICES: numbers, in the order of the bus, or UUIDs. Opens the
  /// library at once, where there is any GPU to ask for. A GPU or a library that is not there is
  /// left out.
  GpuUsage(const std::string& library, const std::vector<std::string>& names);

  /// By the names of job/metric.h; what no GPU tells is not among them.
  std::vector<std::pair<std::string, double>> look() const;

 private:
  std::unique_ptr<NvmlLibrary> library_;
  std::unique_ptr<NvmlSession> session_;
  std::vector<NvmlDevice*> devices_;
};

}  // namespace muster::engine
