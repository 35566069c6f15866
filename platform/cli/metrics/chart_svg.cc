#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/common/format.h"
#include "cli/metrics/chart.h"

namespace muster::cli::metrics {

namespace {

constexpr int kWidth = 960;
constexpr int kLeft = 80;
constexpr int kRight = 20;
constexpr int kPlot = kWidth - kLeft - kRight;
constexpr int kPanel = 220;
constexpr int kFirstTop = 84;
constexpr int kLegendLine = 20;
constexpr int kBelowAxis = 44;
constexpr int kAbovePanel = 34;

// These colours can be distinguished on white and on black, also with most kinds of colour
// blindness.
constexpr std::array<std::string_view, 8> kHexColours{"#2f86d6", "#e07b39", "#2fa36b", "#c0569e",
                                                      "#a8902a", "#7a6fd0", "#d0574f", "#3fa6a6"};
constexpr std::array<std::string_view, 4> kDashes{"", "7 4", "2 3", "9 3 2 3"};

/// Escaped for XML: markup characters are escaped; control characters and invalid UTF-8 are
/// replaced.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : base::as_utf8(text)) {
    switch (letter) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
    }
  }
  return result;
}

std::string text_at(double x, double y, std::string_view anchor, std::string_view content,
                    std::string_view more = "") {
  return "<text x=\"" + one_decimal(x) + "\" y=\"" + one_decimal(y) + "\" text-anchor=\"" +
         std::string(anchor) + "\"" + std::string(more) + ">" + escaped(content) + "</text>\n";
}

std::string line_at(double x1, double y1, double x2, double y2, std::string_view style) {
  return "<line class=\"" + std::string(style) + "\" x1=\"" + one_decimal(x1) + "\" y1=\"" +
         one_decimal(y1) + "\" x2=\"" + one_decimal(x2) + "\" y2=\"" + one_decimal(y2) + "\"/>\n";
}

std::string stroke_of(size_t series) {
  const std::string_view dashes = kDashes[series / kHexColours.size() % kDashes.size()];
  std::string text = " stroke=\"" + std::string(kHexColours[series % kHexColours.size()]) +
                     "\" stroke-width=\"2\"";
  if (!dashes.empty()) text += " stroke-dasharray=\"" + std::string(dashes) + "\"";
  return text;
}

std::string words_of(const ChartSeries& series, MetricUnit unit) {
  if (series.points.empty()) return series.label;
  return series.label + ": " + value_words(series.points.back().value, unit);
}

int legend_lines(const Chart& chart) {
  constexpr int kInARow = 3;
  return (static_cast<int>(chart.series.size()) + kInARow - 1) / kInARow;
}

int svg_height_of(const Chart& chart) {
  return kAbovePanel + kPanel + kBelowAxis + legend_lines(chart) * kLegendLine;
}

/// One chart; `top` is the upper edge of its plot.
class Panel {
 public:
  Panel(const Chart& chart, const TimeAxis& time, int top)
      : chart_(chart), time_(time), axis_(value_axis(chart, 5)), top_(top) {}

  std::string to_string() const {
    std::string text = title() + grid() + time_marks();
    for (size_t i = 0; i < chart_.series.size(); ++i) text += curve(i);
    for (size_t i = 0; i < chart_.series.size(); ++i) text += legend(i);
    return text;
  }

 private:
  double x_of(base::Time time) const { return kLeft + kPlot * time_.place(time); }
  double y_of(double value) const { return top_ + kPanel * (1 - axis_.place(value)); }

  std::string title() const {
    const std::string_view unit = unit_words(chart_.unit);
    return text_at(kLeft, top_ - 12, "start",
                   chart_.title + (unit.empty() ? "" : " (" + std::string(unit) + ")"),
                   " font-weight=\"600\"");
  }

  std::string grid() const {
    std::string text;
    for (int i = 0; i <= axis_.steps(); ++i) {
      const double y = y_of(axis_.at(i));
      text += line_at(kLeft, y, kLeft + kPlot, y, i == 0 ? "axis" : "grid");
      text += text_at(kLeft - 8, y + 4, "end", label_of(axis_, i, chart_.unit));
    }
    return text;
  }

  std::string time_marks() const {
    std::string text;
    const double bottom = top_ + kPanel;
    for (std::chrono::seconds at{0}; at <= time_.length; at += time_.step) {
      const double x = x_of(time_.begin + at);
      text += line_at(x, bottom, x, bottom + 5, "axis");
      text += text_at(x, bottom + 20, "middle", label_of(at));
    }
    return text;
  }

  std::string curve(size_t index) const {
    const ChartSeries& series = chart_.series[index];
    std::string points;
    for (const job::MetricPoint& point : series.points) {
      points += (points.empty() ? "" : " ") + one_decimal(x_of(point.time)) + "," +
                one_decimal(y_of(point.value));
    }
    const std::string title = "<title>" + escaped(words_of(series, chart_.unit)) + "</title>";
    if (series.points.size() == 1) {
      return "<circle r=\"3\" cx=\"" + one_decimal(x_of(series.points.front().time)) + "\" cy=\"" +
             one_decimal(y_of(series.points.front().value)) + "\" fill=\"" +
             std::string(kHexColours[index % kHexColours.size()]) + "\">" + title + "</circle>\n";
    }
    return "<polyline fill=\"none\" stroke-linejoin=\"round\"" + stroke_of(index) + " points=\"" +
           points + "\">" + title + "</polyline>\n";
  }

  std::string legend(size_t index) const {
    const auto at = static_cast<int>(index);
    const int x = kLeft + at % 3 * (kPlot / 3);
    const int y = top_ + kPanel + kBelowAxis + at / 3 * kLegendLine;
    return "<line" + stroke_of(index) + " x1=\"" + std::to_string(x) + "\" y1=\"" +
           std::to_string(y - 4) + "\" x2=\"" + std::to_string(x + 24) + "\" y2=\"" +
           std::to_string(y - 4) + "\"/>\n" +
           text_at(x + 32, y, "start", words_of(chart_.series[index], chart_.unit));
  }

  const Chart& chart_;
  const TimeAxis& time_;
  ValueAxis axis_;
  int top_;
};

std::string head(int height, std::string_view title) {
  const std::string size = std::to_string(kWidth) + " " + std::to_string(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 " + size +
         "\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>" + escaped(title) +
         "</title>\n"
         "<style>\n"
         "  text { fill: #333 } .grid { stroke: #8886; stroke-width: 1 }\n"
         "  .axis { stroke: #888; stroke-width: 1 }\n"
         "  @media (prefers-color-scheme: dark) { text { fill: #ddd } }\n"
         "</style>\n";
}

}  // namespace

std::string chart_svg(const std::vector<Chart>& charts, std::optional<base::Time> begin,
                      std::string_view title) {
  int height = kFirstTop - kAbovePanel;
  for (const Chart& chart : charts) height += svg_height_of(chart);
  const TimeAxis time = time_axis(charts, begin, 8);
  std::string text = head(height, title);
  text += text_at(kLeft, 28, "start", title, " font-size=\"18\" font-weight=\"600\"");
  text += text_at(kLeft, 48, "start", "time since " + base::to_rfc3339(time.begin, 0));
  int top = kFirstTop;
  for (const Chart& chart : charts) {
    text += Panel(chart, time, top).to_string();
    top += svg_height_of(chart);
  }
  return text + "</svg>\n";
}

}  // namespace muster::cli::metrics
