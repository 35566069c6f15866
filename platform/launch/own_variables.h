// Variables that Muster tells a task its place by, where the job has some of these names itself.
// The job's win (task_environment.h); whoever submitted it is told what that takes away, for the
// variable may have come along from a shell in which another cluster was set up.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "job/machine_type.h"
#include "job/spec.h"

namespace muster::launch {

/// A sentence for each thing that the tasks of the job, or of some of its roles, are then not told
/// by Muster:
///
///   TF_CONFIG is the job's own: Muster's, which says where each task answers, is not set; leave it
///   out unless the program finds the others by itself
///
/// Not of those that many set on purpose, to tune what Muster says (PET_MAX_RESTARTS,
/// OMPI_MCA_btl_tcp_if_include). `runs_images`: of the engine; where it does, what came along from
/// the shell is not set (job/inherited.h), and `images` stand in for nothing.
std::vector<std::string> notes_on_own_variables(const job::JobSpec& spec,
                                                const job::ImageStandIns& images, bool runs_images);

}  // namespace muster::launch
