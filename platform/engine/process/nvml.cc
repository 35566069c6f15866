#include "engine/process/nvml.h"

#include <dlfcn.h>

#include <array>
#include <optional>

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

// What of nvml.h is used here. The names ending in _v2 are those that the header's plain ones stand
// for.
using Status = int;
constexpr Status kSuccess = 0;
struct NvmlDevice;
struct Memory {
  unsigned long long total, free, used;
};

/// A function of the library, found by name.
template <class Signature>
struct Function {
  const char* name;
  Signature* call = nullptr;
};

struct Library {
  Function<Status()> init{"nvmlInit_v2"};
  Function<Status()> shutdown{"nvmlShutdown"};
  Function<const char*(Status)> error_string{"nvmlErrorString"};
  Function<Status(unsigned*)> count{"nvmlDeviceGetCount_v2"};
  Function<Status(unsigned, NvmlDevice**)> handle{"nvmlDeviceGetHandleByIndex_v2"};
  Function<Status(NvmlDevice*, char*, unsigned)> name{"nvmlDeviceGetName"};
  Function<Status(NvmlDevice*, char*, unsigned)> uuid{"nvmlDeviceGetUUID"};
  Function<Status(NvmlDevice*, Memory*)> memory{"nvmlDeviceGetMemoryInfo"};

  std::string words_for(Status status) const {
    const char* words = error_string.call(status);
    return words == nullptr ? "error " + std::to_string(status) : words;
  }
};

template <class Signature>
bool find(void* handle, Function<Signature>& function) {
  function.call = reinterpret_cast<Signature*>(::dlsym(handle, function.name));
  return function.call != nullptr;
}

// Stays loaded: a library that starts threads and takes exit handlers seldom survives being closed.
Result<Library> open(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return Error{.code = ErrorCode::kNotFound,
                 .what = reason == nullptr ? "cannot load " + path : reason};
  }
  Library library;
  const bool complete = find(handle, library.init) && find(handle, library.shutdown) &&
                        find(handle, library.error_string) && find(handle, library.count) &&
                        find(handle, library.handle) && find(handle, library.name) &&
                        find(handle, library.uuid) && find(handle, library.memory);
  if (complete) return library;
  const char* missing = ::dlerror();
  return Error{.code = ErrorCode::kNotFound,
               .what = path + " is too old: " + (missing == nullptr ? "" : missing)};
}

/// An initialised library, until the end of the scope.
class Session {
 public:
  explicit Session(const Library& library) : library_(library), status_(library.init.call()) {}
  ~Session() {
    if (status_ == kSuccess) library_.shutdown.call();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status status() const { return status_; }

 private:
  const Library& library_;
  Status status_;
};

using Text = std::array<char, 128>;  // NVML's longest are 96

/// A GPU without a name or memory can still be given to tasks; one without a handle cannot.
Result<Gpu> ask(const Library& library, unsigned index) {
  NvmlDevice* device = nullptr;
  if (const Status status = library.handle.call(index, &device); status != kSuccess) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "GPU " + std::to_string(index) +
                         " cannot be reached: " + library.words_for(status)};
  }
  Gpu gpu;
  Text text{};
  constexpr unsigned kRoom = text.size() - 1;
  if (library.name.call(device, text.data(), kRoom) == kSuccess) gpu.model = text.data();
  text = {};
  if (library.uuid.call(device, text.data(), kRoom) == kSuccess) gpu.uuid = text.data();
  Memory memory{};
  if (library.memory.call(device, &memory) == kSuccess) {
    gpu.memory_bytes = static_cast<int64_t>(memory.total);
  }
  return gpu;
}

}  // namespace

Result<NvmlGpus> ask_nvml(const std::string& path) {
  MUSTER_TRY(const Library library, open(path));
  const Session session(library);
  unsigned count = 0;
  const Status status =
      session.status() == kSuccess ? library.count.call(&count) : session.status();
  if (status != kSuccess) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "the driver of the GPUs does not work: " + library.words_for(status)};
  }
  NvmlGpus found;
  for (unsigned index = 0; index < count; ++index) {
    auto gpu = ask(library, index);
    if (gpu) {
      found.gpus.push_back(*std::move(gpu));
    } else {
      found.unreached.push_back(std::move(gpu).error().what);
    }
  }
  return found;
}

}  // namespace muster::engine
