// This machine as a node of the process engine: its CPUs and memory, how they are laid out, and its
// GPUs.
//
// Blocking: hwloc reads the machine for a few milliseconds (no PCI devices, no caches). The
// server's log lists what the machine does not offer.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/engine.h"
#include "engine/process/options.h"

namespace muster::engine {

// --- CPUs and memory

struct Machine {
  /// The CPUs that this process may use (affinity, cpuset), or less if its control group limits its
  /// CPU time. In thousandths.
  int64_t cpu_milli = 0;
  /// The smallest of: the machine's memory, the memory of the NUMA nodes that this process may use,
  /// the limit of its control group.
  int64_t memory_bytes = 0;
  /// cpu.model, cpu.sockets, cpu.cores, numa.nodes: the parts that this process may use. Unknown
  /// values are absent.
  std::map<std::string, std::string> labels;
  std::vector<Cpu> cpus;  ///< that this process may use; empty: unknown
};

/// The part of this machine that this process may use.
Machine this_machine();

// --- the node

/// This machine as a node: as found, with the changes of `options`.
Node this_node(const ProcessEngineOptions& options);

}  // namespace muster::engine
