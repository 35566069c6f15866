// What a job has of the shell that it was submitted from, without anybody having asked for it: a
// program that runs on the machine itself needs it to be found; in an image, which has a PATH, a
// home and a folder of its own, it would only be in the way.
//
// It is kept among the annotations of a job that names an image, for whoever starts the job knows
// best whether images are run. Pure.
#pragma once

#include <set>
#include <string>

#include "job/spec.h"

namespace muster::job {

/// Notes that these variables of the spec's environment, or its folder, are the shell's. Nothing
/// where no image is named.
void note_inherited(const std::set<std::string>& variables, bool folder, JobSpec& spec);

/// For a folder that is somebody's choice after all.
void forget_inherited_folder(JobSpec& spec);

std::set<std::string> inherited_variables(const JobSpec& spec);
bool inherits_folder(const JobSpec& spec);

}  // namespace muster::job
