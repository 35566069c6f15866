// What a chart shows and how its axes are divided; and the chart itself, in a terminal (braille
// dots where letters may be more than ASCII, else one letter a series):
//
//   loss
//     1 ┤⠉⠒⠤⢄⣀
//       │     ⠉⠒⠢⢄⡀
//   0.5 ┤         ⠈⠉⠒⠤⣀⡀
//       │              ⠈⠑⠒⠤⢄⡀
//     0 ┤
//       └┬────────────┬───────
//        0            20s
//     main  0.2  (0.2 to 1)
//
// or as an SVG file of its own: no script, no font, nothing from elsewhere; readable on light and
// on dark ground. Each of several series has a marker or a pattern of dashes of its own; colour
// repeats the same.
//
// Pure: values in, text out.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/common/format.h"
#include "job/metric.h"

namespace muster::cli::metrics {

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

/// The charts one below the other on one axis of time, from `begin` on. `title` is plain text.
std::string chart_svg(const std::vector<Chart>& charts, std::optional<base::Time> begin,
                      std::string_view title);

struct ChartLook {
  size_t columns = 80;
  size_t rows = 12;  ///< of the plot, without title, axis and legend
  bool unicode = true;
  bool colour = false;
};

/// The charts one below the other on one axis of time, from `begin` on. Every line ends with a
/// newline, and none is wider than `look.columns`, but for a terminal that is hardly there.
/// Labels come as they are: whoever shows them on a terminal makes them harmless before.
std::string chart_text(const std::vector<Chart>& charts, std::optional<base::Time> begin,
                       const ChartLook& look);

}  // namespace muster::cli::metrics
