// The functions of NCCL and of the CUDA driver that the plug-in calls, as they are documented, and
// looked up in libnccl.so.2 and libcuda.so.1 when it is used: it compiles where neither is
// installed, and runs with any NCCL from 2.10 on (ncclAvg).
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

// Enums are ints to these libraries; the values that are used here:
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
  std::string missing = {};  // why they cannot be used, where they cannot
};

/// libnccl.so.2 is that of the environment variable MUSTER_COLLECTIVE_NCCL, or the system's, or one
/// that the program (PyTorch, say) has loaded already.
const Api& api();

// What the calls of the NCCL plug-in share: the device, its stream, and buffers of the host that
// have to be on the device for a call.
//
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

/// Whether it is memory of a device. Only with a context.
bool is_on_device(const void* data);
Address address_of(const void* data);

/// Makes the device's context the thread's own for as long as this lives: calls come from any.
class Current {
 public:
  explicit Current(const State& state);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

/// Waits for all that is on the stream, or aborts the communicator where another rank has failed.
bool finish(State& state);

/// One buffer of a call.
struct Buffer {
  const void* data;
  std::size_t bytes;
  bool is_read;
  void* written = nullptr;  // the same as `data` where it is a result
  bool is_apart = false;    // may not be used where it is
};

/// The places on the device of what a call reads and writes: the buffers themselves, or their
/// stand-ins in the staging buffer.
class Staged {
 public:
  Staged(State& state, std::vector<Buffer> buffers);

  bool ok() const { return ok_; }
  void* operator[](std::size_t i) const;

  /// Puts the results back behind what is on the stream, and waits.
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
