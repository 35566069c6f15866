// How a rank finds the others: its place in the world, and where the world meets.
//
//   MUSTER_RENDEZVOUS       host:port where rank 0 listens while the world gathers
//   MUSTER_RENDEZVOUS_KEY   the key of the job in hex, 16 bytes or more; needed with the above
//   MUSTER_RANK, MUSTER_WORLD_SIZE
//   MUSTER_COLLECTIVE_TIMEOUT   seconds, may have a fraction; by default 60 to meet, 600 in a call
//   MUSTER_COLLECTIVE_SILENCE, _TRANSPORT, _ALGORITHM, _STREAMS, _HOST_ID, _ARENA_BYTES
//                           see Options
//
// Without MUSTER_RANK the place comes from the launcher: OMPI_COMM_WORLD_RANK/SIZE (Open MPI),
// PMI_RANK/SIZE (MPICH, Intel MPI), SLURM_PROCID/NTASKS, RANK/WORLD_SIZE (torchrun), the first pair
// that is there. Under a launcher that started all its ranks on one host nothing needs to be set:
// they meet by a private file. On several hosts torchrun's ranks need only the key: they meet at
// MASTER_ADDR, on the port after MASTER_PORT. With none of these variables the world is this one
// process.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "muster/collective/result.h"

namespace muster::collective {

/// What Communicator::connect() needs to know. What is left empty, bootstrap_from_environment()
/// fills in.
struct Options {
  std::optional<int> rank = {};  // 0 .. size - 1
  std::optional<int> size = {};

  /// Where the world meets: an endpoint `host:port` (IPv6 as `[::1]:port`) with the job's key in
  /// hex, or else, for ranks on one host, the path of a file in a folder of the user's own.
  std::string rendezvous = {};
  std::string key = {};
  std::string rendezvous_file = {};

  /// Rank 0 only: a listening socket on `rendezvous` to use instead of opening one, so that a
  /// launcher can hold the port. In a world of two or more connect() takes it over and closes it.
  int listener = -1;

  /// How this rank's host is named in the others' messages; empty: its host name.
  std::string host = {};

  /// Ranks with the same id are taken to be on one host and share memory. Empty: found out (the
  /// system's boot, network namespace and user). MUSTER_COLLECTIVE_HOST_ID.
  std::string host_id = {};

  /// How long to wait for a rank that does not come to the rendezvous (kDefaultTimeout if unset),
  /// or that is alive but does not come to a call (kDefaultCallTimeout).
  std::optional<std::chrono::milliseconds> timeout = {};

  /// How long a rank that is waited for may not answer at all before it counts as stopped or cut
  /// off; 0.7 s on one host and 5 s between hosts if unset. MUSTER_COLLECTIVE_SILENCE, in seconds.
  std::optional<std::chrono::milliseconds> silence = {};

  /// What carries the collectives: "auto", "shm", "tcp", or a plug-in, "mpi" or "nccl". Where ranks
  /// differ, rank 0's counts for all. MUSTER_COLLECTIVE_TRANSPORT.
  std::string transport = {};

  /// Over TCP: "auto", "direct", "ring", "rabenseifner" or "doubling". Rank 0's counts for all.
  /// MUSTER_COLLECTIVE_ALGORITHM.
  std::string algorithm = {};

  /// Connections between two ranks that speak TCP, 1 to 16; unset: 2 between hosts, 1 on one. Rank
  /// 0's count for all. MUSTER_COLLECTIVE_STREAMS.
  std::optional<int> streams = {};

  /// Address space set aside on each rank for allocate_shared(); it costs memory only where it is
  /// used. All ranks of a host take the lowest. Unset: half of the host's memory.
  /// MUSTER_COLLECTIVE_ARENA_BYTES.
  std::optional<std::uint64_t> arena_bytes = {};

  /// A descriptor that ends connect()'s wait for the others when it turns readable, with kPeerLost:
  /// for a launcher that learns meanwhile that one of them will not come. It stays the caller's.
  int cancel = -1;
};

inline constexpr std::chrono::milliseconds kDefaultTimeout{60'000};
inline constexpr std::chrono::milliseconds kDefaultCallTimeout{600'000};

/// `given`, completed from the environment: what is set in `given` stands.
///
/// Errors: kConfiguration, naming the variable, its value and what to set.
/// Thread-safety: reads the environment; not while another thread changes it.
Result<Options> bootstrap_from_environment(Options given = {});

}  // namespace muster::collective
