// The interface between the library and a plug-in: a module that moves bytes over MPI or NCCL, and
// performs the reductions that these support. It is loaded with dlopen, so that the library runs
// without either, and has a C interface, so that another compiler may build it.
//
// A plug-in makes no decisions. The library checks that all ranks make the same call
// (plugins/plugin_backend.h), and performs the reductions that the plug-in does not support.
//
// Functions return 0 for success; otherwise last_error() has the reason. They block, and call
// keep_waiting() repeatedly meanwhile. If it returns 0, they abandon the operation, and only
// close() may follow. Thread-safety: one call at a time for a state.
#pragma once

#include <cstdint>

extern "C" {

// Incremented when anything in this header changes. A name of C.
// NOLINTNEXTLINE(readability-identifier-naming)
enum { MUSTER_PLUGIN_VERSION = 2 };

// The world that a plug-in is opened for.
struct MusterPluginWorld {
  int rank;
  int size;
  int local_rank;  // among the ranks of this host: picks the GPU

  // The maximum bytes in one call of MPI or NCCL; larger calls are divided.
  std::uint64_t most_bytes;

  // Gathers `bytes` bytes from each rank into `all`, by rank, over existing connections. Valid
  // while the state is open. Returns 0, or another value if the world has failed.
  int (*all_gather)(void* context, const void* part, std::uint64_t bytes, void* all);

  // Returns 0 if waiting for other ranks should stop.
  int (*keep_waiting)(void* context);
  void* context;
};

// A reduction in the numbers of DataType and ReduceOp.
struct MusterPluginReduction {
  int type;
  int op;
  double prescale;
  double postscale;
};

// `count` elements of `in` are reduced into `out`, which may equal `in`.
struct MusterPluginPiece {
  const void* in;
  void* out;
  std::uint64_t count;
};

struct MusterPlugin {
  int version;       // MUSTER_PLUGIN_VERSION
  const char* name;  // for messages: "Open MPI"

  // 1: all_reduce() gets each list of pieces as it is. 0: the library copies small pieces into one
  // buffer first, which requires that is_device() is always 0. Where a buffer lies may differ
  // between ranks, the division of a call may not, so this does not depend on the buffers.
  int takes_lists;

  // Prepares this process for open(), or writes the obstacle to `why`. The ranks exchange the
  // outcomes before they continue.
  int (*prepare)(char* why, std::uint64_t why_bytes);

  // Joins the world, on all of its ranks. Null on failure, with the reason in `why`.
  void* (*open)(const MusterPluginWorld* world, char* why, std::uint64_t why_bytes);

  // Leaves the world. `failed`: the world has failed, and the function must not wait for other
  // ranks.
  void (*close)(void* state, int failed);

  // Valid until the next call.
  const char* (*last_error)(void* state);

  // Whether `data` is memory of a device that only the plug-in can read.
  int (*is_device)(void* state, const void* data);

  // Whether all_reduce(), reduce() and reduce_scatter() support this reduction by the rules of
  // muster/collective/types.h. Equal on every rank.
  int (*reduces)(void* state, const MusterPluginReduction* reduction);

  int (*all_reduce)(void* state, const MusterPluginPiece* pieces, std::uint64_t count,
                    const MusterPluginReduction* reduction);
  int (*reduce)(void* state, const void* in, void* out, std::uint64_t count,
                const MusterPluginReduction* reduction, int root);

  // Null if not supported. `counts` has the elements of each rank's part.
  int (*reduce_scatter)(void* state, const void* in, void* out, const std::uint64_t* counts,
                        const MusterPluginReduction* reduction);

  // `part` may be this rank's part of `all`.
  int (*all_gather)(void* state, const void* part, void* all, const std::uint64_t* bytes);
  int (*broadcast)(void* state, void* data, std::uint64_t bytes, int root);
  int (*all_to_all)(void* state, const void* in, const std::uint64_t* sent, void* out,
                    const std::uint64_t* received);
  int (*send)(void* state, const void* data, std::uint64_t bytes, int to);
  int (*receive)(void* state, void* data, std::uint64_t bytes, int from);
};

// The function that a plug-in exports, under this name.
using MusterPluginEntry = const MusterPlugin* (*)();
}

inline constexpr const char* kMusterPluginEntry = "muster_collective_plugin";
