#include "cli/metrics/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"

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
  // Beyond this value, there is no room for a step above the largest value.
  constexpr double kMost = 1e300;
  range.low = std::clamp(range.low, -kMost, kMost);
  range.high = std::clamp(range.high, -kMost, kMost);
  return range;
}

/// The smallest number of 1, 2, 5, 10, 20, 50 ... (for sizes: of the powers of 2) of which at most
/// `most` steps cover `length`.
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

/// Widens a range that consists of one value.
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
  // Rounding both ends outwards may add steps.
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
  // A tiny difference of two large numbers is a rounding error, and shown as 0.
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

namespace {

constexpr std::array<std::string_view, 8> kMarkers{"●", "▲", "■", "◆", "○", "△", "□", "◇"};
constexpr std::array<std::string_view, 8> kPlainMarkers{"*", "o", "+", "x", "#", "@", "%", "&"};
constexpr std::array<std::string_view, 6> kSeriesColours{"\x1b[36m", "\x1b[33m", "\x1b[32m",
                                                         "\x1b[35m", "\x1b[34m", "\x1b[31m"};
constexpr size_t kLeastColumns = 8;

std::string_view marker_of(size_t series, const ChartLook& look) {
  const auto& markers = look.unicode ? kMarkers : kPlainMarkers;
  return markers[series % markers.size()];
}

std::string coloured(std::string_view text, size_t series, const ChartLook& look) {
  if (!look.colour) return std::string(text);
  return std::string(kSeriesColours[series % kSeriesColours.size()]).append(text).append(kNoColour);
}

/// A grid of dots, several in each character: two by four in braille, one in ASCII.
class Canvas {
 public:
  Canvas(size_t columns, size_t rows, const ChartLook& look)
      : look_(look), columns_(columns), rows_(rows), cells_(columns * rows) {}

  int width() const { return static_cast<int>(columns_) * across(); }
  int height() const { return static_cast<int>(rows_) * down(); }

  void line(int x0, int y0, int x1, int y1, size_t series) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) {
      dot(x0 + static_cast<int>(std::lround(double(x1 - x0) * i / steps)),
          y0 + static_cast<int>(std::lround(double(y1 - y0) * i / steps)), series);
    }
  }

  /// Puts markers onto the drawn lines. Each series has its own columns for markers.
  void mark(size_t series_count) {
    constexpr size_t kApart = 8;
    for (size_t column = 0; column < columns_; ++column) {
      for (size_t row = 0; row < rows_; ++row) {
        Cell& cell = cells_[row * columns_ + column];
        const bool turn = column % kApart == cell.series * kApart / series_count % kApart;
        cell.marked = cell.dots != 0 && turn;
      }
    }
  }

  std::string row(size_t index) const {
    std::string text;
    size_t blanks = 0;
    for (size_t column = 0; column < columns_; ++column) {
      const Cell& cell = cells_[index * columns_ + column];
      if (cell.dots == 0 && !cell.marked) {
        ++blanks;
        continue;
      }
      text.append(std::exchange(blanks, 0), ' ');
      text += coloured(letter(cell), cell.series, look_);
    }
    return text;
  }

 private:
  struct Cell {
    unsigned dots = 0;  ///< the low byte of a code point from U+2800
    size_t series = 0;
    bool marked = false;
  };

  int across() const { return look_.unicode ? 2 : 1; }
  int down() const { return look_.unicode ? 4 : 1; }

  Cell& cell_at(int x, int y) {
    x = std::clamp(x, 0, width() - 1);
    y = std::clamp(y, 0, height() - 1);
    return cells_[static_cast<size_t>(y / down()) * columns_ + static_cast<size_t>(x / across())];
  }

  void dot(int x, int y, size_t series) {
    // Unicode numbers the dots of a character down the left column, then down the right column; the
    // dots of the fourth row were added later and have the last numbers.
    constexpr std::array<std::array<unsigned, 2>, 4> kDots{
        {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    Cell& cell = cell_at(x, y);
    cell.series = series;
    cell.dots |= look_.unicode ? kDots[static_cast<size_t>(std::clamp(y, 0, height() - 1) % 4)]
                                      [static_cast<size_t>(std::clamp(x, 0, width() - 1) % 2)]
                               : 1;
  }

  std::string letter(const Cell& cell) const {
    if (cell.marked || !look_.unicode) return std::string(marker_of(cell.series, look_));
    return {'\xe2', static_cast<char>(0xa0 | (cell.dots >> 6)),
            static_cast<char>(0x80 | (cell.dots & 0x3f))};
  }

  ChartLook look_;
  size_t columns_;
  size_t rows_;
  std::vector<Cell> cells_;
};

struct Frame {
  const TimeAxis& time;
  const ChartLook& look;
  size_t margin = 0;  ///< columns to the left of the axis
  size_t plot = 0;    ///< columns to the right of the axis
};

int steps_for(const ChartLook& look) {
  return std::max(1, static_cast<int>(look.rows - 1) / 3);
}

void draw(Canvas& canvas, const ChartSeries& series, size_t index, const ValueAxis& axis,
          const TimeAxis& time) {
  const auto x_of = [&](const job::MetricPoint& point) {
    return static_cast<int>(std::lround(time.place(point.time) * (canvas.width() - 1)));
  };
  const auto y_of = [&](const job::MetricPoint& point) {
    return static_cast<int>(std::lround((1 - axis.place(point.value)) * (canvas.height() - 1)));
  };
  for (size_t i = 0; i < series.points.size(); ++i) {
    const job::MetricPoint& from = series.points[i == 0 ? 0 : i - 1];
    const job::MetricPoint& to = series.points[i];
    canvas.line(x_of(from), y_of(from), x_of(to), y_of(to), index);
  }
}

std::string legend_line(const ChartSeries& series, size_t index, const Chart& chart,
                        const ChartLook& look) {
  if (series.points.empty()) return "";
  const auto [least, most] = std::minmax_element(
      series.points.begin(), series.points.end(),
      [](const auto& left, const auto& right) { return left.value < right.value; });
  const std::string text =
      series.label + "  " + value_words(series.points.back().value, chart.unit) + "  (" +
      value_words(least->value, chart.unit) + " to " + value_words(most->value, chart.unit) + ")";
  const size_t columns = std::max(look.columns, kLeastColumns) - 4;
  const bool has_marker = chart.series.size() > 1 || !look.unicode;
  return "  " + (has_marker ? coloured(marker_of(index, look), index, look) + " " : "") +
         std::string(cut_to(text, columns)) + "\n";
}

/// The row of a grid line.
size_t row_of(const ValueAxis& axis, int index, size_t rows) {
  return rows - 1 -
         static_cast<size_t>(std::lround(double(index) / axis.steps() * double(rows - 1)));
}

std::string plot(const Chart& chart, const ValueAxis& axis, const Frame& frame) {
  Canvas canvas(frame.plot, frame.look.rows, frame.look);
  for (size_t i = 0; i < chart.series.size(); ++i) {
    draw(canvas, chart.series[i], i, axis, frame.time);
  }
  if (chart.series.size() > 1) canvas.mark(chart.series.size());
  std::vector<std::string> labels(frame.look.rows);
  for (int i = 0; i <= axis.steps(); ++i) {
    labels[row_of(axis, i, labels.size())] = label_of(axis, i, chart.unit);
  }
  std::string text;
  for (size_t row = 0; row < labels.size(); ++row) {
    const std::string& label = labels[row];
    const std::string_view edge =
        frame.look.unicode ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+");
    text += std::string(frame.margin - std::min(frame.margin, display_width(label)), ' ') + label +
            " " + std::string(edge) + canvas.row(row) + "\n";
  }
  return text;
}

/// The time axis, with the labels below it.
std::string time_lines(const Frame& frame) {
  std::vector<bool> marks(frame.plot, false);
  std::string labels;
  size_t end = 0;  // the end of the last label
  for (std::chrono::seconds at{0}; at <= frame.time.length; at += frame.time.step) {
    const auto column = static_cast<size_t>(
        std::lround(frame.time.place(frame.time.begin + at) * double(frame.plot - 1)));
    const std::string label = label_of(at);
    marks[column] = true;
    const size_t place = std::min(column, frame.plot - std::min(frame.plot, label.size()));
    if (place < end) continue;
    labels += std::string(place - std::min(place, labels.size()), ' ') + label;
    end = labels.size() + 2;
  }
  std::string line;
  for (const bool mark : marks) {
    line += frame.look.unicode ? (mark ? "┬" : "─") : (mark ? "+" : "-");
  }
  const std::string indent(frame.margin + 1, ' ');
  return indent + (frame.look.unicode ? "└" : "+") + line + "\n" + indent + " " + labels + "\n";
}

std::string title_of(const Chart& chart) {
  const std::string_view unit = unit_words(chart.unit);
  return chart.title + (unit.empty() ? "" : " (" + std::string(unit) + ")") + "\n";
}

}  // namespace

std::string chart_text(const std::vector<Chart>& charts, std::optional<base::Time> begin,
                       const ChartLook& look) {
  constexpr size_t kColumnsOfTimeLabel = 12;
  std::vector<ValueAxis> axes;
  size_t margin = 0;
  for (const Chart& chart : charts) {
    const ValueAxis& axis = axes.emplace_back(value_axis(chart, steps_for(look)));
    for (int i = 0; i <= axis.steps(); ++i) {
      margin = std::max(margin, display_width(label_of(axis, i, chart.unit)));
    }
  }
  const size_t plot_columns =
      std::max(look.columns - std::min(look.columns, margin + 2), kLeastColumns);
  const TimeAxis time =
      time_axis(charts, begin, static_cast<int>(plot_columns / kColumnsOfTimeLabel));
  const Frame frame{.time = time, .look = look, .margin = margin, .plot = plot_columns};
  std::string text;
  for (size_t i = 0; i < charts.size(); ++i) {
    if (i > 0) text += "\n";
    text += title_of(charts[i]) + plot(charts[i], axes[i], frame) + time_lines(frame);
    for (size_t at = 0; at < charts[i].series.size(); ++at) {
      text += legend_line(charts[i].series[at], at, charts[i], look);
    }
  }
  return text;
}

}  // namespace muster::cli::metrics
