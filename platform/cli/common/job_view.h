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

}  // namespace muster::cli
