// The addresses and ports of the tasks of a gang.
//
// On one machine, every task has its own address in 127.0.0.0/8: names resolve to it inside the
// job, two jobs never use the same port, and Open MPI, which compares addresses, does not mistake a
// worker for the local host (docs/decisions/0001). On a network of the job's own, addresses are
// host names. On the nodes' own networks, the tasks of a node have its address and different ports.
//
// Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "launch/task_plan.h"

namespace muster::launch {

/// A task that needs an address.
struct NetworkPlace {
  std::string hostname;
  std::string node_address;  ///< kHosts; empty: it was not placed, and gets no address
};

struct GangNetwork {
  std::vector<std::string> addresses;  ///< by task
  std::vector<int> shell_ports;        ///< by task: the port of its remote shell
  /// The address that a remote shell binds; empty: the task's address.
  std::string bind;
  int rendezvous_port = 0;  ///< the port of rank 0 on the first worker's address
  /// By task: the port of its service. Each is unique, because some servers bind every address
  /// (TensorFlow's does).
  std::vector<int> service_ports;

  bool operator==(const GangNetwork&) const = default;
};

/// Depends only on the arguments, and each task's values only on that task and those before it:
/// additional tasks do not change earlier ones. Ports lie below the ephemeral range, so that no
/// outgoing connection of the machine uses them by chance.
GangNetwork make_network(const std::array<uint8_t, 8>& random, Reach reach,
                         const std::vector<NetworkPlace>& tasks);

/// The smallest network, of at least 256 addresses, that contains all of these: "10.1.2.0/24". MPI
/// is restricted to it, because hosts may have other networks that do not connect them (docker0).
/// Empty if an address is not IPv4, or if the addresses have almost nothing in common.
std::string common_network(const std::vector<std::string>& addresses);

}  // namespace muster::launch
