// For tests: a valid sweep.
#pragma once

#include "sweep/spec.h"

namespace muster::sweep {

/// ASHA with the budgets 4, 16 and 64.
inline SweepSpec valid_sweep() {
  return {.job = {.name = "lr", .command = {"train"}, .folder = "/home/ada"},
          .parameters = {{"lr", {.low = 1e-4, .high = 1e-1, .log = true}},
                         {"batch", {.values = {"16", "32", "64"}}}},
          .method = Method::kAsha,
          .metric = "accuracy",
          .max_trials = 16,
          .max_concurrent = 4,
          .max_steps = 64,
          .max_rungs = 3};
}

}  // namespace muster::sweep
