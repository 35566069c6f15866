// What this machine has for the tasks of this process: CPUs, memory, and how they are laid out.
//
// Asks hwloc, for a few milliseconds: no PCI devices, no caches. Blocking.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace muster::engine {

struct Machine {
  /// The CPUs that this process may use (its affinity, its cpuset), or less where its control group
  /// bounds its time on them.
  int64_t cpu_milli = 0;
  /// Of the machine, of the NUMA nodes that this process may use, of its control group: the least.
  int64_t memory_bytes = 0;
  /// cpu.model, cpu.sockets, cpu.cores, numa.nodes, as far as this process may use them; what is
  /// not known is left out.
  std::map<std::string, std::string> labels;
};

Machine this_machine();

}  // namespace muster::engine
