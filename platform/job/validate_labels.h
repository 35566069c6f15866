// The part of validate() that is about labels and annotations.
//
// Pure.
#pragma once

#include "job/checker.h"
#include "job/spec.h"

namespace muster::job {

void check_labels(const JobSpec& spec, Checker& check);

}  // namespace muster::job
