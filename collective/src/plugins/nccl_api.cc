#include "plugins/nccl_api.h"

#include <dlfcn.h>
#include <sched.h>

#include <cstdlib>

namespace muster::collective::nccl {
namespace {

// A shared library, and whether all requested symbols were found in it.
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

namespace {

// The alignment of the driver's own allocations.
constexpr std::size_t kAlignment = 256;

bool give_up(State& state, const char* why) {
  if (state.comm != nullptr) api().nccl.comm_abort(state.comm);
  state.comm = nullptr;
  state.error = why;
  return false;
}

// Makes the staging buffer at least `bytes` long. It is kept for later calls.
bool reserve(State& state, std::size_t bytes) {
  if (bytes <= state.staging_bytes) return true;
  if (state.staging != 0) api().cuda.free(state.staging);
  state.staging = 0;
  state.staging_bytes = 0;
  if (!cuda_ok(state, api().cuda.allocate(&state.staging, bytes))) return false;
  state.staging_bytes = bytes;
  return true;
}

bool is_worth_waiting(State& state) {
  NcclResult trouble = kNcclSuccess;
  api().nccl.comm_get_async_error(state.comm, &trouble);
  if (trouble != kNcclSuccess && trouble != kNcclInProgress) {
    return give_up(state, api().nccl.get_error_string(trouble));
  }
  if (state.world.keep_waiting(state.world.context) == 0) {
    return give_up(state, "another rank has failed");
  }
  return true;
}

}  // namespace

bool nccl_ok(State& state, NcclResult result) {
  if (result == kNcclSuccess) return true;
  state.error = api().nccl.get_error_string(result);
  return false;
}

bool cuda_ok(State& state, CudaResult result) {
  if (result == kCudaSuccess) return true;
  const char* text = nullptr;
  api().cuda.error_string(result, &text);
  state.error = std::string("CUDA: ") + (text == nullptr ? "an unknown error" : text);
  return false;
}

Address address_of(const void* data) {
  return reinterpret_cast<Address>(data);
}

bool is_on_device(const void* data) {
  unsigned type = 0;
  return data != nullptr &&
         api().cuda.pointer_attribute(&type, kMemoryTypeAttribute, address_of(data)) ==
             kCudaSuccess &&
         type == kMemoryOfDevice;
}

Current::Current(const State& state) {
  api().cuda.push_context(state.context);
}
Current::~Current() {
  Context previous = nullptr;
  api().cuda.pop_context(&previous);
}

bool finish(State& state) {
  constexpr unsigned kRoundsToAsk = 64;
  for (unsigned round = 0;; ++round) {
    const CudaResult done = api().cuda.stream_query(state.stream);
    if (done != kCudaNotReady) return cuda_ok(state, done);
    if (round % kRoundsToAsk == 0 && !is_worth_waiting(state)) return false;
    ::sched_yield();
  }
}

Staged::Staged(State& state, std::vector<Buffer> buffers)
    : state_(state), buffers_(std::move(buffers)), places_(buffers_.size()) {
  std::size_t total = 0;
  std::vector<std::size_t> offsets(buffers_.size());
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (is_in_place(buffers_[i])) continue;
    offsets[i] = total;
    total += (buffers_[i].bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  ok_ = reserve(state_, total);
  for (std::size_t i = 0; ok_ && i < buffers_.size(); ++i) place(i, offsets[i]);
}

void* Staged::operator[](std::size_t i) const {
  return reinterpret_cast<void*>(places_[i]);  // NOLINT: what the driver calls a pointer
}

bool Staged::is_in_place(const Buffer& buffer) const {
  return buffer.bytes == 0 || (!buffer.is_apart && is_on_device(buffer.data));
}

void Staged::place(std::size_t i, std::size_t offset) {
  const Buffer& buffer = buffers_[i];
  if (is_in_place(buffer)) {
    places_[i] = address_of(buffer.data);
    return;
  }
  places_[i] = state_.staging + offset;
  if (!buffer.is_read) return;
  ok_ = cuda_ok(state_,
                api().cuda.copy_to_device(places_[i], buffer.data, buffer.bytes, state_.stream));
}

bool Staged::finish_back() {
  const CudaApi& cuda = api().cuda;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    if (buffer.written == nullptr || is_in_place(buffer)) continue;
    const CudaResult copied =
        is_on_device(buffer.written)
            ? cuda.copy_on_device(address_of(buffer.written), places_[i], buffer.bytes,
                                  state_.stream)
            : cuda.copy_to_host(buffer.written, places_[i], buffer.bytes, state_.stream);
    if (!cuda_ok(state_, copied)) return false;
  }
  return finish(state_);
}

}  // namespace muster::collective::nccl
