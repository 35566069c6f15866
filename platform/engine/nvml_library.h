// The used part of NVIDIA's management library (libnvidia-ml.so.1). The library comes with the
// driver and is loaded at run time, so it is not needed to build or link.
//
// Blocking: without persistence mode the driver wakes each idle GPU, and a failed GPU may block the
// caller forever.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::engine {

inline constexpr const char* kNvml = "libnvidia-ml.so.1";

using NvmlStatus = int;
inline constexpr NvmlStatus kNvmlSuccess = 0;
struct NvmlDevice;
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlUtilization {
  unsigned gpu, memory;  ///< percent of the time in which a kernel ran, or memory was used
};

/// A function of the library, looked up by name. nvml.h maps some plain names to names with _v2.
template <class Signature>
struct NvmlFunction {
  const char* name;
  Signature* call = nullptr;
};

struct NvmlLibrary {
  NvmlFunction<NvmlStatus()> init{"nvmlInit_v2"};
  NvmlFunction<NvmlStatus()> shutdown{"nvmlShutdown"};
  NvmlFunction<const char*(NvmlStatus)> error_string{"nvmlErrorString"};
  NvmlFunction<NvmlStatus(unsigned*)> count{"nvmlDeviceGetCount_v2"};
  NvmlFunction<NvmlStatus(unsigned, NvmlDevice**)> handle{"nvmlDeviceGetHandleByIndex_v2"};
  NvmlFunction<NvmlStatus(const char*, NvmlDevice**)> handle_by_uuid{"nvmlDeviceGetHandleByUUID"};
  NvmlFunction<NvmlStatus(NvmlDevice*, char*, unsigned)> name{"nvmlDeviceGetName"};
  NvmlFunction<NvmlStatus(NvmlDevice*, char*, unsigned)> uuid{"nvmlDeviceGetUUID"};
  NvmlFunction<NvmlStatus(NvmlDevice*, NvmlMemory*)> memory{"nvmlDeviceGetMemoryInfo"};
  NvmlFunction<NvmlStatus(NvmlDevice*, NvmlUtilization*)> utilization{
      "nvmlDeviceGetUtilizationRates"};
  NvmlFunction<NvmlStatus(NvmlDevice*, unsigned*)> power{"nvmlDeviceGetPowerUsage"};
  NvmlFunction<NvmlStatus(NvmlDevice*, int, unsigned*)> temperature{"nvmlDeviceGetTemperature"};

  std::string words_for(NvmlStatus status) const;
};

/// kNotFound: the library does not exist, or lacks a function.
base::Result<NvmlLibrary> open_nvml(const std::string& path);

/// Initialises the library until the end of the scope.
class NvmlSession {
 public:
  explicit NvmlSession(const NvmlLibrary& library)
      : library_(library), status_(library.init.call()) {}
  ~NvmlSession() {
    if (status_ == kNvmlSuccess) library_.shutdown.call();
  }
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  NvmlStatus status() const { return status_; }

 private:
  const NvmlLibrary& library_;
  NvmlStatus status_;
};

}  // namespace muster::engine
