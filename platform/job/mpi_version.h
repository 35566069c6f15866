// Which MPI an mpirun belongs to, by what `mpirun --version` prints.
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

/// From what it printed. nullopt: it is none that Muster knows.
std::optional<MpiVersion> read_mpi_version(std::string_view output);

}  // namespace muster::job
