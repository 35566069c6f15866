// Which CPUs a task is bound to, where claims of whole CPUs are bound (`tasks.cpu: bind`): CPUs that
// no other bound task has, close to each other.
//
// Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::engine {

/// A CPU as the kernel numbers it: a hardware thread.
struct Cpu {
  int number = 0;
  int core = 0;  ///< hardware threads of one core have the same number
  int numa = 0;  ///< the node of memory that is near

  bool operator==(const Cpu&) const = default;
};

/// `count` of `cpus` that are not `taken`, in ascending order; empty: fewer are free.
///
/// They are on one NUMA node if a node has enough free CPUs: on the fullest such node, which leaves
/// the others to wide tasks. Otherwise the emptiest nodes come first. Within a node whole cores
/// come first, so that tasks share a core only if necessary.
std::vector<int> choose_cpus(const std::vector<Cpu>& cpus, const std::set<int>& taken, int count);

/// "0-3,8", as the kernel reads and writes it.
std::string cpu_list(const std::vector<int>& numbers);

}  // namespace muster::engine
