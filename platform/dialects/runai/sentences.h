// The sentences of Run:AI that scripts look for, letter by letter, as errors and as texts.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "dialects/runai/commands.h"
#include "job/job.h"

namespace muster::dialects::runai {

/// The faults of the command line, with where its help is.
base::Error usage_error_of(const Asked& asked);

base::Error no_such_project(const std::string& project);
/// Of what shows a job. And of what deletes one, whose placeholder differs by its hyphen.
base::Error no_such_job(const std::string& job, const std::string& project);
base::Error no_such_job_to_delete(const std::string& job, const std::string& project);
/// Of suspend and resume.
base::Error job_not_found(const std::string& job);
/// With the pods that there are.
base::Error no_such_pod(const std::string& pod, const job::Job& job);
/// With how it is instead.
base::Error pod_not_running(const job::Job& job, const job::Task& task);
/// Nothing of the job was ever started, so that it printed nothing.
base::Error nothing_printed_yet(const job::Job& job);
base::Error start_timed_out(const job::Job& job);
/// Run:AI has it and this platform does not: `what`, and what to do.
base::Error not_here(const std::string& what, const std::string& advice);

/// No program here has a terminal of its own until a shell is opened beside it.
std::string no_terminal(const std::string& pod);

}  // namespace muster::dialects::runai
