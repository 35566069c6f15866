// muster-shim --sample: measures one task, again and again, and writes a line of metric_log.h each
// time to its standard output, until nobody reads there.
//
// A process of its own beside the shim, which must not be held up: walking the page tables of a
// task with a hundred gigabytes takes a second, and a GPU that has failed may hold whoever asks it
// for good. Then there are no samples, and the task goes on. Where a sample takes long, the next
// one comes later: measuring never takes more than a fiftieth of a CPU.
//
// The shim is linked to no library, so it cannot load the one that tells of GPUs; a program beside
// it, muster-gpu-sampler, is the same sampler with that. Where it is not there, or does not run
// (the image of a container has another libc), GPUs are not measured.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster::engine {

struct SamplerPlan {
  pid_t shim = 0;                                 ///< all below it is the task
  std::chrono::steady_clock::time_point started;  ///< when the task did
  std::chrono::milliseconds interval{0};
  std::string nvml;               ///< the library
  std::vector<std::string> gpus;  ///< as CUDA_VISIBLE_DEVICES names them

  bool operator==(const SamplerPlan&) const = default;
};

/// The arguments behind "--sample", and back. kInvalid: they are none.
std::vector<std::string> arguments_of(const SamplerPlan& plan);
base::Result<SamplerPlan> read_sampler_plan(const std::vector<std::string>& arguments);

/// By the names of job/metric.h.
using LookAtGpus = std::function<std::vector<std::pair<std::string, double>>()>;

/// `gpus` may be empty. Returns an exit code.
int run_sampler(const SamplerPlan& plan, LookAtGpus gpus = {});

}  // namespace muster::engine
