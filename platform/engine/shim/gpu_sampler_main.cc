// muster-gpu-sampler ...: measures a task with GPUs (shim/sampler.h).
#include "engine/shim/sampler.h"

int main(int argc, char** argv) {
  const auto plan = muster::engine::read_sampler_plan({argv + 1, argv + argc});
  if (!plan) return 2;
  const muster::engine::GpuUsage gpus(plan->nvml, plan->gpus);
  return muster::engine::run_sampler(*plan, [&gpus] { return gpus.look(); });
}
