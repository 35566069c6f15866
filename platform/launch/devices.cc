#include "launch/devices.h"

#include <algorithm>

#include "base/text.h"

namespace muster::launch {

namespace {

constexpr int kWhole = 1000;  ///< thousandths

/// 500: "0.5"; 1000: "1".
std::string decimal(int milli) {
  if (milli % kWhole == 0) return std::to_string(milli / kWhole);
  std::string digits = std::to_string(kWhole + milli % kWhole).substr(1);
  digits.erase(digits.find_last_not_of('0') + 1);
  return std::to_string(milli / kWhole) + "." + digits;
}

/// The same for each device of the task.
int share_of(const job::Task& task) {
  return task.gpu_share_milli > 0 ? task.gpu_share_milli : kWhole;
}

}  // namespace

std::vector<std::string> device_names(const job::Task& task,
                                      const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const int device : task.devices) {
    const auto index = static_cast<size_t>(device);
    const bool is_named = index < names.size() && !names[index].empty();
    found.push_back(is_named ? names[index] : std::to_string(device));
  }
  return found;
}

std::map<std::string, std::string> device_environment(const job::Task& task,
                                                      const std::vector<std::string>& names) {
  std::map<std::string, std::string> variables{
      {"CUDA_VISIBLE_DEVICES", base::joined(device_names(task, names), ",")},
      {"MUSTER_GPUS", std::to_string(task.devices.size())},
  };
  if (task.devices.empty()) return variables;
  variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  const int share = share_of(task);
  variables["MUSTER_GPU_SHARE"] = decimal(share);
  if (share < kWhole) {
    // A whole number, rounded down: the shares of one GPU must not exceed 100 %.
    variables["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(std::max(share / 10, 1));
  }
  return variables;
}

std::string gpus_text(const job::Task& task) {
  return decimal(static_cast<int>(task.devices.size()) * share_of(task));
}

bool asks_for_gpus(const job::JobSpec& spec) {
  const auto claims = [](const job::Resources& claim) {
    return claim.gpus > 0 || claim.gpu_share_milli > 0 || claim.gpu_memory_bytes > 0;
  };
  return claims(spec.resources) || claims(spec.leader.resources) ||
         claims(spec.parameter_server.resources);
}

}  // namespace muster::launch
