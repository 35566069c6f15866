// Jobs as people read them: the table of `list`, the page of `get`, the row at the end of a follow.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "job/job.h"

namespace muster::cli {

/// NAME PROJECT KIND PHASE TASKS AGE DURATION REASON; TASKS counts those that run, of all. Where a
/// program tells how far it is, PROGRESS before the REASON.
std::string job_table(const std::vector<job::Job>& jobs, base::Time now);

/// Fields, tasks with how they ended, why it failed, what happened to it.
std::string job_page(const job::Job& job, base::Time now);

/// NAME PHASE EXIT DURATION, title and row.
std::string job_row(const job::Job& job, base::Time now);

// How a job runs in its image and on Slurm, in a few words.
//
// Pure.

/// "by ssh: the images have sshd and ssh; Open MPI 4.1.4". Empty where nothing is known.
std::string launch_words(const job::Job& job);

/// What a job asks for beside the usual: "writable root, SYS_PTRACE, 8Gi of /dev/shm". Empty where
/// that is nothing.
std::string container_words(const job::ContainerSpec& container);

/// "job 17, partition gpu, account vision": its last job there, as its events tell, and what was
/// said of it. Empty where there is nothing of either.
std::string slurm_words(const job::Job& job);

}  // namespace muster::cli
