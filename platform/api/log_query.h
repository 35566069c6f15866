// A LogQuery as the query of a URL, both ways.
//
// Pure; thread-safe.
#pragma once

#include "api/query_parameters.h"
#include "base/result.h"
#include "job/log_record.h"

namespace muster::api {

Parameters log_query_to_parameters(const job::LogQuery& query);

/// kInvalid: with a fault for each parameter that is wrong or unknown.
base::Result<job::LogQuery> log_query_from_parameters(const Parameters& parameters);

}  // namespace muster::api
