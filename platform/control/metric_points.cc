#include "control/metric_points.h"

#include <algorithm>

namespace muster::control {

namespace {

using base::Time;
using job::MetricPoint;
using job::MetricQuery;
using Points = std::vector<MetricPoint>;

/// REQUIRES: begin < end.
MetricPoint mean(Points::const_iterator begin, Points::const_iterator end) {
  MetricPoint result{.time = std::prev(end)->time, .value = 0};
  const auto count = static_cast<double>(end - begin);
  // Each divided first: the sum of some large values may be none that a double holds.
  for (auto at = begin; at != end; ++at) result.value += at->value / count;
  return result;
}

Time begin_of_interval(Time time, std::chrono::nanoseconds interval) {
  const auto since = time.time_since_epoch();
  auto rest = since % interval;
  if (rest < rest.zero()) rest += interval;
  return time - rest;
}

Points means_of_intervals(Points::const_iterator begin, Points::const_iterator end,
                          std::chrono::nanoseconds interval) {
  Points means;
  while (begin != end) {
    const Time start = begin_of_interval(begin->time, interval);
    const auto next = std::find_if(begin, end, [&](const MetricPoint& point) {
      return begin_of_interval(point.time, interval) != start;
    });
    means.push_back({.time = start, .value = mean(begin, next).value});
    begin = next;
  }
  return means;
}

/// Each `count` neighbours as one.
Points joined(Points::const_iterator begin, Points::const_iterator end, size_t count) {
  Points result;
  while (begin != end) {
    const auto next = begin + static_cast<ptrdiff_t>(
                                  std::min(count, static_cast<size_t>(std::distance(begin, end))));
    result.push_back(mean(begin, next));
    begin = next;
  }
  return result;
}

}  // namespace

Points asked_points(const Points& points, const MetricQuery& query) {
  // A clock that was set back leaves points out of order, so each is looked at.
  Points asked;
  std::copy_if(points.begin(), points.end(), std::back_inserter(asked),
               [&](const MetricPoint& point) {
                 return (!query.since || point.time >= *query.since) &&
                        (!query.until || point.time <= *query.until);
               });
  if (query.interval.count() > 0) {
    asked = means_of_intervals(asked.begin(), asked.end(), query.interval);
  }
  if (query.last && !asked.empty()) asked.erase(asked.begin(), std::prev(asked.end()));
  if (asked.size() <= job::kMostPoints) return asked;
  const size_t count = (asked.size() + job::kMostPoints - 1) / job::kMostPoints;
  return joined(asked.begin(), asked.end(), count);
}

void make_coarser(Points& points) {
  const auto older = points.begin() + static_cast<ptrdiff_t>(points.size() / 8 * 6);
  Points result = joined(points.begin(), older, 2);
  result.insert(result.end(), older, points.end());
  points = std::move(result);
}

}  // namespace muster::control
