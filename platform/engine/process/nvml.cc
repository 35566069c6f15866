#include "engine/process/nvml.h"

#include <array>
#include <optional>

#include "engine/nvml_library.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

using Text = std::array<char, 128>;  // NVML's longest are 96

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

}  // namespace muster::engine
