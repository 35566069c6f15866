// Objects that are listed like jobs: arrays, sweeps and schedules, each as one row. Also the
// examination of all jobs by several threads.
//
// On the EventLoop's thread.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "api/job_query.h"
#include "api/job_rows.h"
#include "control/controller.h"
#include "job/schedule.h"
#include "server/sight.h"
#include "sweep/sweep.h"

namespace muster::server {

struct ListedObject {
  job::JobFacts listed;  ///< what the query filters and sorts by
  /// Called if the object is on the page. Contains only what the caller may see.
  std::function<api::JobRow()> row;
};

/// Calls `visit` for each object that the caller sees, in any order.
void each_listed_object(const control::Controller& controller, const Sight& sight,
                        const std::function<void(const ListedObject&)>& visit);

/// A page is kept in memory until the client has read it, so a page of large jobs has fewer of
/// them, but at least one. Returns whether jobs were left off.
bool leave_off_what_is_too_much(std::vector<const job::Job*>& jobs);

/// The row of an object. REQUIRES: the caller sees it.
api::JobRow row_for(const control::ArrayFacts& array);
api::JobRow row_for(const sweep::SweepRecord& record, const sweep::SweepSummary& sweep);
api::JobRow row_for(const job::Schedule& schedule);
/// The row of a job, as the caller may see it, with the progress of its program.
api::JobRow row_for(const control::Controller& controller, const Sight& sight, const job::Job& job);

/// A thread costs as much as the examination of some hundred jobs.
inline constexpr size_t kJobsOfThread = 20'000;

/// How many parts (JobTable::each_job_of_part()) the jobs of the server are examined in.
size_t parts_of_jobs(const control::Controller& controller);
/// Calls `examine` for each part from 0 on, each on a thread of its own if there are several, and
/// returns when all parts are examined.
void examine_parts(size_t parts, const std::function<void(size_t part)>& examine);

}  // namespace muster::server
