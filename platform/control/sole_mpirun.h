// Whether a job is one call of mpirun and nothing else, and what that asks for.
//
// Pure.
#pragma once

#include <optional>

#include "job/spec.h"

namespace muster::control {

struct SoleMpirun {
  std::optional<int> ranks;   ///< -np; nothing: it does not say, or says it more than once
  bool places_ranks = false;  ///< hosts, a hostfile of its own, a mapping: where ranks go is meant
};

/// Nothing: the job's command is a script, an image's own program, or not to be understood for
/// sure. Such a job may run several programs, here and there.
std::optional<SoleMpirun> sole_mpirun(const job::JobSpec& spec);

}  // namespace muster::control
