// What the calls of the NCCL plug-in share: the device, its stream, and buffers of the host that
// have to be on the device for a call.
//
// Functions that return false have left the reason in the state.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "plugins/nccl_api.h"
#include "plugins/plugin.h"

namespace muster::collective::nccl {

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
