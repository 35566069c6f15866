#include "engine/process/cpu_choice.h"

#include <algorithm>
#include <map>

namespace muster::engine {

namespace {

struct Core {
  size_t threads = 0;
  std::vector<int> free;
};

/// The cores of one NUMA node.
struct CpuNode {
  std::map<int, Core> cores;
  int free = 0;
};

std::vector<CpuNode> nodes_of(const std::vector<Cpu>& cpus, const std::set<int>& taken) {
  std::map<int, CpuNode> nodes;
  for (const Cpu& cpu : cpus) {
    CpuNode& node = nodes[cpu.numa];
    Core& core = node.cores[cpu.core];
    ++core.threads;
    if (taken.contains(cpu.number)) continue;
    core.free.push_back(cpu.number);
    ++node.free;
  }
  std::vector<CpuNode> all;
  for (auto& [number, node] : nodes) all.push_back(std::move(node));
  return all;
}

/// Takes up to `left` CPUs of the node.
void take_from(const CpuNode& node, int& left, std::vector<int>& chosen) {
  std::vector<const Core*> parts;
  for (const auto& [number, core] : node.cores) {
    const bool is_whole = core.free.size() == core.threads;
    if (is_whole && static_cast<int>(core.threads) <= left) {
      chosen.insert(chosen.end(), core.free.begin(), core.free.end());
      left -= static_cast<int>(core.threads);
    } else {
      parts.push_back(&core);
    }
  }
  // A core that is in use already comes before one that would be cut up.
  std::stable_sort(parts.begin(), parts.end(), [](const Core* one, const Core* other) {
    return one->free.size() < other->free.size();
  });
  for (const Core* core : parts) {
    for (const int number : core->free) {
      if (left == 0) return;
      chosen.push_back(number);
      --left;
    }
  }
}

}  // namespace

std::vector<int> choose_cpus(const std::vector<Cpu>& cpus, const std::set<int>& taken, int count) {
  std::vector<CpuNode> nodes = nodes_of(cpus, taken);
  int free = 0;
  for (const CpuNode& node : nodes) free += node.free;
  if (count <= 0 || free < count) return {};
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const CpuNode& one, const CpuNode& other) { return one.free < other.free; });
  const auto fits = std::find_if(nodes.begin(), nodes.end(),
                                 [&](const CpuNode& node) { return node.free >= count; });
  std::vector<int> chosen;
  int left = count;
  if (fits != nodes.end()) {
    take_from(*fits, left, chosen);
  } else {
    std::for_each(nodes.rbegin(), nodes.rend(),
                  [&](const CpuNode& node) { take_from(node, left, chosen); });
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::string cpu_list(const std::vector<int>& numbers) {
  std::string list;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    list += (list.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (last > i) list += "-" + std::to_string(numbers[last]);
    i = last + 1;
  }
  return list;
}

}  // namespace muster::engine
