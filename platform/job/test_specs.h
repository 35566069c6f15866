// Valid specs and changes to them, for the tests of validate().
#pragma once

#include <functional>

#include "job/spec.h"

namespace muster::job {

/// What makes a valid spec wrong, or another valid one.
using SpecChange = std::function<void(JobSpec&)>;

inline JobSpec changed(JobSpec spec, const SpecChange& change) {
  change(spec);
  return spec;
}

inline JobSpec valid_mpi_spec(int workers) {
  return {.name = "dist",
          .kind = Kind::kMpi,
          .command = {"mpirun", "train"},
          .workers = workers,
          .folder = "/home/ada"};
}

}  // namespace muster::job
