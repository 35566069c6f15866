// The functions of NCCL and of the CUDA driver that the plug-in calls, declared as documented, and
// looked up in libnccl.so.2 and libcuda.so.1 at run time. The plug-in compiles without these
// libraries, and runs with any NCCL from 2.10 on (ncclAvg).
//
// Sources: NVIDIA, "NCCL API" (User Guide); "CUDA Driver API" (Reference Manual).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/plugin.h"

namespace muster::collective::nccl {

// Enums are ints in these libraries. The values that the plug-in uses:
using NcclResult = int;  // 0 is success
using CudaResult = int;  // 0 is success
inline constexpr NcclResult kNcclSuccess = 0;
inline constexpr NcclResult kNcclInProgress = 7;
inline constexpr CudaResult kCudaSuccess = 0;
inline constexpr CudaResult kCudaNotReady = 600;

enum NcclType : int {
  kNcclInt8 = 0,
  kNcclUint8 = 1,
  kNcclInt32 = 2,
  kNcclUint32 = 3,
  kNcclInt64 = 4,
  kNcclUint64 = 5,
  kNcclFloat16 = 6,
  kNcclFloat32 = 7,
  kNcclFloat64 = 8,
  kNcclBfloat16 = 9,
};
enum NcclOp : int { kNcclSum = 0, kNcclProd = 1, kNcclMax = 2, kNcclMin = 3, kNcclAvg = 4 };
inline constexpr int kScalarOfHost = 1;  // ncclScalarHostImmediate

struct UniqueId {
  std::array<char, 128> internal;
};

using Comm = struct OpaqueComm*;                // ncclComm_t
using Context = struct OpaqueContext*;          // CUcontext
using Stream = struct OpaqueStream*;            // CUstream, which is cudaStream_t too
using Device = int;                             // CUdevice
using Address = unsigned long long;             // CUdeviceptr
inline constexpr int kMemoryTypeAttribute = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
inline constexpr unsigned kMemoryOfDevice = 2;  // CU_MEMORYTYPE_DEVICE

struct NcclApi {
  NcclResult (*get_unique_id)(UniqueId*);
  NcclResult (*comm_init_rank)(Comm*, int size, UniqueId, int rank);
  NcclResult (*comm_destroy)(Comm);
  NcclResult (*comm_abort)(Comm);
  NcclResult (*comm_get_async_error)(Comm, NcclResult*);
  const char* (*get_error_string)(NcclResult);
  NcclResult (*group_start)();
  NcclResult (*group_end)();
  NcclResult (*all_reduce)(const void*, void*, std::size_t, int type, int op, Comm, Stream);
  NcclResult (*reduce)(const void*, void*, std::size_t, int type, int op, int root, Comm, Stream);
  NcclResult (*reduce_scatter)(const void*, void*, std::size_t, int type, int op, Comm, Stream);
  NcclResult (*all_gather)(const void*, void*, std::size_t, int type, Comm, Stream);
  NcclResult (*broadcast)(const void*, void*, std::size_t, int type, int root, Comm, Stream);
  NcclResult (*send)(const void*, std::size_t, int type, int peer, Comm, Stream);
  NcclResult (*recv)(void*, std::size_t, int type, int peer, Comm, Stream);
  NcclResult (*create_scaled_sum)(int* op, void* scalar, int type, int residence, Comm);
  NcclResult (*destroy_op)(int op, Comm);
};

struct CudaApi {
  CudaResult (*init)(unsigned);
  CudaResult (*device_count)(int*);
  CudaResult (*device_get)(Device*, int ordinal);
  CudaResult (*retain_primary)(Context*, Device);
  CudaResult (*release_primary)(Device);
  CudaResult (*push_context)(Context);
  CudaResult (*pop_context)(Context*);
  CudaResult (*current_device)(Device*);
  CudaResult (*allocate)(Address*, std::size_t);
  CudaResult (*free)(Address);
  CudaResult (*copy_to_device)(Address, const void*, std::size_t, Stream);
  CudaResult (*copy_to_host)(void*, Address, std::size_t, Stream);
  CudaResult (*copy_on_device)(Address, Address, std::size_t, Stream);
  CudaResult (*stream_create)(Stream*, unsigned flags);
  CudaResult (*stream_destroy)(Stream);
  CudaResult (*stream_query)(Stream);
  CudaResult (*pointer_attribute)(void*, int attribute, Address);
  CudaResult (*error_string)(CudaResult, const char**);
};

/// Both libraries. Loaded once a process and never unloaded.
struct Api {
  NcclApi nccl = {};
  CudaApi cuda = {};
  std::string missing = {};  // the reason why they cannot be used; empty if they can
};

/// libnccl.so.2 is the library that the environment variable MUSTER_COLLECTIVE_NCCL names, or the
/// system's, or a library that the program (for example PyTorch) has already loaded.
const Api& api();

// The common part of the calls of the NCCL plug-in: the device, its stream, and a staging buffer on
// the device for host buffers.
//
// Functions that return false have stored the reason in the state.
// Functions that return false have left the reason in the state.

struct State {
  MusterPluginWorld world = {};
  Device device = 0;
  Context context = nullptr;
  Stream stream = nullptr;
  Comm comm = nullptr;  // null once it was aborted
  Address staging = 0;  // on the device, for buffers of the host
  std::size_t staging_bytes = 0;
  std::string error = {};
};

bool nccl_ok(State& state, NcclResult result);
bool cuda_ok(State& state, CudaResult result);

/// Whether `data` is memory of a device. Requires a current context.
bool is_on_device(const void* data);
Address address_of(const void* data);

/// Makes the device's context current on this thread, which may be any thread, for the life of this
/// object.
class Current {
 public:
  explicit Current(const State& state);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

/// Waits for all work on the stream, or aborts the communicator if another rank has failed.
bool finish(State& state);

/// One buffer of a call.
struct Buffer {
  const void* data;
  std::size_t bytes;
  bool is_read;
  void* written = nullptr;  // the same as `data` if the call writes to the buffer
  bool is_apart = false;    // must be copied, even if it is on the device
};

/// The addresses on the device of the buffers of a call: the buffers themselves, or their copies in
/// the staging buffer.
class Staged {
 public:
  Staged(State& state, std::vector<Buffer> buffers);

  bool ok() const { return ok_; }
  void* operator[](std::size_t i) const;

  /// Appends the copies of the results to the stream, and waits.
  bool finish_back();

 private:
  bool is_in_place(const Buffer& buffer) const;
  void place(std::size_t i, std::size_t offset);

  State& state_;
  std::vector<Buffer> buffers_;
  std::vector<Address> places_;
  bool ok_ = true;
};

}  // namespace muster::collective::nccl
