// The addresses and ports of a gang on one machine.
//
// Every task has an address of its own in 127.0.0.0/8: names resolve to it inside the job, two jobs
// never want the same port, and Open MPI, which compares addresses, does not take a worker for the
// local host. See docs/decisions/0001.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace muster::launch {

struct GangNetwork {
  std::vector<std::string> addresses;  ///< by task
  int ssh_port = 0;
  int rendezvous_port = 0;  ///< where rank 0 gathers the others, on the first worker's address
  /// By task: where it serves others. Each its own, for servers there are that ask for an address
  /// and bind every one (TensorFlow's does).
  std::vector<int> service_ports;
};

/// Follows from `random` alone. Ports lie below the ephemeral range, so that no outgoing connection
/// of the machine holds one by chance.
GangNetwork make_network(const std::array<uint8_t, 8>& random, size_t tasks);

}  // namespace muster::launch
