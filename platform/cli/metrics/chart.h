// A chart of metrics: its series, its axes, and its drawing in a terminal (with braille dots if the
// terminal shows Unicode, otherwise with one letter for each series):
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
// or as a standalone SVG file without scripts, fonts and links, readable on light and on dark
// backgrounds. Each series has its own marker or dash pattern, so that the series can be
// distinguished without colour.
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

/// A chart for each metric, in the order of their first occurrence in `series`.
std::vector<Chart> charts_of(const std::vector<job::MetricSeries>& series);

/// The value axis, from `low` to `high`; both are multiples of the step.
struct ValueAxis {
  double low = 0;
  double high = 1;
  double step = 1;

  int steps() const;
  /// 0 at `low`, 1 at `high`; values outside are clamped.
  double place(double value) const;
  double at(int index) const { return low + step * index; }
};

/// Round numbers that enclose all values of the chart, with at most `most_steps` steps; for sizes,
/// round powers of 2. The axis begins at 0 unless that would squeeze the values into its upper
/// half.
ValueAxis value_axis(const Chart& chart, int most_steps);

/// The label of a grid line.
std::string label_of(const ValueAxis& axis, int index, MetricUnit unit);

/// The time axis; its labels count from the beginning.
struct TimeAxis {
  base::Time begin;
  std::chrono::nanoseconds length{1};  ///< greater than 0
  std::chrono::seconds step{1};

  /// 0 at the beginning, 1 at the end.
  double place(base::Time time) const;
};

/// From `begin` (or the first value, if that is earlier) to the last value of all charts.
TimeAxis time_axis(const std::vector<Chart>& charts, std::optional<base::Time> begin,
                   int most_steps);

/// "0", "30s", "1h30m".
std::string label_of(std::chrono::seconds since_begin);

/// The charts, one below another, with the same time axis, starting at `begin`. `title` is plain
/// text.
std::string chart_svg(const std::vector<Chart>& charts, std::optional<base::Time> begin,
                      std::string_view title);

struct ChartLook {
  size_t columns = 80;
  size_t rows = 12;  ///< the height of the plot, without title, axis and legend
  bool unicode = true;
  bool colour = false;
};

/// The charts, one below another, with the same time axis, starting at `begin`. Every line ends
/// with a newline and is at most `look.columns` wide, except on very narrow terminals. Labels are
/// not escaped: the caller makes them safe for a terminal.
std::string chart_text(const std::vector<Chart>& charts, std::optional<base::Time> begin,
                       const ChartLook& look);

}  // namespace muster::cli::metrics
