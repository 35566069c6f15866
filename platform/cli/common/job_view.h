// Jobs as text for people: the table of `list`, the page of `get`, the row at the end of `logs -f`.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "job/job.h"

namespace muster::cli {

/// The usual columns of `muster list` (row_view.h).
std::string job_table(const std::vector<job::Job>& jobs, base::Time now);

/// Fields, tasks with their exit codes, the failure, the events. `engine`: of the server; empty: not
/// known.
std::string job_page(const job::Job& job, base::Time now, std::string_view engine = {});

/// NAME PHASE EXIT DURATION, title and row.
std::string job_row(const job::Job& job, base::Time now);

/// "by ssh: the images have sshd and ssh; Open MPI 4.1.4". Empty if unknown.
std::string launch_words(const job::Job& job);

/// Container settings that differ from the defaults: "writable root, SYS_PTRACE, 8Gi of /dev/shm". Empty
/// if there are none.
std::string container_words(const job::ContainerSpec& container);

/// "job 17, partition gpu, account vision": the last Slurm job from the events, and the
/// Slurm settings of the spec. Empty if there are neither.
std::string slurm_words(const job::Job& job);

}  // namespace muster::cli
