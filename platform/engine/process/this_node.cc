#include "engine/process/this_node.h"

#include <utility>

#include "base/log.h"
#include "engine/host_facts.h"
#include "engine/process/devices.h"
#include "engine/process/machine.h"
#include "engine/process/process_engine.h"

namespace muster::engine {

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

// Not beside the others: a program that knows its node is linked without what looks at machines.
ProcessEngine::ProcessEngine(base::EventLoop& loop, ProcessEngineOptions options)
    : ProcessEngine(loop, options, this_node(options)) {}

}  // namespace muster::engine
