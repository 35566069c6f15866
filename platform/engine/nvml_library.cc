#include "engine/nvml_library.h"

#include <dlfcn.h>

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

template <class Signature>
bool find(void* handle, NvmlFunction<Signature>& function) {
  function.call = reinterpret_cast<Signature*>(::dlsym(handle, function.name));
  return function.call != nullptr;
}

}  // namespace

std::string NvmlLibrary::words_for(NvmlStatus status) const {
  const char* words = error_string.call(status);
  return words == nullptr ? "error " + std::to_string(status) : words;
}

// Never unloaded: libraries that start threads and register exit handlers often crash when closed.
base::Result<NvmlLibrary> open_nvml(const std::string& path) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return Error{.code = ErrorCode::kNotFound,
                 .what = reason == nullptr ? "cannot load " + path : reason};
  }
  NvmlLibrary library;
  const bool complete = find(handle, library.init) && find(handle, library.shutdown) &&
                        find(handle, library.error_string) && find(handle, library.count) &&
                        find(handle, library.handle) && find(handle, library.handle_by_uuid) &&
                        find(handle, library.name) && find(handle, library.uuid) &&
                        find(handle, library.memory) && find(handle, library.utilization) &&
                        find(handle, library.power) && find(handle, library.temperature);
  if (complete) return library;
  const char* missing = ::dlerror();
  return Error{.code = ErrorCode::kNotFound,
               .what = path + " is too old: " + (missing == nullptr ? "" : missing)};
}

}  // namespace muster::engine
