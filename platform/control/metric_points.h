// The values of a series as somebody asked for them: of a time, an interval, and never too many.
// Also how much of a file of metrics is read at once.
//
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "job/metric.h"

namespace muster::control {

/// Bytes of a file of metrics to read in one turn of the loop: about a millisecond.
inline constexpr int64_t kMetricPiece = 128 << 10;

/// Of `points`, oldest first, those of the query's time. With an interval, the mean of each that
/// has values, at the time that it begins (intervals are counted from the epoch, so those of all
/// series are the same). Where there are more than job::kMostPoints, neighbours become their mean,
/// at the time of the last of them.
std::vector<job::MetricPoint> asked_points(const std::vector<job::MetricPoint>& points,
                                           const job::MetricQuery& query);

/// Makes `points` fewer, and the older ones coarser: of the first three quarters, each two
/// neighbours become their mean.
void make_coarser(std::vector<job::MetricPoint>& points);

}  // namespace muster::control
