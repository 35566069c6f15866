#include "plugins/nccl_api.h"

#include <dlfcn.h>

#include <cstdlib>

namespace muster::collective::nccl {
namespace {

// One shared library, and whether all that was looked for in it was there.
class Library {
 public:
  explicit Library(const std::string& name)
      : name_(name), handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE)) {
    if (handle_ == nullptr) {
      const char* const reason = ::dlerror();
      fault_ = name_ + " not found (" + (reason == nullptr ? "no reason given" : reason) + ")";
    }
  }

  template <typename Function>
  void find(Function& function, const char* symbol) {
    if (handle_ == nullptr) return;
    function = reinterpret_cast<Function>(::dlsym(handle_, symbol));
    if (function == nullptr && fault_.empty()) {
      fault_ = name_ + " is too old: it has no " + symbol;
    }
  }

  const std::string& fault() const { return fault_; }

 private:
  std::string name_;
  void* handle_;
  std::string fault_;
};

std::string find_nccl(NcclApi& nccl) {
  const char* const chosen = ::secure_getenv("MUSTER_COLLECTIVE_NCCL");
  Library library(chosen != nullptr ? chosen : "libnccl.so.2");
  library.find(nccl.get_unique_id, "ncclGetUniqueId");
  library.find(nccl.comm_init_rank, "ncclCommInitRank");
  library.find(nccl.comm_destroy, "ncclCommDestroy");
  library.find(nccl.comm_abort, "ncclCommAbort");
  library.find(nccl.comm_get_async_error, "ncclCommGetAsyncError");
  library.find(nccl.get_error_string, "ncclGetErrorString");
  library.find(nccl.group_start, "ncclGroupStart");
  library.find(nccl.group_end, "ncclGroupEnd");
  library.find(nccl.all_reduce, "ncclAllReduce");
  library.find(nccl.reduce, "ncclReduce");
  library.find(nccl.reduce_scatter, "ncclReduceScatter");
  library.find(nccl.all_gather, "ncclAllGather");
  library.find(nccl.broadcast, "ncclBroadcast");
  library.find(nccl.send, "ncclSend");
  library.find(nccl.recv, "ncclRecv");
  library.find(nccl.create_scaled_sum, "ncclRedOpCreatePreMulSum");
  library.find(nccl.destroy_op, "ncclRedOpDestroy");
  return library.fault();
}

std::string find_cuda(CudaApi& cuda) {
  Library library("libcuda.so.1");
  library.find(cuda.init, "cuInit");
  library.find(cuda.device_count, "cuDeviceGetCount");
  library.find(cuda.device_get, "cuDeviceGet");
  library.find(cuda.retain_primary, "cuDevicePrimaryCtxRetain");
  library.find(cuda.release_primary, "cuDevicePrimaryCtxRelease_v2");
  library.find(cuda.push_context, "cuCtxPushCurrent_v2");
  library.find(cuda.pop_context, "cuCtxPopCurrent_v2");
  library.find(cuda.current_device, "cuCtxGetDevice");
  library.find(cuda.allocate, "cuMemAlloc_v2");
  library.find(cuda.free, "cuMemFree_v2");
  library.find(cuda.copy_to_device, "cuMemcpyHtoDAsync_v2");
  library.find(cuda.copy_to_host, "cuMemcpyDtoHAsync_v2");
  library.find(cuda.copy_on_device, "cuMemcpyDtoDAsync_v2");
  library.find(cuda.stream_create, "cuStreamCreate");
  library.find(cuda.stream_destroy, "cuStreamDestroy_v2");
  library.find(cuda.stream_query, "cuStreamQuery");
  library.find(cuda.pointer_attribute, "cuPointerGetAttribute");
  library.find(cuda.error_string, "cuGetErrorString");
  return library.fault();
}

Api load() {
  Api api;
  api.missing = find_nccl(api.nccl);
  if (api.missing.empty()) api.missing = find_cuda(api.cuda);
  if (!api.missing.empty()) return api;
  int devices = 0;
  if (api.cuda.init(0) != kCudaSuccess || api.cuda.device_count(&devices) != kCudaSuccess ||
      devices == 0) {
    api.missing = "the CUDA driver finds no GPU";
  }
  return api;
}

}  // namespace

const Api& api() {
  static const Api loaded = load();
  return loaded;
}

}  // namespace muster::collective::nccl
