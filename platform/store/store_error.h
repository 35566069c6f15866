// What every store refuses, in the same words.
#pragma once

#include "base/error.h"
#include "job/job.h"

namespace muster::store {

inline base::Error job_is_taken(const job::Job& job) {
  return {.code = base::ErrorCode::kConflict,
          .what = "the id, the name or the key of job '" + job.spec.name +
                  "' is taken in project '" + job.spec.project + "'"};
}

inline base::Error job_is_missing(const job::Job& job) {
  return {.code = base::ErrorCode::kNotFound, .what = "the store has no job " + job.id};
}

}  // namespace muster::store
