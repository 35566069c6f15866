// Two panels, one above the other, on one axis of time. Each is drawn from as many columns as the
// panel has pixels: a column shows the mean of its time and, paler, up to the most in it, so that a
// trace of a million events makes a file of some kilobytes and no peak is lost.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "simulate/trace_replay.h"

namespace muster::simulate {

namespace {

constexpr int kWidth = 960;
constexpr int kLeft = 70;
constexpr int kRight = 20;
constexpr int kPlot = kWidth - kLeft - kRight;
constexpr int kPanelHeight = 190;
constexpr int kFirstTop = 70;
constexpr int kGap = 60;
constexpr int kHeight = kFirstTop + 2 * kPanelHeight + kGap + 60;

struct Column {
  double mean = 0;
  double most = 0;
};

struct Panel {
  std::string title;
  std::string color;
  int top = 0;
  double ceiling = 1;  ///< the value at its upper edge
  double step = 1;     ///< between lines of the grid
  std::string unit;
  std::vector<Column> columns;
};

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return {text.data(), static_cast<size_t>(std::max(0, length))};
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char character : text) {
    if (character == '<')
      result += "&lt;";
    else if (character == '>')
      result += "&gt;";
    else if (character == '&')
      result += "&amp;";
    else if (static_cast<unsigned char>(character) < ' ')
      result += ' ';
    else
      result += character;
  }
  return result;
}

/// The smallest step of 1, 2, 5, 10, 20 ... that divides `range` into at most `most` steps.
double round_step(double range, int most) {
  double step = 1;
  while (range / step > most) {
    if (range / (step * 2) <= most) return step * 2;
    if (range / (step * 5) <= most) return step * 5;
    step *= 10;
  }
  return step;
}

struct TimeUnit {
  double seconds;
  std::string_view name;
};

constexpr std::array<TimeUnit, 4> kTimeUnits{
    {{86'400, "days"}, {3600, "h"}, {60, "min"}, {1, "s"}}};

/// The largest unit that the range contains at least four times.
TimeUnit unit_of(double seconds) {
  for (const TimeUnit& unit : kTimeUnits)
    if (seconds >= 4 * unit.seconds) return unit;
  return kTimeUnits.back();
}

double seconds_of(milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// The steps of `value_of` over the timeline, in kPlot columns of equal time.
template <class ValueOf>
std::vector<Column> columns_of(const std::vector<TracePoint>& points, milliseconds begin,
                               milliseconds end, ValueOf value_of) {
  std::vector<Column> columns(kPlot);
  const double width = seconds_of(end - begin) / kPlot;
  for (size_t i = 0; i < points.size(); ++i) {
    const double from = seconds_of(points[i].time - begin);
    const double until =
        i + 1 < points.size() ? seconds_of(points[i + 1].time - begin) : seconds_of(end - begin);
    const double value = value_of(points[i]);
    const int first = std::clamp(static_cast<int>(from / width), 0, kPlot - 1);
    const int last = std::clamp(static_cast<int>(until / width), 0, kPlot - 1);
    for (int at = first; at <= last; ++at) {
      const double part = std::min(until, (at + 1) * width) - std::max(from, at * width);
      if (part <= 0) continue;
      Column& column = columns[static_cast<size_t>(at)];
      column.mean += value * part / width;
      column.most = std::max(column.most, value);
    }
  }
  return columns;
}

class Svg {
 public:
  Svg() {
    const std::string size = std::to_string(kWidth) + " " + std::to_string(kHeight);
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size +
           "\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n"
           "<style>\n"
           "  text { fill: #333 } .grid { stroke: #8886; stroke-width: 1 }\n"
           "  .axis { stroke: #888; stroke-width: 1 }\n"
           "  @media (prefers-color-scheme: dark) { text { fill: #ddd } }\n"
           "</style>\n";
  }

  void text(double x, double y, std::string_view anchor, std::string_view content,
            std::string_view more = "") {
    out_ += "<text x=\"" + fixed(x, 1) + "\" y=\"" + fixed(y, 1) + "\" text-anchor=\"" +
            std::string(anchor) + "\"" + std::string(more) + ">" + escaped(content) + "</text>\n";
  }

  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    out_ += "<line class=\"" + std::string(style) + "\" x1=\"" + fixed(x1, 1) + "\" y1=\"" +
            fixed(y1, 1) + "\" x2=\"" + fixed(x2, 1) + "\" y2=\"" + fixed(y2, 1) + "\"/>\n";
  }

  void raw(const std::string& element) { out_ += element + "\n"; }

  std::string finish() { return out_ + "</svg>\n"; }

 private:
  std::string out_;
};

double height_of(const Panel& panel, double value) {
  return panel.top + kPanelHeight * (1 - value / panel.ceiling);
}

/// The area below `value_of` each column, as the commands of a path; equal neighbours are one line.
template <class ValueOf>
std::string area(const Panel& panel, ValueOf value_of) {
  const std::string floor = fixed(panel.top + kPanelHeight, 1);
  std::string path = "M" + std::to_string(kLeft) + " " + floor;
  std::string before;
  for (int at = 0; at < kPlot; ++at) {
    const std::string y =
        fixed(height_of(panel, value_of(panel.columns[static_cast<size_t>(at)])), 1);
    if (y != before) path += "H" + std::to_string(kLeft + at) + "V" + y;
    before = y;
  }
  return path + "H" + std::to_string(kLeft + kPlot) + "V" + floor + "Z";
}

void draw(Svg& svg, const Panel& panel) {
  svg.text(kLeft, panel.top - 12, "start", panel.title, " font-weight=\"600\"");
  const int steps = static_cast<int>(panel.ceiling * 1.0001 / panel.step);
  for (int line = 0; line <= steps; ++line) {
    const double value = line * panel.step;
    const double y = height_of(panel, value);
    svg.line(kLeft, y, kLeft + kPlot, y, line == 0 ? "axis" : "grid");
    svg.text(kLeft - 8, y + 4, "end", fixed(value, 0) + panel.unit);
  }
  svg.raw("<path fill=\"" + panel.color + "\" fill-opacity=\"0.3\" d=\"" +
          area(panel, [](const Column& column) { return column.most; }) + "\"/>");
  svg.raw("<path fill=\"" + panel.color + "\" fill-opacity=\"0.75\" d=\"" +
          area(panel, [](const Column& column) { return column.mean; }) + "\"/>");
}

void draw_time_axis(Svg& svg, double length, int bottom) {
  const TimeUnit unit = unit_of(length);
  const double range = length / unit.seconds;
  const double step = round_step(range, 10);
  const int marks = static_cast<int>(range * 1.0001 / step);
  for (int mark = 0; mark <= marks; ++mark) {
    const double value = mark * step;
    const double x = kLeft + kPlot * value / range;
    svg.line(x, bottom, x, bottom + 5, "axis");
    svg.text(x, bottom + 20, "middle", fixed(value, 0));
  }
  svg.text(kLeft + kPlot / 2.0, bottom + 42, "middle",
           "time since the first submission (" + std::string(unit.name) + ")");
}

void draw_legend(Svg& svg, const Panel& panel) {
  const auto swatch = [&](int x, std::string_view opacity, std::string_view label) {
    svg.raw("<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(panel.top - 22) +
            "\" width=\"12\" height=\"12\" fill=\"" + panel.color + "\" fill-opacity=\"" +
            std::string(opacity) + "\"/>");
    svg.text(x + 18, panel.top - 12, "start", label);
  };
  swatch(kLeft + kPlot - 150, "0.75", "mean");
  swatch(kLeft + kPlot - 75, "0.3", "peak");
}

}  // namespace

std::string chart_of(const TraceReport& report, std::string_view title) {
  const std::vector<TracePoint>& points = report.timeline;
  const milliseconds begin = points.empty() ? milliseconds(0) : points.front().time;
  const milliseconds end = begin + std::max(report.makespan, milliseconds(1));
  Panel queue{.title = "jobs waiting", .color = "#e07b39", .top = kFirstTop};
  queue.columns = columns_of(points, begin, end, [](const TracePoint& point) {
    return static_cast<double>(point.waiting);
  });
  double most = 1;
  for (const Column& column : queue.columns) most = std::max(most, column.most);
  queue.step = round_step(most, 5);
  queue.ceiling = std::ceil(most / queue.step) * queue.step;

  Panel use{.title = "GPUs in use", .color = "#4c8fc4", .top = kFirstTop + kPanelHeight + kGap};
  const double all = static_cast<double>(std::max<int64_t>(report.gpu_milli, 1));
  use.columns = columns_of(points, begin, end, [&](const TracePoint& point) {
    return 100.0 * static_cast<double>(point.gpu_milli_used) / all;
  });
  use.ceiling = 100;
  use.step = 20;
  use.unit = " %";

  Svg svg;
  svg.text(kLeft, 28, "start", title, " font-size=\"16\" font-weight=\"600\"");
  for (const Panel& panel : {queue, use}) {
    draw(svg, panel);
    draw_legend(svg, panel);
  }
  draw_time_axis(svg, seconds_of(end - begin), use.top + kPanelHeight);
  return svg.finish();
}

}  // namespace muster::simulate
