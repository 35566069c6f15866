#include "cli/metrics/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/units.h"

namespace muster::cli::metrics {

namespace {

using base::Time;
using std::chrono::nanoseconds;
using std::chrono::seconds;

struct Range {
  double low = std::numeric_limits<double>::max();
  double high = std::numeric_limits<double>::lowest();
};

Range range_of(const Chart& chart) {
  Range range;
  for (const ChartSeries& series : chart.series) {
    for (const job::MetricPoint& point : series.points) {
      range.low = std::min(range.low, point.value);
      range.high = std::max(range.high, point.value);
    }
  }
  if (range.low > range.high) return {0, 1};
  // Values this large leave no room for a step beyond them.
  constexpr double kMost = 1e300;
  range.low = std::clamp(range.low, -kMost, kMost);
  range.high = std::clamp(range.high, -kMost, kMost);
  return range;
}

/// The least of 1, 2, 5, 10, 20, 50 ... (of sizes: of powers of 2) of which `most` reach so far.
double round_step(double length, int most, bool is_size) {
  const double least = length / most;
  if (is_size) return std::max(1.0, std::exp2(std::ceil(std::log2(least))));
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

bool is_size(MetricUnit unit) {
  return unit == MetricUnit::kBytes || unit == MetricUnit::kBytesPerSecond;
}

/// One value alone has no length.
void widen(Range& range) {
  if (range.high > range.low) return;
  const double by = range.low == 0 ? 1 : std::abs(range.low) / 2;
  range.low -= range.low > 0 ? std::min(by, range.low) : by;
  range.high += by;
}

constexpr std::array<int, 18> kTimeSteps{1,   2,   5,   10,   15,   20,   30,    60,    120,
                                         300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200};

seconds round_time_step(nanoseconds length, int most) {
  for (const int step : kTimeSteps) {
    if (length <= seconds(step) * most) return seconds(step);
  }
  const auto days = std::chrono::ceil<std::chrono::days>(length / most);
  return std::max<seconds>(days, std::chrono::days(1));
}

}  // namespace

std::vector<Chart> charts_of(const std::vector<job::MetricSeries>& series) {
  std::vector<Chart> charts;
  for (const job::MetricSeries& one : series) {
    auto found = std::find_if(charts.begin(), charts.end(),
                              [&](const Chart& chart) { return chart.title == one.metric; });
    if (found == charts.end()) {
      charts.push_back({.title = one.metric, .unit = unit_of(one.metric), .series = {}});
      found = std::prev(charts.end());
    }
    const std::string rank = one.rank ? " rank " + std::to_string(*one.rank) : "";
    found->series.push_back({.label = one.task + rank, .points = one.points});
  }
  return charts;
}

int ValueAxis::steps() const {
  return static_cast<int>(std::lround((high - low) / step));
}

double ValueAxis::place(double value) const {
  return std::clamp((value - low) / (high - low), 0.0, 1.0);
}

ValueAxis value_axis(const Chart& chart, int most_steps) {
  Range range = range_of(chart);
  if (range.low > 0 && range.low < range.high / 2) range.low = 0;
  if (range.high < 0 && range.high > range.low / 2) range.high = 0;
  widen(range);
  // Rounded outwards at both ends, it may take more steps than its length does.
  for (int most = std::max(most_steps, 1);; --most) {
    const double step = round_step(range.high - range.low, most, is_size(chart.unit));
    const ValueAxis axis{.low = std::floor(range.low / step + 1e-9) * step,
                         .high = std::ceil(range.high / step - 1e-9) * step,
                         .step = step};
    if (axis.steps() <= most_steps || most == 1) return axis;
  }
}

std::string label_of(const ValueAxis& axis, int index, MetricUnit unit) {
  const double value = axis.at(index);
  // What is left of a difference of two large numbers is no number of its own.
  return value_words(std::abs(value) < axis.step * 1e-9 ? 0 : value, unit);
}

double TimeAxis::place(Time time) const {
  const std::chrono::duration<double> since = time - begin;
  return std::clamp(since / std::chrono::duration<double>(length), 0.0, 1.0);
}

TimeAxis time_axis(const std::vector<Chart>& charts, std::optional<Time> begin, int most_steps) {
  std::optional<Time> first = begin;
  std::optional<Time> last;
  for (const Chart& chart : charts) {
    for (const ChartSeries& series : chart.series) {
      for (const job::MetricPoint& point : series.points) {
        first = std::min(first.value_or(point.time), point.time);
        last = std::max(last.value_or(point.time), point.time);
      }
    }
  }
  TimeAxis axis{.begin = first.value_or(Time())};
  axis.length = std::max<nanoseconds>(last.value_or(axis.begin) - axis.begin, seconds(1));
  axis.step = round_time_step(axis.length, std::max(most_steps, 1));
  return axis;
}

std::string label_of(seconds since_begin) {
  return since_begin.count() == 0 ? "0" : base::format_duration(since_begin);
}

}  // namespace muster::cli::metrics
