// The part of validate() that is about volumes: where they come from, and where tasks find them.
//
// Pure.
#pragma once

#include "job/checker.h"
#include "job/spec.h"

namespace muster::job {

void check_volumes(const JobSpec& spec, Checker& check);

}  // namespace muster::job
