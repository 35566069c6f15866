// The plug-in over MPI, for the MPI that it was compiled with: one module for each ABI.
//
// Collectives are non-blocking, followed by a loop that waits for them: a blocking collective could
// not be abandoned when a rank dies, and would hang. Every MPI call is made under one lock, so that
// MPI_THREAD_SERIALIZED is sufficient. Calls larger than most_bytes are divided, since MPI counts
// in int.
//
// If the program has not initialized MPI, this module does, and finalizes it at exit. MPI cannot be
// initialized twice in a process. After a failure it is not finalized, since that waits for all
// ranks.
#define OMPI_SKIP_MPICXX 1  // the old C++ bindings, which would have to be linked
#define MPICH_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "muster/collective/types.h"
#include "plugins/plugin.h"

namespace muster::collective {
namespace {

constexpr int kTag = 77;
constexpr int kSpins = 1000;      // before the thread yields the processor
constexpr int kSpinsToAsk = 256;  // between two calls of keep_waiting()

std::mutex& turn() {
  static std::mutex one;
  return one;
}

std::atomic<bool>& any_failed() {
  static std::atomic<bool> failed{false};
  return failed;
}

struct State {
  MusterPluginWorld world;
  MPI_Comm comm;
  std::string error;
  std::vector<MPI_Request> requests;
  bool is_abandoned = false;
};

State& state_of(void* state) {
  return *static_cast<State*>(state);
}

void write(char* why, std::uint64_t room, const std::string& text) {
  std::snprintf(why, room, "%s", text.c_str());
}

std::string words_of(int code) {
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  return text;
}

// Starts one non-blocking operation by `call(request)`; finish() waits for it.
// NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): it looks for the wait in this function
template <typename Call>
int start(State& state, Call&& call) {
  MPI_Request request = MPI_REQUEST_NULL;
  const std::lock_guard lock(turn());
  const int code = call(&request);
  if (code == MPI_SUCCESS) {
    state.requests.push_back(request);
  } else {
    state.error = words_of(code);
  }
  return code == MPI_SUCCESS ? 0 : 1;
}
// NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)

int test(State& state, bool& done) {
  int flag = 0;
  const std::lock_guard lock(turn());
  const int code = MPI_Testall(static_cast<int>(state.requests.size()), state.requests.data(),
                               &flag, MPI_STATUSES_IGNORE);
  if (code != MPI_SUCCESS) state.error = words_of(code);
  done = flag != 0;
  return code == MPI_SUCCESS ? 0 : 1;
}

// Waits for all started operations. Abandoned operations remain with MPI, which may still write to
// their buffers.
int finish(State& state) {
  bool done = false;
  for (int spins = 0;; ++spins) {
    if (test(state, done) != 0) return 1;
    if (done) break;
    if (spins % kSpinsToAsk == 0 && state.world.keep_waiting(state.world.context) == 0) {
      state.is_abandoned = true;
      state.error = "another rank has failed";
      return 1;
    }
    if (spins >= kSpins) ::sched_yield();
  }
  state.requests.clear();
  return 0;
}

template <typename Call>
int run(State& state, Call&& call) {
  return start(state, call) == 0 && finish(state) == 0 ? 0 : 1;
}

MPI_Datatype type_of(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return MPI_FLOAT;
    case DataType::kFloat64:
      return MPI_DOUBLE;
    case DataType::kInt8:
      return MPI_INT8_T;
    case DataType::kUInt8:
      return MPI_UINT8_T;
    case DataType::kInt16:
      return MPI_INT16_T;
    case DataType::kUInt16:
      return MPI_UINT16_T;
    case DataType::kInt32:
      return MPI_INT32_T;
    case DataType::kUInt32:
      return MPI_UINT32_T;
    case DataType::kInt64:
      return MPI_INT64_T;
    case DataType::kUInt64:
      return MPI_UINT64_T;
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Op op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return MPI_SUM;
    case ReduceOp::kProduct:
      return MPI_PROD;
    case ReduceOp::kMin:
      return MPI_MIN;
    case ReduceOp::kMax:
      return MPI_MAX;
    default:
      return MPI_OP_NULL;
  }
}

// Unsupported are reductions whose results differ from the library's: 16-bit floats, which MPI
// rounds at every step; minimum and maximum of floats, for which MPI does not define the result of
// a NaN; bools, whose bytes may be other than 0 and 1; scales.
int reduces(void*, const MusterPluginReduction* reduction) {
  const auto type = static_cast<DataType>(reduction->type);
  const auto op = static_cast<ReduceOp>(reduction->op);
  if (type_of(type) == MPI_DATATYPE_NULL || op_of(op) == MPI_OP_NULL) return 0;
  if (reduction->prescale != 1 || reduction->postscale != 1) return 0;
  const bool is_float = type == DataType::kFloat32 || type == DataType::kFloat64;
  return !is_float || op == ReduceOp::kSum || op == ReduceOp::kProduct ? 1 : 0;
}

std::uint64_t width_of(DataType type) {
  int width = 1;
  const std::lock_guard lock(turn());
  MPI_Type_size(type_of(type), &width);
  return static_cast<std::uint64_t>(width);
}

// Calls `cut(offset, bytes)` for each part of at most `most` bytes.
template <typename Cut>
int in_parts(std::uint64_t bytes, std::uint64_t most, Cut&& cut) {
  for (std::uint64_t offset = 0; offset < bytes; offset += most) {
    if (cut(offset, std::min(most, bytes - offset)) != 0) return 1;
  }
  return 0;
}

// MPI_IN_PLACE must be used by all ranks or by none, but each rank decides for itself whether its
// buffers are the same. Therefore all ranks reduce in place.
int all_reduce(void* opaque, const MusterPluginPiece* pieces, std::uint64_t count,
               const MusterPluginReduction* reduction) {
  State& state = state_of(opaque);
  const auto type = static_cast<DataType>(reduction->type);
  const MPI_Op op = op_of(static_cast<ReduceOp>(reduction->op));
  const std::uint64_t width = width_of(type);
  for (std::uint64_t i = 0; i < count; ++i) {
    const MusterPluginPiece& piece = pieces[i];
    const std::uint64_t bytes = piece.count * width;
    auto* const out = static_cast<char*>(piece.out);
    if (piece.in != piece.out && bytes > 0) std::memcpy(out, piece.in, bytes);
    const std::uint64_t most = std::max(state.world.most_bytes / width, std::uint64_t{1}) * width;
    const auto part = [&](std::uint64_t offset, std::uint64_t length) {
      return run(state, [&](MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, out + offset, static_cast<int>(length / width),
                              type_of(type), op, state.comm, request);
      });
    };
    if (in_parts(bytes, most, part) != 0) return 1;
  }
  return 0;
}

int reduce(void* opaque, const void* in, void* out, std::uint64_t count,
           const MusterPluginReduction* reduction, int root) {
  State& state = state_of(opaque);
  const auto type = static_cast<DataType>(reduction->type);
  const MPI_Op op = op_of(static_cast<ReduceOp>(reduction->op));
  const std::uint64_t width = width_of(type);
  const bool in_place = state.world.rank == root && in == out;
  const std::uint64_t most = std::max(state.world.most_bytes / width, std::uint64_t{1}) * width;
  return in_parts(count * width, most, [&](std::uint64_t offset, std::uint64_t length) {
    const void* const from = in_place ? MPI_IN_PLACE : static_cast<const char*>(in) + offset;
    void* const to = state.world.rank == root ? static_cast<char*>(out) + offset : nullptr;
    return run(state, [&](MPI_Request* request) {
      return MPI_Ireduce(from, to, static_cast<int>(length / width), type_of(type), op, root,
                         state.comm, request);
    });
  });
}

int broadcast(void* opaque, void* data, std::uint64_t bytes, int root) {
  State& state = state_of(opaque);
  return in_parts(bytes, state.world.most_bytes, [&](std::uint64_t offset, std::uint64_t length) {
    return run(state, [&](MPI_Request* request) {
      return MPI_Ibcast(static_cast<char*>(data) + offset, static_cast<int>(length), MPI_BYTE, root,
                        state.comm, request);
    });
  });
}

int all_gather(void* opaque, const void* part, void* all, const std::uint64_t* bytes) {
  State& state = state_of(opaque);
  auto* const into = static_cast<char*>(all);
  std::vector<int> lengths;
  std::vector<int> offsets;
  std::uint64_t total = 0;
  std::uint64_t own = 0;
  for (int rank = 0; rank < state.world.size; ++rank) {
    if (rank == state.world.rank) own = total;
    lengths.push_back(static_cast<int>(std::min(bytes[rank], state.world.most_bytes)));
    offsets.push_back(static_cast<int>(std::min(total, state.world.most_bytes)));
    total += bytes[rank];
  }
  const std::uint64_t length = bytes[state.world.rank];
  if (length > 0 && part != into + own) std::memmove(into + own, part, length);
  if (total == 0) return 0;
  if (total <= state.world.most_bytes) {
    return run(state, [&](MPI_Request* request) {
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, into, lengths.data(), offsets.data(),
                             MPI_BYTE, state.comm, request);
    });
  }
  std::uint64_t offset = 0;
  for (int root = 0; root < state.world.size; offset += bytes[root++]) {
    if (broadcast(opaque, into + offset, bytes[root], root) != 0) return 1;
  }
  return 0;
}

int start_send(State& state, const char* data, std::uint64_t bytes, int to) {
  return in_parts(bytes, state.world.most_bytes, [&](std::uint64_t offset, std::uint64_t length) {
    return start(state, [&](MPI_Request* request) {
      return MPI_Isend(data + offset, static_cast<int>(length), MPI_BYTE, to, kTag, state.comm,
                       request);
    });
  });
}

int start_receive(State& state, char* data, std::uint64_t bytes, int from) {
  return in_parts(bytes, state.world.most_bytes, [&](std::uint64_t offset, std::uint64_t length) {
    return start(state, [&](MPI_Request* request) {
      return MPI_Irecv(data + offset, static_cast<int>(length), MPI_BYTE, from, kTag, state.comm,
                       request);
    });
  });
}

// Pair by pair, in parts that both ends compute alike: MPI_Alltoallv has offsets of type int.
int all_to_all(void* opaque, const void* in, const std::uint64_t* sent, void* out,
               const std::uint64_t* received) {
  State& state = state_of(opaque);
  std::uint64_t to_offset = 0;
  std::uint64_t from_offset = 0;
  for (int peer = 0; peer < state.world.size; ++peer) {
    const auto* const from_here = static_cast<const char*>(in) + to_offset;
    auto* const to_here = static_cast<char*>(out) + from_offset;
    to_offset += sent[peer];
    from_offset += received[peer];
    if (peer == state.world.rank) {
      if (sent[peer] > 0) std::memcpy(to_here, from_here, sent[peer]);
      continue;
    }
    if (start_receive(state, to_here, received[peer], peer) != 0) return 1;
    if (start_send(state, from_here, sent[peer], peer) != 0) return 1;
  }
  return finish(state);
}

int send(void* opaque, const void* data, std::uint64_t bytes, int to) {
  State& state = state_of(opaque);
  if (start_send(state, static_cast<const char*>(data), bytes, to) != 0) return 1;
  return finish(state);
}

int receive(void* opaque, void* data, std::uint64_t bytes, int from) {
  State& state = state_of(opaque);
  if (start_receive(state, static_cast<char*>(data), bytes, from) != 0) return 1;
  return finish(state);
}

void finalize_at_exit() {
  int is_finalized = 0;
  MPI_Finalized(&is_finalized);
  if (is_finalized == 0 && !any_failed()) MPI_Finalize();
}

// Open MPI loads components later, which look up its symbols among the global symbols of the
// process.
void open_to_all() {
  Dl_info info = {};
  if (::dladdr(reinterpret_cast<const void*>(&MPI_Init_thread), &info) != 0) {
    ::dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  }
}

int prepare(char* why, std::uint64_t room) {
  const std::lock_guard lock(turn());
  int is_finalized = 0;
  int is_initialized = 0;
  int level = 0;
  MPI_Finalized(&is_finalized);
  MPI_Initialized(&is_initialized);
  if (is_finalized != 0) {
    write(why, room, "MPI has been finalized in this process and cannot be initialized again");
    return 1;
  }
  if (is_initialized != 0) {
    MPI_Query_thread(&level);
  } else {
    open_to_all();
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
    if (code != MPI_SUCCESS) {
      write(why, room, "MPI_Init_thread failed: " + words_of(code));
      return 1;
    }
    std::atexit(finalize_at_exit);
  }
  if (level < MPI_THREAD_SERIALIZED) {
    write(why, room,
          "MPI was initialized for calls from one thread only: call MPI_Init_thread with "
          "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE");
    return 1;
  }
  return 0;
}

// The MPI ranks of the world, which may be a part of MPI_COMM_WORLD in another order. Empty if the
// ranks were not started by one mpirun.
std::vector<int> mpi_ranks_of(const MusterPluginWorld& world) {
  int own = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<int> ranks(static_cast<std::size_t>(world.size));
  if (world.all_gather(world.context, &own, sizeof(own), ranks.data()) != 0) return {};
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const bool is_twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  return is_twice || sorted.back() >= size ? std::vector<int>() : ranks;
}

void* open(const MusterPluginWorld* world, char* why, std::uint64_t room) {
  const std::vector<int> ranks = mpi_ranks_of(*world);
  if (ranks.empty()) {
    write(why, room,
          "two ranks have the same rank in MPI_COMM_WORLD: they were not started by one mpirun of "
          "this MPI");
    return nullptr;
  }
  const std::lock_guard lock(turn());
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group mine = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, world->size, ranks.data(), &mine);
  const int code = MPI_Comm_create_group(MPI_COMM_WORLD, mine, kTag, &comm);
  MPI_Group_free(&mine);
  MPI_Group_free(&all);
  if (code != MPI_SUCCESS || comm == MPI_COMM_NULL) {
    write(why, room, "MPI_Comm_create_group failed: " + words_of(code));
    return nullptr;
  }
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return new State{.world = *world, .comm = comm, .error = {}, .requests = {}};
}

void close(void* opaque, int failed) {
  auto* const state = static_cast<State*>(opaque);
  if (failed != 0 || state->is_abandoned) {
    any_failed() = true;
  } else {
    const std::lock_guard lock(turn());
    int is_finalized = 0;
    MPI_Finalized(&is_finalized);
    if (is_finalized == 0) MPI_Comm_free(&state->comm);
  }
  delete state;
}

const char* last_error(void* state) {
  return state_of(state).error.c_str();
}

int is_device(void*, const void*) {
  return 0;
}

}  // namespace
}  // namespace muster::collective

extern "C" __attribute__((visibility("default"))) const MusterPlugin* muster_collective_plugin() {
  using namespace muster::collective;
  static constexpr MusterPlugin kPlugin = {.version = MUSTER_PLUGIN_VERSION,
                                           .name = MUSTER_PLUGIN_NAME,
                                           .takes_lists = 0,
                                           .prepare = prepare,
                                           .open = open,
                                           .close = close,
                                           .last_error = last_error,
                                           .is_device = is_device,
                                           .reduces = reduces,
                                           .all_reduce = all_reduce,
                                           .reduce = reduce,
                                           .reduce_scatter = nullptr,
                                           .all_gather = all_gather,
                                           .broadcast = broadcast,
                                           .all_to_all = all_to_all,
                                           .send = send,
                                           .receive = receive};
  return &kPlugin;
}
