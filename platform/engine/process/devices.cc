#include "engine/process/devices.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "engine/host_facts.h"
#include "engine/nvml_library.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

// --- what the driver reports

namespace {

using Text = std::array<char, 128>;  // the longest text of NVML has 96

/// A GPU without a name or memory can still be given to tasks; one without a handle cannot.
Result<Gpu> read_gpu(const NvmlLibrary& library, unsigned index) {
  NvmlDevice* device = nullptr;
  if (const NvmlStatus status = library.handle.call(index, &device); status != kNvmlSuccess) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "GPU " + std::to_string(index) +
                         " cannot be reached: " + library.words_for(status)};
  }
  Gpu gpu;
  Text text{};
  constexpr unsigned kRoom = text.size() - 1;
  if (library.name.call(device, text.data(), kRoom) == kNvmlSuccess) gpu.model = text.data();
  text = {};
  if (library.uuid.call(device, text.data(), kRoom) == kNvmlSuccess) gpu.uuid = text.data();
  NvmlMemory memory{};
  if (library.memory.call(device, &memory) == kNvmlSuccess) {
    gpu.memory_bytes = static_cast<int64_t>(memory.total);
  }
  return gpu;
}

}  // namespace

Result<NvmlGpus> ask_nvml(const std::string& path) {
  MUSTER_TRY(const NvmlLibrary library, open_nvml(path));
  const NvmlSession session(library);
  unsigned count = 0;
  const NvmlStatus status =
      session.status() == kNvmlSuccess ? library.count.call(&count) : session.status();
  if (status != kNvmlSuccess) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "the driver of the GPUs does not work: " + library.words_for(status)};
  }
  NvmlGpus found;
  for (unsigned index = 0; index < count; ++index) {
    auto gpu = read_gpu(library, index);
    if (gpu) {
      found.gpus.push_back(*std::move(gpu));
    } else {
      found.unreached.push_back(std::move(gpu).error().what);
    }
  }
  return found;
}

// --- what the machine offers

namespace {

/// Whether a device file is a GPU: nvidia0, nvidia1 ..., but not nvidiactl or nvidia-uvm.
bool is_gpu_file(std::string_view name) {
  constexpr std::string_view kPrefix = "nvidia";
  if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) return false;
  return std::all_of(name.begin() + kPrefix.size(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

int count_gpu_files(const fs::path& folder) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (is_gpu_file(entry.path().filename().string())) ++count;
  }
  return count;
}

std::string counted(size_t number, const std::string& model) {
  return base::count_text(static_cast<int64_t>(number), "GPU") + " of model '" + model + "'";
}

/// The model with the most GPUs; among equals, with the most memory; among those, the first by
/// name.
const std::vector<Gpu>& preferred(const std::map<std::string, std::vector<Gpu>>& models) {
  const auto weight = [](const std::vector<Gpu>& gpus) {
    return std::pair(gpus.size(), gpus.front().memory_bytes);
  };
  return std::max_element(
             models.begin(), models.end(),
             [&](const auto& a, const auto& b) { return weight(a.second) < weight(b.second); })
      ->second;
}

/// Limits the number of GPUs: the scheduler stores a node's GPUs as the bits of one word.
void keep_within_bound(OfferedGpus& offered) {
  if (offered.count <= kMaxGpus) return;
  offered.left_out.push_back(std::to_string(offered.count - kMaxGpus) +
                             " GPUs: a node has at most " + std::to_string(kMaxGpus));
  offered.count = kMaxGpus;
  if (offered.names.size() > kMaxGpus) offered.names.resize(kMaxGpus);
}

}  // namespace

OfferedGpus offer(const NvmlGpus& found) {
  OfferedGpus offered{.left_out = found.unreached};
  if (found.gpus.empty()) return offered;
  std::map<std::string, std::vector<Gpu>> models;
  for (const Gpu& gpu : found.gpus) models[gpu.model].push_back(gpu);
  const std::vector<Gpu>& chosen = preferred(models);
  offered.count = static_cast<int>(chosen.size());
  offered.model = chosen.front().model;
  offered.memory_bytes = chosen.front().memory_bytes;
  for (const Gpu& gpu : chosen) {
    offered.memory_bytes = std::min(offered.memory_bytes, gpu.memory_bytes);
  }
  for (const auto& [model, gpus] : models) {
    if (model == offered.model) continue;
    offered.left_out.push_back(counted(gpus.size(), model) + ": the node offers only model '" +
                               offered.model + "'");
  }
  const bool named =
      std::none_of(chosen.begin(), chosen.end(), [](const Gpu& gpu) { return gpu.uuid.empty(); });
  if (named && !offered.left_out.empty()) {
    for (const Gpu& gpu : chosen) offered.names.push_back(gpu.uuid);
  }
  keep_within_bound(offered);
  return offered;
}

OfferedGpus offer_gpus(const std::string& library, const fs::path& device_folder) {
  const auto found = ask_nvml(library);
  if (found) return offer(*found);
  if (found.error().code == base::ErrorCode::kNotFound) {
    OfferedGpus offered{.count = count_gpu_files(device_folder)};
    keep_within_bound(offered);
    return offered;
  }
  OfferedGpus none;
  if (const int files = count_gpu_files(device_folder)) {
    none.left_out = {base::count_text(files, "GPU") + ": " + found.error().what};
  }
  return none;
}

}  // namespace muster::engine
