// Where the tasks of a gang answer: addresses and ports.
//
// On one machine every task has an address of its own in 127.0.0.0/8: names resolve to it inside
// the job, two jobs never want the same port, and Open MPI, which compares addresses, does not take
// a worker for the local host (docs/decisions/0001). On a network of the job's own, addresses are
// host names. On networks that are the nodes' own, tasks of one node have its address and differ by
// their ports.
//
// Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "launch/task_plan.h"

namespace muster::launch {

/// A task that is to be reached.
struct NetworkPlace {
  std::string hostname;
  std::string node_address;  ///< kHosts; empty: it was not placed, and has no address
};

struct GangNetwork {
  std::vector<std::string> addresses;  ///< by task
  std::vector<int> shell_ports;        ///< by task: where its remote shell answers
  std::string bind;                    ///< what that is bound to; empty: the task's address
  int rendezvous_port = 0;  ///< where rank 0 gathers the others, on the first worker's address
  /// By task: where it serves others. Each its own, for servers there are that ask for an address
  /// and bind every one (TensorFlow's does).
  std::vector<int> service_ports;

  bool operator==(const GangNetwork&) const = default;
};

/// Follows from its arguments alone, and what a task gets from it and those before it: more tasks
/// behind them have no other addresses and ports. Ports lie below the ephemeral range, so that no
/// outgoing connection of the machine holds one by chance.
GangNetwork make_network(const std::array<uint8_t, 8>& random, Reach reach,
                         const std::vector<NetworkPlace>& tasks);

/// The smallest network, of 256 addresses or more, that has all of these: "10.1.2.0/24". It is what
/// MPI is told to use of the networks of its hosts, which may have others that lead nowhere
/// (docker0). Empty where one is no IPv4 address, or where they have next to nothing in common.
std::string common_network(const std::vector<std::string>& addresses);

}  // namespace muster::launch
