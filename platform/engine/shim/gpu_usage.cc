#include "engine/shim/gpu_usage.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "job/metric.h"

namespace muster::engine {

namespace {

constexpr int kOfTheChip = 0;  ///< NVML_TEMPERATURE_GPU

NvmlDevice* find_device(const NvmlLibrary& library, const std::string& name) {
  NvmlDevice* device = nullptr;
  const auto number = base::number_of<unsigned>(name);
  const NvmlStatus status = number ? library.handle.call(*number, &device)
                                   : library.handle_by_uuid.call(name.c_str(), &device);
  return status == kNvmlSuccess ? device : nullptr;
}

/// Of all GPUs together; nothing where none of them told.
class Sum {
 public:
  void add(NvmlStatus status, double value) {
    if (status == kNvmlSuccess) sum_ = sum_.value_or(0) + value;
  }
  void take_highest(NvmlStatus status, double value) {
    if (status == kNvmlSuccess) sum_ = std::max(sum_.value_or(value), value);
  }
  std::optional<double> value() const { return sum_; }

 private:
  std::optional<double> sum_;
};

}  // namespace

GpuUsage::GpuUsage(const std::string& library, const std::vector<std::string>& names) {
  if (names.empty()) return;
  auto opened = open_nvml(library);
  if (!opened) return;
  library_ = std::make_unique<NvmlLibrary>(*std::move(opened));
  session_ = std::make_unique<NvmlSession>(*library_);
  if (session_->status() != kNvmlSuccess) return;
  for (const std::string& name : names) {
    if (NvmlDevice* device = find_device(*library_, name)) devices_.push_back(device);
  }
}

std::vector<std::pair<std::string, double>> GpuUsage::look() const {
  Sum percent;
  Sum used;
  Sum free;
  Sum watts;
  Sum celsius;
  for (NvmlDevice* device : devices_) {
    NvmlUtilization utilization{};
    NvmlStatus status = library_->utilization.call(device, &utilization);
    percent.add(status, utilization.gpu);
    NvmlMemory memory{};
    status = library_->memory.call(device, &memory);
    used.add(status, static_cast<double>(memory.used));
    free.add(status, static_cast<double>(memory.free));
    unsigned number = 0;
    status = library_->power.call(device, &number);
    watts.add(status, number / 1000.0);
    status = library_->temperature.call(device, kOfTheChip, &number);
    celsius.take_highest(status, number);
  }
  std::vector<std::pair<std::string, double>> values;
  const auto put = [&](std::string_view name, const Sum& sum) {
    if (const auto value = sum.value()) values.emplace_back(name, *value);
  };
  put(job::kGpuPercent, percent);
  put(job::kGpuMemoryBytes, used);
  put(job::kGpuMemoryFree, free);
  put(job::kGpuPowerWatts, watts);
  put(job::kGpuCelsius, celsius);
  return values;
}

}  // namespace muster::engine
