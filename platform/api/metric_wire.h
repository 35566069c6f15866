// What was measured of a job, as it goes over the wire:
//
//   {"series": [{"metric": "loss", "task": "worker-0", "rank": 0,
//                "points": [{"time": "2026-01-31T12:00:00Z", "value": 0.25}, ...]}, ...]}
//
// and the query for it: ?metric=loss&metric=accuracy&task=worker-0&rank=0&since=TIME&until=TIME
// &interval=30s&last=true. An interval is a number with its unit, or of milliseconds.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/query_parameters.h"
#include "base/result.h"
#include "job/metric.h"

namespace muster::api {

std::string metrics_to_json(const std::vector<job::MetricSeries>& series);
/// kInvalid: it is no such document.
base::Result<std::vector<job::MetricSeries>> metrics_from_json(std::string_view text);

Parameters metric_query_to_parameters(const job::MetricQuery& query);
/// kInvalid: with a fault for each parameter that is wrong or unknown.
base::Result<job::MetricQuery> metric_query_from_parameters(const Parameters& parameters);

}  // namespace muster::api
