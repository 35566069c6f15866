// The plug-in over NCCL: collectives between GPUs.
//
// Buffers are device memory, which is used in place, or host memory, which is copied to a buffer on
// the device and back. A caller that passes device memory has waited for the kernels that write it;
// the result is complete when the call returns. The device is the calling thread's current device
// at the time of open(), or else the device with the index of the rank on its host.
//
// NCCL rounds 16-bit floats at each of its steps, not once at the end, and the bits of a sum depend
// on how it divides the buffer. The bits are the same on every rank.
//
// A call is put on a stream of this module, which then polls whether it is done. So a call can be
// abandoned with ncclCommAbort when a rank dies. Joining (ncclCommInitRank) cannot be abandoned.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "muster/collective/types.h"
#include "plugins/nccl_api.h"
#include "plugins/plugin.h"

namespace muster::collective::nccl {
namespace {

State& state_of(void* state) {
  return *static_cast<State*>(state);
}

struct Type {
  int nccl = -1;
  std::size_t width = 0;
};

Type type_of(int type) {
  switch (static_cast<DataType>(type)) {
    case DataType::kFloat32:
      return {kNcclFloat32, 4};
    case DataType::kFloat64:
      return {kNcclFloat64, 8};
    case DataType::kFloat16:
      return {kNcclFloat16, 2};
    case DataType::kBFloat16:
      return {kNcclBfloat16, 2};
    case DataType::kInt8:
      return {kNcclInt8, 1};
    case DataType::kUInt8:
      return {kNcclUint8, 1};
    case DataType::kInt32:
      return {kNcclInt32, 4};
    case DataType::kUInt32:
      return {kNcclUint32, 4};
    case DataType::kInt64:
      return {kNcclInt64, 8};
    case DataType::kUInt64:
      return {kNcclUint64, 8};
    default:
      return {};
  }
}

bool is_scaled(const MusterPluginReduction& reduction) {
  return reduction.prescale != 1 || reduction.postscale != 1;
}

// Unsupported are 16-bit integers and bools, which NCCL does not have; minimum and maximum of
// floats, in which it loses a NaN; averages of integers; and scales, except for sums of wide
// floats.
int reduces(void*, const MusterPluginReduction* reduction) {
  const Type type = type_of(reduction->type);
  if (type.nccl < 0) return 0;
  const auto given = static_cast<DataType>(reduction->type);
  const bool is_wide = given == DataType::kFloat32 || given == DataType::kFloat64;
  const bool is_float = type.nccl >= kNcclFloat16;
  switch (static_cast<ReduceOp>(reduction->op)) {
    case ReduceOp::kSum:
      return !is_scaled(*reduction) || is_wide ? 1 : 0;
    case ReduceOp::kAverage:
      return is_float && (!is_scaled(*reduction) || is_wide) ? 1 : 0;
    case ReduceOp::kProduct:
      return is_scaled(*reduction) ? 0 : 1;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return is_scaled(*reduction) || is_float ? 0 : 1;
    default:
      return 0;
  }
}

// NCCL's operation for a reduction. A sum with scales is an operation of its own, created for the
// call.
class Op {
 public:
  Op(State& state, const MusterPluginReduction& reduction) : state_(state) {
    switch (static_cast<ReduceOp>(reduction.op)) {
      case ReduceOp::kProduct:
        number_ = kNcclProd;
        break;
      case ReduceOp::kMin:
        number_ = kNcclMin;
        break;
      case ReduceOp::kMax:
        number_ = kNcclMax;
        break;
      case ReduceOp::kAverage:
        number_ = kNcclAvg;
        break;
      default:
        number_ = kNcclSum;
    }
    if (is_scaled(reduction)) scale(reduction);
  }
  ~Op() {
    if (is_made_ && state_.comm != nullptr) api().nccl.destroy_op(number_, state_.comm);
  }
  Op(const Op&) = delete;
  Op& operator=(const Op&) = delete;

  bool ok() const { return ok_; }
  int number() const { return number_; }

 private:
  // Sums are linear, so one factor before the sum replaces both scales.
  void scale(const MusterPluginReduction& reduction) {
    double factor = reduction.prescale * reduction.postscale;
    if (number_ == kNcclAvg) factor /= state_.world.size;
    auto narrow = static_cast<float>(factor);
    const int type = type_of(reduction.type).nccl;
    void* const scalar =
        type == kNcclFloat64 ? static_cast<void*>(&factor) : static_cast<void*>(&narrow);
    ok_ = nccl_ok(state_,
                  api().nccl.create_scaled_sum(&number_, scalar, type, kScalarOfHost, state_.comm));
    is_made_ = ok_;
  }

  State& state_;
  int number_ = kNcclSum;
  bool is_made_ = false;
  bool ok_ = true;
};

// Puts the operations that `calls(nccl)` starts on the stream as one group. Fails with their first
// failure.
template <typename Calls>
bool group(State& state, Calls&& calls) {
  const NcclApi& nccl = api().nccl;
  if (!nccl_ok(state, nccl.group_start())) return false;
  const bool ok = calls(nccl);
  const NcclResult ended = nccl.group_end();
  return ok && nccl_ok(state, ended);
}

int all_reduce(void* opaque, const MusterPluginPiece* pieces, std::uint64_t count,
               const MusterPluginReduction* reduction) {
  State& state = state_of(opaque);
  const Current current(state);
  const Type type = type_of(reduction->type);
  std::vector<Buffer> buffers;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t bytes = pieces[i].count * type.width;
    buffers.push_back({pieces[i].in, bytes, true});
    buffers.push_back({pieces[i].out, bytes, false, pieces[i].out});
  }
  Staged staged(state, std::move(buffers));
  const Op op(state, *reduction);
  if (!staged.ok() || !op.ok()) return 1;
  const bool ok = group(state, [&](const NcclApi& nccl) {
    for (std::uint64_t i = 0; i < count; ++i) {
      if (pieces[i].count == 0) continue;
      if (!nccl_ok(state, nccl.all_reduce(staged[2 * i], staged[2 * i + 1], pieces[i].count,
                                          type.nccl, op.number(), state.comm, state.stream))) {
        return false;
      }
    }
    return true;
  });
  return ok && staged.finish_back() ? 0 : 1;
}

int reduce(void* opaque, const void* in, void* out, std::uint64_t count,
           const MusterPluginReduction* reduction, int root) {
  State& state = state_of(opaque);
  const Current current(state);
  const Type type = type_of(reduction->type);
  const std::size_t bytes = count * type.width;
  void* const result = state.world.rank == root ? out : nullptr;
  Staged staged(state, {{in, bytes, true}, {result, result == nullptr ? 0 : bytes, false, result}});
  const Op op(state, *reduction);
  if (!staged.ok() || !op.ok()) return 1;
  if (count == 0) return 0;
  const bool ok = nccl_ok(state, api().nccl.reduce(staged[0], staged[1], count, type.nccl,
                                                   op.number(), root, state.comm, state.stream));
  return ok && staged.finish_back() ? 0 : 1;
}

int reduce_scatter(void* opaque, const void* in, void* out, const std::uint64_t* counts,
                   const MusterPluginReduction* reduction) {
  State& state = state_of(opaque);
  const Current current(state);
  const Type type = type_of(reduction->type);
  const std::uint64_t own = counts[state.world.rank];
  const std::uint64_t total = std::accumulate(counts, counts + state.world.size, std::uint64_t{0});
  // If `out` is `in`, the result would overwrite data that has not been sent yet.
  const bool is_apart = in == out;
  Staged staged(state,
                {{in, total * type.width, true}, {out, own * type.width, false, out, is_apart}});
  const Op op(state, *reduction);
  if (!staged.ok() || !op.ok()) return 1;
  if (total == 0) return 0;
  const bool are_equal = std::all_of(counts, counts + state.world.size,
                                     [counts](std::uint64_t count) { return count == *counts; });
  const NcclApi& nccl = api().nccl;
  bool ok = true;
  if (are_equal) {
    ok = nccl_ok(state, nccl.reduce_scatter(staged[0], staged[1], own, type.nccl, op.number(),
                                            state.comm, state.stream));
  } else {
    const auto* part = static_cast<const char*>(staged[0]);
    for (int root = 0; ok && root < state.world.size; part += counts[root++] * type.width) {
      if (counts[root] == 0) continue;
      ok = nccl_ok(state, nccl.reduce(part, staged[1], counts[root], type.nccl, op.number(), root,
                                      state.comm, state.stream));
    }
  }
  return ok && staged.finish_back() ? 0 : 1;
}

int all_gather(void* opaque, const void* part, void* all, const std::uint64_t* bytes) {
  State& state = state_of(opaque);
  const Current current(state);
  const int size = state.world.size;
  const std::uint64_t total = std::accumulate(bytes, bytes + size, std::uint64_t{0});
  const std::uint64_t own = bytes[state.world.rank];
  Staged staged(state, {{part, own, true}, {all, total, false, all}});
  if (!staged.ok()) return 1;
  if (total == 0) return 0;
  const NcclApi& nccl = api().nccl;
  const bool are_equal =
      std::all_of(bytes, bytes + size, [bytes](std::uint64_t length) { return length == *bytes; });
  const bool ok = are_equal
                      ? nccl_ok(state, nccl.all_gather(staged[0], staged[1], own, kNcclInt8,
                                                       state.comm, state.stream))
                      : group(state, [&](const NcclApi&) {
                          auto* into = static_cast<char*>(staged[1]);
                          for (int root = 0; root < size; into += bytes[root++]) {
                            if (bytes[root] == 0) continue;
                            const void* const from = root == state.world.rank ? staged[0] : into;
                            if (!nccl_ok(state, nccl.broadcast(from, into, bytes[root], kNcclInt8,
                                                               root, state.comm, state.stream))) {
                              return false;
                            }
                          }
                          return true;
                        });
  return ok && staged.finish_back() ? 0 : 1;
}

int broadcast(void* opaque, void* data, std::uint64_t bytes, int root) {
  State& state = state_of(opaque);
  const Current current(state);
  Staged staged(state, {{data, bytes, true, data}});
  if (!staged.ok()) return 1;
  if (bytes == 0) return 0;
  const bool ok = nccl_ok(state, api().nccl.broadcast(staged[0], staged[0], bytes, kNcclInt8, root,
                                                      state.comm, state.stream));
  return ok && staged.finish_back() ? 0 : 1;
}

int all_to_all(void* opaque, const void* in, const std::uint64_t* sent, void* out,
               const std::uint64_t* received) {
  State& state = state_of(opaque);
  const Current current(state);
  const int size = state.world.size;
  const std::uint64_t all_in = std::accumulate(sent, sent + size, std::uint64_t{0});
  const std::uint64_t all_out = std::accumulate(received, received + size, std::uint64_t{0});
  Staged staged(state, {{in, all_in, true}, {out, all_out, false, out}});
  if (!staged.ok()) return 1;
  auto* from = static_cast<char*>(staged[0]);
  auto* into = static_cast<char*>(staged[1]);
  const bool ok = group(state, [&](const NcclApi& nccl) {
    for (int peer = 0; peer < size; ++peer) {
      bool fine = true;
      if (peer == state.world.rank) {
        fine = sent[peer] == 0 ||
               cuda_ok(state, api().cuda.copy_on_device(address_of(into), address_of(from),
                                                        sent[peer], state.stream));
      } else {
        if (sent[peer] > 0) {
          fine = nccl_ok(state,
                         nccl.send(from, sent[peer], kNcclInt8, peer, state.comm, state.stream));
        }
        if (fine && received[peer] > 0) {
          fine = nccl_ok(
              state, nccl.recv(into, received[peer], kNcclInt8, peer, state.comm, state.stream));
        }
      }
      if (!fine) return false;
      from += sent[peer];
      into += received[peer];
    }
    return true;
  });
  return ok && staged.finish_back() ? 0 : 1;
}

int send(void* opaque, const void* data, std::uint64_t bytes, int to) {
  State& state = state_of(opaque);
  const Current current(state);
  Staged staged(state, {{data, bytes, true}});
  if (!staged.ok()) return 1;
  if (bytes == 0) return 0;
  const bool ok =
      nccl_ok(state, api().nccl.send(staged[0], bytes, kNcclInt8, to, state.comm, state.stream));
  return ok && finish(state) ? 0 : 1;
}

int receive(void* opaque, void* data, std::uint64_t bytes, int from) {
  State& state = state_of(opaque);
  const Current current(state);
  Staged staged(state, {{data, bytes, false, data}});
  if (!staged.ok()) return 1;
  if (bytes == 0) return 0;
  const bool ok =
      nccl_ok(state, api().nccl.recv(staged[0], bytes, kNcclInt8, from, state.comm, state.stream));
  return ok && staged.finish_back() ? 0 : 1;
}

void write(char* why, std::uint64_t room, const std::string& text) {
  std::snprintf(why, room, "%s", text.c_str());
}

int prepare(char* why, std::uint64_t room) {
  if (api().missing.empty()) return 0;
  write(why, room, "no NCCL: " + api().missing);
  return 1;
}

bool take_device(State& state) {
  const CudaApi& cuda = api().cuda;
  if (cuda.current_device(&state.device) != kCudaSuccess) {
    int count = 0;
    cuda.device_count(&count);
    if (!cuda_ok(state, cuda.device_get(&state.device, state.world.local_rank % count))) {
      return false;
    }
  }
  return cuda_ok(state, cuda.retain_primary(&state.context, state.device));
}

// Rank 0 creates an id, which all ranks receive over the existing connections.
bool join(State& state) {
  const MusterPluginWorld& world = state.world;
  UniqueId own = {};
  if (world.rank == 0 && !nccl_ok(state, api().nccl.get_unique_id(&own))) return false;
  std::vector<UniqueId> ids(static_cast<std::size_t>(world.size));
  if (world.all_gather(world.context, &own, sizeof(own), ids.data()) != 0) {
    state.error = "the world failed while it joined";
    return false;
  }
  return nccl_ok(state,
                 api().nccl.comm_init_rank(&state.comm, world.size, ids.front(), world.rank));
}

void close(void* opaque, int failed) {
  auto* const state = static_cast<State*>(opaque);
  if (state->context != nullptr) {
    {
      const Current current(*state);
      if (state->comm != nullptr) {
        if (failed != 0) {
          api().nccl.comm_abort(state->comm);
        } else {
          api().nccl.comm_destroy(state->comm);
        }
      }
      if (state->staging != 0) api().cuda.free(state->staging);
      if (state->stream != nullptr) api().cuda.stream_destroy(state->stream);
    }
    api().cuda.release_primary(state->device);
  }
  delete state;
}

void* open(const MusterPluginWorld* world, char* why, std::uint64_t room) {
  auto* const state = new State{.world = *world};
  bool ok = take_device(*state);
  if (ok) {
    const Current current(*state);
    constexpr unsigned kNonBlocking = 1;  // not synchronized with the default stream
    ok = cuda_ok(*state, api().cuda.stream_create(&state->stream, kNonBlocking)) && join(*state);
  }
  if (ok) return state;
  write(why, room, "NCCL cannot be used: " + state->error);
  close(state, 1);
  return nullptr;
}

const char* last_error(void* state) {
  return state_of(state).error.c_str();
}

int is_device(void* opaque, const void* data) {
  const Current current(state_of(opaque));
  return is_on_device(data) ? 1 : 0;
}

}  // namespace
}  // namespace muster::collective::nccl

extern "C" __attribute__((visibility("default"))) const MusterPlugin* muster_collective_plugin() {
  using namespace muster::collective::nccl;
  static constexpr MusterPlugin kPlugin = {.version = MUSTER_PLUGIN_VERSION,
                                           .name = "NCCL",
                                           .takes_lists = 1,
                                           .prepare = prepare,
                                           .open = open,
                                           .close = close,
                                           .last_error = last_error,
                                           .is_device = is_device,
                                           .reduces = reduces,
                                           .all_reduce = all_reduce,
                                           .reduce = reduce,
                                           .reduce_scatter = reduce_scatter,
                                           .all_gather = all_gather,
                                           .broadcast = broadcast,
                                           .all_to_all = all_to_all,
                                           .send = send,
                                           .receive = receive};
  return &kPlugin;
}
