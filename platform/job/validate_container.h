// The part of validate() that is about containers: who runs in an image, who fetches it, how far
// its containers are set apart, and how ranks are started in them.
//
// Pure.
#pragma once

#include "job/checker.h"
#include "job/spec.h"

namespace muster::job {

void check_container(const JobSpec& spec, Checker& check);

}  // namespace muster::job
