// The part of validate() that is about when and where a job runs.
//
// Pure.
#pragma once

#include "job/checker.h"
#include "job/spec.h"

namespace muster::job {

/// `field`: where they stand, "resources".
void check_resources(const Resources& resources, const std::string& field, Checker& check);
void check_scheduling(const JobSpec& spec, Checker& check);

}  // namespace muster::job
