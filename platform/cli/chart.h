// What a chart shows, and how its axes are divided: shared by the one in a terminal (chart_text.h)
// and the one in a file (chart_svg.h).
//
// Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/metric_words.h"
#include "job/metric.h"

namespace muster::cli {

struct ChartSeries {
  std::string label;
  std::vector<job::MetricPoint> points;  ///< oldest first
};

/// One metric, with a series for each task or rank.
struct Chart {
  std::string title;
  MetricUnit unit = MetricUnit::kNumber;
  std::vector<ChartSeries> series;
};

/// A chart for each metric, in the order in which `series` has them.
std::vector<Chart> charts_of(const std::vector<job::MetricSeries>& series);

/// The axis of values: from `low` to `high`, both of them a number of steps from 0.
struct ValueAxis {
  double low = 0;
  double high = 1;
  double step = 1;

  int steps() const;
  /// 0 at `low`, 1 at `high`; of values beyond them, that end.
  double place(double value) const;
  double at(int index) const { return low + step * index; }
};

/// Round numbers around all values of the chart, with at most so many steps; of sizes, round powers
/// of 2. It begins at 0 where that does not squeeze the values into its upper half.
ValueAxis value_axis(const Chart& chart, int most_steps);

/// As it stands beside a line of the grid.
std::string label_of(const ValueAxis& axis, int index, MetricUnit unit);

/// The axis of time, told from its beginning on.
struct TimeAxis {
  base::Time begin;
  std::chrono::nanoseconds length{1};  ///< greater than 0
  std::chrono::seconds step{1};

  /// 0 at the beginning, 1 at the end.
  double place(base::Time time) const;
};

/// From `begin` (or the first value, where that is earlier) to the last value of all the charts.
TimeAxis time_axis(const std::vector<Chart>& charts, std::optional<base::Time> begin,
                   int most_steps);

/// "0", "30s", "1h30m".
std::string label_of(std::chrono::seconds since_begin);

}  // namespace muster::cli
