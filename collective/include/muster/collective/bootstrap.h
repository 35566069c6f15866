// How a rank finds the others: its place in the world, and where the world meets.
//
//   MUSTER_RENDEZVOUS       host:port where rank 0 listens while the world gathers
//   MUSTER_RENDEZVOUS_KEY   the key of the job in hex, 16 bytes or more; needed with the above
//   MUSTER_RANK, MUSTER_WORLD_SIZE
//   MUSTER_COLLECTIVE_TIMEOUT   seconds, may have a fraction; 60 by default
//
// Without MUSTER_RANK the place comes from the launcher: OMPI_COMM_WORLD_RANK/SIZE, PMI_RANK/SIZE,
// SLURM_PROCID/NTASKS, RANK/WORLD_SIZE, the first pair that is there. Under an mpirun that started
// all its ranks on one host nothing needs to be set: they meet by a private file. With none of
// these variables the world is this one process.
#pragma once

#include <chrono>
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

  /// How long to wait for a rank that does not come, or does not answer; kDefaultTimeout if unset.
  std::optional<std::chrono::milliseconds> timeout = {};
};

inline constexpr std::chrono::milliseconds kDefaultTimeout{60'000};

/// `given`, completed from the environment: what is set in `given` stands.
///
/// Errors: kConfiguration, naming the variable, its value and what to set.
/// Thread-safety: reads the environment; not while another thread changes it.
Result<Options> bootstrap_from_environment(Options given = {});

}  // namespace muster::collective
