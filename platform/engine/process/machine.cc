#include "engine/process/machine.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "base/log.h"
#include "engine/host_facts.h"
#include "engine/process/cgroup_limits.h"
#include "engine/process/devices.h"
#include "engine/process/process_engine.h"

namespace muster::engine {

// --- CPUs and memory

namespace {

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};

using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

/// The CPUs and memory that this process may use; null: hwloc failed.
Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  // The x86 component of hwloc would move this process to each CPU in turn.
  hwloc_topology_set_components(raw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE}) {
    hwloc_topology_set_type_filter(raw, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  }
  hwloc_topology_set_flags(
      raw, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING);
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

int count(const Topology& topology, hwloc_obj_type_t type) {
  return std::max(hwloc_get_nbobjs_by_type(topology.get(), type), 0);
}

/// The machine's memory or, if a cpuset restricts this process to some NUMA nodes, the memory of
/// these nodes. hwloc's sum is used only then: the nodes of a virtual machine may report less
/// memory than the machine has.
int64_t usable_memory(const Topology& topology) {
  const int64_t all = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  if (!topology) return all;
  const bool restricted =
      hwloc_bitmap_isequal(hwloc_topology_get_complete_nodeset(topology.get()),
                           hwloc_topology_get_allowed_nodeset(topology.get())) == 0;
  const auto local = static_cast<int64_t>(hwloc_get_root_obj(topology.get())->total_memory);
  return restricted && local > 0 ? std::min(all, local) : all;
}

std::map<std::string, std::string> labels_of(const Topology& topology) {
  std::map<std::string, std::string> labels;
  const auto label = [&](const char* name, hwloc_obj_type_t type) {
    if (const int number = count(topology, type)) labels[name] = std::to_string(number);
  };
  label("cpu.sockets", HWLOC_OBJ_PACKAGE);
  label("cpu.cores", HWLOC_OBJ_CORE);
  label("numa.nodes", HWLOC_OBJ_NUMANODE);
  const hwloc_obj_t socket = hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, 0);
  const char* model = socket == nullptr ? nullptr : hwloc_obj_get_info_by_name(socket, "CPUModel");
  if (model != nullptr) labels["cpu.model"] = model;
  return labels;
}

std::vector<Cpu> cpus_of(const Topology& topology) {
  std::vector<Cpu> cpus;
  for (int i = 0; i < count(topology, HWLOC_OBJ_PU); ++i) {
    const hwloc_obj_t unit =
        hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_PU, static_cast<unsigned>(i));
    const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(topology.get(), HWLOC_OBJ_CORE, unit);
    const int node = unit->nodeset == nullptr ? 0 : hwloc_bitmap_first(unit->nodeset);
    cpus.push_back({.number = static_cast<int>(unit->os_index),
                    .core = static_cast<int>(core == nullptr ? i : core->logical_index),
                    .numa = std::max(node, 0)});
  }
  return cpus;
}

}  // namespace

Machine this_machine() {
  const Topology topology = load_topology();
  if (!topology)
    base::log_warning("hwloc cannot read the topology of this machine: its node has no labels");
  const int cpus = topology ? count(topology, HWLOC_OBJ_PU) : 0;
  // hardware_concurrency() respects the affinity mask, too.
  Machine machine{.cpu_milli = 1000LL * (cpus > 0 ? cpus : std::thread::hardware_concurrency()),
                  .memory_bytes = usable_memory(topology)};
  const CgroupLimits limits = cgroup_limits();
  if (limits.cpu_milli) machine.cpu_milli = std::min(machine.cpu_milli, *limits.cpu_milli);
  if (limits.memory_bytes) {
    machine.memory_bytes = std::min(machine.memory_bytes, *limits.memory_bytes);
  }
  if (topology) machine.labels = labels_of(topology);
  if (topology) machine.cpus = cpus_of(topology);
  return machine;
}

// --- the node

namespace {

void set_gpus(Node& node, const std::optional<DeclaredGpus>& declared) {
  if (declared) {
    node.gpus = declared->count;
    node.gpu_model = declared->model;
    node.gpu_memory_bytes = declared->memory_bytes;
    return;
  }
  OfferedGpus offered = offer_gpus();
  for (const std::string& left_out : offered.left_out) {
    base::log_warning("not offered: " + left_out);
  }
  node.gpus = offered.count;
  node.gpu_model = std::move(offered.model);
  node.gpu_memory_bytes = offered.memory_bytes;
  node.gpu_names = std::move(offered.names);
}

}  // namespace

Node this_node(const ProcessEngineOptions& options) {
  Machine machine = this_machine();
  Node node{.name = host_name(),
            .pool = options.node_pool,
            .task_slots = options.task_slots,
            .cpu_milli = machine.cpu_milli,
            .memory_bytes = machine.memory_bytes,
            .topology = options.topology,
            .labels = options.labels};
  node.labels.merge(machine.labels);
  set_gpus(node, options.declared_gpus);
  return node;
}

// Defined here and not in process_engine.cc, so that muster-node, which gets the description of its
// node from Slurm, links without hwloc.
ProcessEngine::ProcessEngine(base::EventLoop& loop, ProcessEngineOptions options)
    : ProcessEngine(loop, options, this_node(options)) {}

}  // namespace muster::engine
