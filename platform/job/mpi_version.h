// The MPI of an mpirun, detected in the output of `mpirun --version`.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::job {

enum class MpiKind { kOpenMpi, kMpich, kIntel };

struct MpiVersion {
  MpiKind kind = MpiKind::kOpenMpi;
  int major = 0;        ///< 4, 5, 2021
  std::string version;  ///< "4.1.4"

  bool operator==(const MpiVersion&) const = default;
};

/// "Open MPI 4.1.4", "MPICH 4.0.2", "Intel MPI 2021.13".
std::string to_string(const MpiVersion& version);

/// Parses the output. nullopt: an unknown MPI.
std::optional<MpiVersion> read_mpi_version(std::string_view output);

}  // namespace muster::job
