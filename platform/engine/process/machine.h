// This machine as a node of the process engine: its CPUs and memory, how they are laid out, and its
// GPUs.
//
// Blocking: hwloc reads the machine for a few milliseconds (no PCI devices, no caches). The server's
// log lists what the machine does not offer.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/engine.h"
#include "engine/process/options.h"

namespace muster::engine {

// --- CPUs and memory
//
// What this machine has for the tasks of this process: CPUs, memory, and how they are laid out.
//
// Asks hwloc, for a few milliseconds: no PCI devices, no caches. Blocking.

struct Machine {
  /// The CPUs that this process may use (its affinity, its cpuset), or less where its control group
  /// bounds its time on them.
  int64_t cpu_milli = 0;
  /// Of the machine, of the NUMA nodes that this process may use, of its control group: the least.
  int64_t memory_bytes = 0;
  /// cpu.model, cpu.sockets, cpu.cores, numa.nodes, as far as this process may use them; what is
  /// not known is left out.
  std::map<std::string, std::string> labels;
  std::vector<Cpu> cpus;  ///< that this process may use; empty: unknown
};

Machine this_machine();

// --- the node
//
// This machine as a node of the process engine.
//
// Blocking: it looks at the machine, and says in the server's log what it does not offer.

Node this_node(const ProcessEngineOptions& options);

}  // namespace muster::engine
