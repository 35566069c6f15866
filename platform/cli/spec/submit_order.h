// The order in which jobs are submitted that wait for each other: the server must have a job before
// another can wait for it.
//
// Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "job/spec.h"

namespace muster::cli::spec {

/// Indexes into `specs`, each after the indexes of the jobs that it waits for; otherwise in their
/// order. Names of other jobs are left to the server.
///
/// Errors: kInvalid: jobs that wait for each other in a circle, which is in the message.
base::Result<std::vector<size_t>> submit_order(const std::vector<const job::JobSpec*>& specs);

}  // namespace muster::cli::spec
