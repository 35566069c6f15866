// The output of `muster-collective-bench --simulate`: the time of an all_reduce by algorithm, the
// fastest algorithm by ranks and size, and the scaling of training.
#pragma once

#include <cstdint>
#include <vector>

#include "network.h"

namespace muster::collective::model {

struct Request {
  std::vector<int> ranks = {8, 32, 128, 512, 4096};
  std::vector<double> gbits = {10, 100, 400};
  Network network = {.ranks_per_host = 4};  // with the bandwidth of each of `gbits`
  bool json = false;
};

/// Prints the simulation of all_reduces of `sizes` bytes on standard output. The numbers of ranks
/// are multiples of the ranks of a host.
void print_simulation(const Request& request, const std::vector<std::uint64_t>& sizes);

}  // namespace muster::collective::model
