// How much text a spec is: jobs are kept in memory and told whole, so what is bounded is this.
//
// Pure.
#pragma once

#include <cstddef>

#include "job/spec.h"

namespace muster::job {

/// The bytes of everything in `spec` that may be as long as one likes.
size_t text_size(const JobSpec& spec);

}  // namespace muster::job
