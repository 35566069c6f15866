// The part of validate() that is about secrets: what they are called, and where a task finds them.
//
// Pure.
#pragma once

#include "job/checker.h"
#include "job/spec.h"

namespace muster::job {

void check_secrets(const JobSpec& spec, Checker& check);

}  // namespace muster::job
