// The grounds of the process engine: tasks in sandboxes, and without.
#include "engine/conformance.h"
#include "engine/process/process_engine.h"

namespace muster::engine {

namespace {

std::unique_ptr<Engine> make_engine(base::EventLoop& loop, BenchOptions options) {
  ProcessEngineOptions how{.folder = options.folder,
                           .shim = MUSTER_SHIM,
                           .declared_gpus = DeclaredGpus{.count = 4, .model = "A100"},
                           .hidden = options.hidden(),
                           .storage_folder = options.storage(),
                           .unpack_tree = std::move(options.unpack_tree)};
  how.first_sample = options.first_sample;
  how.sample_interval = options.sample_interval;
  if (!options.nvml.empty()) how.nvml = options.nvml;
  return std::make_unique<ProcessEngine>(loop, std::move(how));
}

Ground process_ground(std::string name, Sandbox sandbox) {
  Ground made{.name = std::move(name), .sandbox = sandbox};
  made.make_engine = make_engine;
  made.placed = [](TaskPlan plan, const std::filesystem::path&) { return plan; };
  made.know = [](launch::Site&, const job::Job&) {};
  made.is_sandbox = made.is_set_apart = sandbox != Sandbox::kNone;
  return made;
}

}  // namespace

std::vector<Ground> grounds() {
  return {process_ground("ProcessSandboxed", Sandbox::kBubblewrap),
          process_ground("ProcessUnsandboxed", Sandbox::kNone)};
}

}  // namespace muster::engine
