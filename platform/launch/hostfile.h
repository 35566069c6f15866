// The hosts of an MPI job as its launcher reads them.
//
// Pure.
#pragma once

#include <string>
#include <vector>

namespace muster::launch {

struct SlotHost {
  std::string name;
  int slots = 1;  ///< how many ranks it takes
};

/// Open MPI: "name slots=2".
std::string open_mpi_hostfile(const std::vector<SlotHost>& hosts);
/// Intel MPI and MPICH: "name:2".
std::string hydra_hostfile(const std::vector<SlotHost>& hosts);

}  // namespace muster::launch
