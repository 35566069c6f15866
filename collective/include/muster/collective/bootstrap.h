// How ranks find each other: the rank, the size of the world, and the address where the ranks meet.
//
//   MUSTER_RENDEZVOUS       host:port where rank 0 listens while the ranks join
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

/// The arguments of Communicator::connect(). bootstrap_from_environment() sets the empty fields.
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

  /// The name of this rank's host in messages of other ranks; empty: its host name.
  std::string host = {};

  /// Ranks with the same id are on one host and share memory. Empty: determined from the system
  /// (the system's boot, network namespace and user). MUSTER_COLLECTIVE_HOST_ID.
  std::string host_id = {};

  /// The time limit for ranks that do not reach the rendezvous (kDefaultTimeout if unset), and for
  /// ranks that are alive but do not enter a call (kDefaultCallTimeout).
  std::optional<std::chrono::milliseconds> timeout = {};

  /// The time without an answer after which an awaited rank counts as stopped or disconnected; 0.7
  /// s on one host (and 20 ms more for each rank beyond its processors) and 5 s between hosts if
  /// unset. On a host with more runnable threads than processors, 20 ms more for each of them.
  /// MUSTER_COLLECTIVE_SILENCE, in seconds.
  std::optional<std::chrono::milliseconds> silence = {};

  /// The transport: "auto", "shm", "tcp", or a plug-in, "mpi" or "nccl". Rank 0's value applies to
  /// all ranks. MUSTER_COLLECTIVE_TRANSPORT.
  std::string transport = {};

  /// Over TCP: "auto", "direct", "ring", "rabenseifner" or "doubling". Rank 0's value applies to
  /// all. MUSTER_COLLECTIVE_ALGORITHM.
  std::string algorithm = {};

  /// The number of TCP connections between two ranks, 1 to 16; unset: 1. Rank 0's value applies to
  /// all ranks. MUSTER_COLLECTIVE_STREAMS.
  std::optional<int> streams = {};

  /// The address space of each rank for allocate_shared(); it occupies memory only where it is
  /// used. All ranks of a host use the lowest value. Unset: half of the host's memory, at most 64
  /// GiB, at most 16 TiB for all ranks of the world together (in a world of more than 1,024 ranks:
  /// 16 GiB for each), and in a group of some of the ranks at most 4 GiB.
  /// MUSTER_COLLECTIVE_ARENA_BYTES.
  std::optional<std::uint64_t> arena_bytes = {};

  /// A descriptor whose readability ends the wait of connect() with kPeerLost, for launchers that
  /// detect that a rank will not join. It belongs to the caller.
  int cancel = -1;
};

inline constexpr std::chrono::milliseconds kDefaultTimeout{60'000};
inline constexpr std::chrono::milliseconds kDefaultCallTimeout{600'000};

/// Returns `given` with its empty fields set from the environment.
///
/// Errors: kConfiguration, naming the variable, its value and what to set.
/// Thread-safety: reads the environment, which no other thread may change meanwhile.
Result<Options> bootstrap_from_environment(Options given = {});

}  // namespace muster::collective
