// The border between the library and a plug-in: a module that carries bytes, and what reductions it
// knows, over MPI or NCCL. It is loaded with dlopen, so that the library needs neither to run, and
// is spoken to by plain C functions, so that it may be built by another compiler.
//
// A plug-in decides nothing. The library has checked that all ranks make the same call (plugins/
// plugin_backend.h), and reduces by itself what the plug-in does not.
//
// Functions return 0, or else something else, and last_error() tells why. They block, and call
// keep_waiting() every now and then while they do: when that returns 0 they give up, with what they
// were doing abandoned, and only close() may follow. Thread-safety: one call at a time for a state.
#pragma once

#include <cstdint>

extern "C" {

// Raised when anything in here changes. A name of C.
// NOLINTNEXTLINE(readability-identifier-naming)
enum { MUSTER_PLUGIN_VERSION = 1 };

// The world that a plug-in is opened for.
struct MusterPluginWorld {
  int rank;
  int size;
  int local_rank;  // among the ranks of this host: picks the GPU

  // The most bytes in one call of the library below; larger ones are cut.
  std::uint64_t most_bytes;

  // Of all ranks, over connections that are there already: gathers `bytes` bytes from each into
  // `all`, by rank. For as long as the state is open. 0, or not 0 when the world has failed.
  int (*all_gather)(void* context, const void* part, std::uint64_t bytes, void* all);

  // Not 0 as long as it is worth waiting for the others.
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

// `count` elements of `in` are reduced into `out`, which may be the same place.
struct MusterPluginPiece {
  const void* in;
  void* out;
  std::uint64_t count;
};

struct MusterPlugin {
  int version;       // MUSTER_PLUGIN_VERSION
  const char* name;  // for messages: "Open MPI"

  // Brings this process to where open() can be called, or says in `why` what it lacks. Every rank
  // hears whether all others could before it goes on.
  int (*prepare)(char* why, std::uint64_t why_bytes);

  // Joins the world, on all of its ranks. Null when that fails, with the reason in `why`.
  void* (*open)(const MusterPluginWorld* world, char* why, std::uint64_t why_bytes);

  // Leaves; `failed` when the world has failed and nobody may be waited for.
  void (*close)(void* state, int failed);

  // Valid until the next call.
  const char* (*last_error)(void* state);

  // Whether `data` is memory of a device, which only the plug-in can read.
  int (*is_device)(void* state, const void* data);

  // Whether all_reduce(), reduce() and reduce_scatter() know this reduction, by the rules of
  // muster/collective/types.h. The answer is the same on every rank.
  int (*reduces)(void* state, const MusterPluginReduction* reduction);

  int (*all_reduce)(void* state, const MusterPluginPiece* pieces, std::uint64_t count,
                    const MusterPluginReduction* reduction);
  int (*reduce)(void* state, const void* in, void* out, std::uint64_t count,
                const MusterPluginReduction* reduction, int root);

  // Null where there is none. `counts` has the elements of every rank's part.
  int (*reduce_scatter)(void* state, const void* in, void* out, const std::uint64_t* counts,
                        const MusterPluginReduction* reduction);

  // `part` may be its own place in `all`.
  int (*all_gather)(void* state, const void* part, void* all, const std::uint64_t* bytes);
  int (*broadcast)(void* state, void* data, std::uint64_t bytes, int root);
  int (*all_to_all)(void* state, const void* in, const std::uint64_t* sent, void* out,
                    const std::uint64_t* received);
  int (*send)(void* state, const void* data, std::uint64_t bytes, int to);
  int (*receive)(void* state, void* data, std::uint64_t bytes, int from);
};

// What a plug-in exports, under this name.
using MusterPluginEntry = const MusterPlugin* (*)();
}

inline constexpr const char* kMusterPluginEntry = "muster_collective_plugin";
