// The part of validate() that is about what each role runs: its image, its words, its environment,
// and which roles the kind of the job has.
//
// Pure.
#pragma once

#include "job/checker.h"
#include "job/spec.h"

namespace muster::job {

/// Images and words, and that no task would have nothing to run.
void check_programs(const JobSpec& spec, Checker& check);
/// How many tasks of which role, and what belongs to no task of this kind.
void check_shape(const JobSpec& spec, Checker& check);
void check_environments(const JobSpec& spec, Checker& check);

}  // namespace muster::job
